//! One counter in 32 bytes: its tag, and its state in two words.
//!
//! ```text
//! word 0   time (53 bits) | kind (3) | protected (1) | calendar (1) | – (2) | tick power (4)
//! word 1   fixed-window     count
//!          sliding-window   current (32) | previous (32)
//!          token-bucket     level (48) | refill (16)
//!          buckets, log     index of the state in the heap
//! ```
//!
//! `time` is when the counter expires; the windows compute their start from it. `calendar` marks a
//! fixed window of days or months, whose time is wall-clock time.
//!
//! A token bucket stores the instant until which it is filled instead. Its expiry follows from
//! `refill`: the amount of its quota as a 16-bit divisor, rounded up. A decision therefore does not
//! compute the expiry; sweep and eviction do.

use crate::algorithm::fixed_window::FixedWindow;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::token_bucket::TokenBucket;
use crate::quota::{Quota, Rough};
use crate::store::subject_hash::Tag;
use crate::usage::Usage;

/// State of a counter as a cell stores it.
///
/// Not an array: the compiler passes two fields in registers, and an array through memory, where two
/// fresh 8-byte stores followed by one 16-byte load stall the processor.
#[derive(Clone, Copy, Default)]
pub(super) struct PackedState {
    pub(super) first: u64,
    pub(super) second: u64,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Cell {
    pub(super) tag: Tag,
    pub(super) state: PackedState,
}

/// What the words of a cell hold. An empty cell has none of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Fixed = 1,
    Sliding = 2,
    Token = 3,
    Heap = 4,
}

const TIME: u64 = (1 << 53) - 1;
const KIND_AT: u32 = 53;
const PROTECTED_AT: u32 = 56;
const CALENDAR: u64 = 1 << 57;
const POWER_AT: u32 = 60;
const LEVEL: u64 = (1 << 48) - 1;
const REFILL_AT: u32 = 48;
const CURRENT: u64 = u32::MAX as u64;
/// Microseconds of a tick, by its power.
const TICKS: [u64; 16] = {
    let mut ticks = [1; 16];
    let mut power = 1;
    while power < ticks.len() {
        ticks[power] = ticks[power - 1] * 10;
        power += 1;
    }
    ticks
};

impl Cell {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.tag.is_empty()
    }

    pub(super) fn kind(&self) -> Option<Kind> {
        [Kind::Fixed, Kind::Sliding, Kind::Token, Kind::Heap]
            .into_iter()
            .find(|kind| is_kind(self.state, *kind))
    }

    /// Returns whether no new counter may displace it before it expires; see [`super::evict`].
    #[inline]
    pub(super) fn is_protected(&self) -> bool {
        is_protected(self.state)
    }

    /// Marks a counter that has denied a request. Its state stays as it is.
    #[inline]
    pub(super) fn protect(&mut self) {
        self.state.first |= 1 << PROTECTED_AT;
    }

    /// Returns whether [`expires_at`](Self::expires_at) is wall-clock time.
    pub(super) fn is_calendar(&self) -> bool {
        self.state.first & CALENDAR != 0
    }

    /// Returns when the counter is equivalent to a new one. For a token bucket it is up to 0.4 %
    /// and a tick later than that, never earlier.
    pub(super) fn expires_at(&self) -> u64 {
        let PackedState { first, second } = self.state;
        let time = first & TIME;
        if is_kind(self.state, Kind::Token) {
            let ticks = Rough::new((second >> REFILL_AT) as u16).divide_up(second & LEVEL);
            let tick = TICKS[(first >> POWER_AT) as usize];
            time.saturating_add(ticks.saturating_mul(tick))
        } else {
            time
        }
    }

    /// Returns the index of a state in the heap.
    pub(super) fn heap_index(&self) -> Option<usize> {
        is_kind(self.state, Kind::Heap)
            .then(|| usize::try_from(self.state.second).unwrap_or(usize::MAX))
    }
}

#[inline]
fn is_kind(state: PackedState, kind: Kind) -> bool {
    state.first >> KIND_AT & 7 == kind as u64
}

#[inline]
pub(super) fn is_protected(state: PackedState) -> bool {
    state.first >> PROTECTED_AT & 1 == 1
}

#[inline]
fn first_word(time: u64, kind: Kind, protected: bool) -> u64 {
    // Timestamps end early enough that no expiry exceeds 53 bits.
    debug_assert!(time <= TIME);
    time | (kind as u64) << KIND_AT | u64::from(protected) << PROTECTED_AT
}

/// Packs the reference to a state in the heap.
pub(super) fn pack_heap(expires_at: u64, protected: bool, index: usize) -> PackedState {
    PackedState {
        first: first_word(expires_at.min(TIME), Kind::Heap, protected),
        second: index as u64,
    }
}

/// State that fits into a cell: unpacked, advanced by value, packed again.
pub(super) trait InlineState: Copy + Default {
    const KIND: Kind;

    fn unpack(packed: PackedState, quota: &Quota) -> Self;

    fn pack(self, quota: &Quota, protected: bool) -> PackedState;

    /// Returns the weight of one permit, in the unit of [`attempt`](Self::attempt).
    fn permit_weight(quota: &Quota) -> u64;

    /// Unpacks the state of a cell; the fresh state if the cell is empty.
    #[inline(always)]
    fn unpack_or_fresh(packed: PackedState, quota: &Quota) -> Self {
        if is_kind(packed, Self::KIND) {
            Self::unpack(packed, quota)
        } else {
            Self::default()
        }
    }

    /// Charges `cost` if there is room. Returns the state after it and the weight that is used then,
    /// or the state at `now` if there is no room.
    fn attempt(self, quota: &Quota, now: u64, cost: u64) -> Result<(Self, u64), Self>;
    fn used_of(weight: u64, quota: &Quota) -> u64;
    fn used(self, quota: &Quota, now: u64) -> u64;
    fn granted(self, quota: &Quota, now: u64, used: u64) -> Usage;
    fn refused(self, quota: &Quota, now: u64, cost: u64, used: u64) -> Usage;
    fn charge(&mut self, quota: &Quota, now: u64, cost: u64);
    fn refund(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64);
}

/// Forwards to the methods of the algorithm with the same names.
macro_rules! forward_to_algorithm {
    ($state:ty) => {
        #[inline(always)]
        fn attempt(self, quota: &Quota, now: u64, cost: u64) -> Result<(Self, u64), Self> {
            <$state>::attempt(self, quota, now, cost)
        }

        #[inline(always)]
        fn used_of(weight: u64, quota: &Quota) -> u64 {
            <$state>::used_of(weight, quota)
        }

        #[inline(always)]
        fn used(self, quota: &Quota, now: u64) -> u64 {
            <$state>::used(self, quota, now)
        }

        #[inline(always)]
        fn granted(self, quota: &Quota, now: u64, used: u64) -> Usage {
            <$state>::granted(self, quota, now, used)
        }

        #[inline(always)]
        fn refused(self, quota: &Quota, now: u64, cost: u64, used: u64) -> Usage {
            <$state>::refused(self, quota, now, cost, used)
        }

        #[inline]
        fn charge(&mut self, quota: &Quota, now: u64, cost: u64) {
            <$state>::charge(self, quota, now, cost);
        }

        fn refund(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
            <$state>::refund(self, quota, charged_at, now, cost);
        }
    };
}

impl InlineState for FixedWindow {
    const KIND: Kind = Kind::Fixed;

    #[inline]
    fn unpack(packed: PackedState, _quota: &Quota) -> Self {
        Self {
            end: packed.first & TIME,
            count: packed.second,
        }
    }

    #[inline(always)]
    fn pack(self, quota: &Quota, protected: bool) -> PackedState {
        let calendar = if quota.is_calendar() { CALENDAR } else { 0 };
        PackedState {
            first: first_word(self.end, Kind::Fixed, protected) | calendar,
            second: self.count,
        }
    }

    #[inline(always)]
    fn permit_weight(_quota: &Quota) -> u64 {
        1
    }

    forward_to_algorithm!(FixedWindow);
}

impl InlineState for SlidingWindow {
    const KIND: Kind = Kind::Sliding;

    #[inline]
    fn unpack(packed: PackedState, quota: &Quota) -> Self {
        Self {
            start: (packed.first & TIME).saturating_sub(2 * quota.window_micros()),
            current: packed.second & CURRENT,
            previous: packed.second >> 32,
        }
    }

    #[inline(always)]
    fn pack(self, quota: &Quota, protected: bool) -> PackedState {
        let expires_at = self.start + 2 * quota.window_micros();
        PackedState {
            first: first_word(expires_at, Kind::Sliding, protected),
            // Neither counter exceeds 32 bits, see `Quota::most_counted`.
            second: self.previous << 32 | self.current,
        }
    }

    #[inline(always)]
    fn permit_weight(quota: &Quota) -> u64 {
        quota.by_window().value()
    }

    forward_to_algorithm!(SlidingWindow);
}

impl InlineState for TokenBucket {
    const KIND: Kind = Kind::Token;

    #[inline]
    fn unpack(packed: PackedState, _quota: &Quota) -> Self {
        Self {
            level: packed.second & LEVEL,
            filled_until: packed.first & TIME,
            tick_power: (packed.first >> POWER_AT) as u8,
        }
    }

    #[inline(always)]
    fn pack(self, quota: &Quota, protected: bool) -> PackedState {
        let refill = u64::from(quota.by_amount().rough().bits());
        let power = u64::from(self.tick_power) << POWER_AT;
        PackedState {
            first: first_word(self.filled_until, Kind::Token, protected) | power,
            second: self.level | refill << REFILL_AT,
        }
    }

    #[inline(always)]
    fn permit_weight(quota: &Quota) -> u64 {
        quota.by_window().value()
    }

    forward_to_algorithm!(TokenBucket);
}
