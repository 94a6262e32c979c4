//! One counter in 32 bytes: its tag, and its state in two words.
//!
//! ```text
//! word 0   time (53 bits) | kind (3) | rank (4) | refill, low (4)
//! word 1   fixed-window     count
//!          sliding-window   current (32) | previous (32)
//!          token-bucket     level (48) | tick power (4) | refill, high (12)
//!          buckets, log     where on the heap
//! ```
//!
//! `time` is when the counter is worth nothing any more, from which the windows find where
//! they started. A token bucket needs the instant it was filled until. Its end follows from how
//! fast it refills: the amount of its quota, as a divisor in 16 bits that is rounded up. So a
//! decision has nothing to compute for the end; whoever sweeps has.

use crate::algorithm::fixed_window::FixedWindow;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::token_bucket::TokenBucket;
use crate::decision::Usage;
use crate::quota::{Quota, Rough};
use crate::store::fingerprint::Tag;

/// A state as a cell keeps it.
pub(super) type Words = [u64; 2];

#[derive(Clone, Copy, Default)]
pub(super) struct Cell {
    pub(super) tag: Tag,
    pub(super) words: Words,
}

/// What a cell holds; an empty one holds nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Fixed = 1,
    Sliding = 2,
    Token = 3,
    Heap = 4,
}

/// How much forgetting a cell would forgive, on a scale of 16.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Rank(u8);

const TIME: u64 = (1 << 53) - 1;
const KIND_AT: u32 = 53;
const RANK_AT: u32 = 56;
const REFILL_LOW_AT: u32 = 60;
const LEVEL: u64 = (1 << 48) - 1;
const POWER_AT: u32 = 48;
const REFILL_HIGH_AT: u32 = 52;

impl Rank {
    /// Everything is used: whoever it is, is blocked. Never evicted before its end.
    pub(super) const BLOCKED: Self = Self(15);

    /// By the share that is used, or by its magnitude where that says more: a flood of keys
    /// seen once must not push out one that was seen five times in a thousand.
    #[inline]
    pub(super) fn of(used: u64, quota: &Quota) -> Self {
        if used >= quota.burst() {
            return Self::BLOCKED;
        }
        // Eighths of the power of two below the limit: near enough, and no division. What is
        // used is less than the limit, and that is far below 2^61.
        let share = used << 3 >> quota.burst_power();
        let magnitude = u64::from((used | 1).ilog2());
        Self(share.max(magnitude).min(14) as u8)
    }
}

impl Cell {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.tag.is_nobody()
    }

    pub(super) fn kind(&self) -> Option<Kind> {
        [Kind::Fixed, Kind::Sliding, Kind::Token, Kind::Heap]
            .into_iter()
            .find(|kind| is_kind(&self.words, *kind))
    }

    /// Whoever is turned away with nothing left must not be forgotten, also if that is so only
    /// since the limit was lowered. What is counted stays as it is. A quota that is `blocked`
    /// says nothing about the counter.
    #[inline]
    pub(super) fn note_denial(&mut self, used: u64, limit: u64) {
        if used >= limit && limit > 0 {
            self.words[0] |= u64::from(Rank::BLOCKED.0) << RANK_AT;
        }
    }

    pub(super) fn rank(&self) -> Rank {
        Rank((self.words[0] >> RANK_AT & 15) as u8)
    }

    /// When the counter is worth no more than a fresh one. Of a token bucket up to 0.4 % and
    /// a tick later than that, never earlier.
    pub(super) fn expires_at(&self) -> u64 {
        let [first, second] = self.words;
        let time = first & TIME;
        if is_kind(&self.words, Kind::Token) {
            let refill = second >> REFILL_HIGH_AT << 4 | first >> REFILL_LOW_AT;
            let ticks = Rough::new((refill & 0xffff) as u16).divide_up(second & LEVEL);
            let tick = 10_u64.pow((second >> POWER_AT & 15) as u32);
            time.saturating_add(ticks.saturating_mul(tick))
        } else {
            time
        }
    }

    /// Where on the heap the state is, if it is there.
    pub(super) fn heap_index(&self) -> Option<usize> {
        (self.kind() == Some(Kind::Heap))
            .then(|| usize::try_from(self.words[1]).unwrap_or(usize::MAX))
    }
}

#[inline]
pub(super) fn is_kind(words: &Words, kind: Kind) -> bool {
    words[0] >> KIND_AT & 7 == kind as u64
}

#[inline]
fn first_word(time: u64, kind: Kind, rank: Rank) -> u64 {
    // No end lies past this: the last instant leaves room for it.
    debug_assert!(time <= TIME);
    time | (kind as u64) << KIND_AT | u64::from(rank.0) << RANK_AT
}

pub(super) fn heap_words(expires_at: u64, rank: Rank, index: usize) -> Words {
    [
        first_word(expires_at.min(TIME), Kind::Heap, rank),
        index as u64,
    ]
}

/// The small states: read from a cell, advanced by value, written back.
pub(super) trait Small: Copy + Default {
    const KIND: Kind;
    fn read(words: Words, quota: &Quota) -> Self;
    /// `used` is what is used in this state.
    fn write(self, quota: &Quota, used: u64) -> Words;
    /// The state, if the words hold such a one, counted as this quota counts. Most do, and what
    /// is done with those is short.
    #[inline(always)]
    fn read_plain(words: Words, quota: &Quota) -> Option<Self> {
        is_kind(&words, Self::KIND).then(|| Self::read(words, quota))
    }
    fn attempt(self, quota: &Quota, now: u64, cost: u64) -> Result<Self, Self>;
    fn used(self, quota: &Quota, now: u64) -> u64;
    fn granted(self, quota: &Quota, now: u64, used: u64) -> Usage;
    fn refused(self, quota: &Quota, now: u64, cost: u64, used: u64) -> Usage;
    fn charge(&mut self, quota: &Quota, now: u64, cost: u64);
    fn give_back(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64);
}

/// The steps of the algorithm under the same names.
macro_rules! steps {
    ($state:ty) => {
        #[inline(always)]
        fn attempt(self, quota: &Quota, now: u64, cost: u64) -> Result<Self, Self> {
            <$state>::attempt(self, quota, now, cost)
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

        fn give_back(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
            <$state>::give_back(self, quota, charged_at, now, cost);
        }
    };
}

impl Small for FixedWindow {
    const KIND: Kind = Kind::Fixed;

    #[inline]
    fn read(words: Words, _quota: &Quota) -> Self {
        Self {
            end: words[0] & TIME,
            count: words[1],
        }
    }

    #[inline]
    fn write(self, quota: &Quota, used: u64) -> Words {
        [
            first_word(self.end, Kind::Fixed, Rank::of(used, quota)),
            self.count,
        ]
    }

    steps!(FixedWindow);
}

impl Small for SlidingWindow {
    const KIND: Kind = Kind::Sliding;

    #[inline]
    fn read(words: Words, quota: &Quota) -> Self {
        Self {
            start: (words[0] & TIME).saturating_sub(2 * quota.window_micros()),
            current: words[1] & u64::from(u32::MAX),
            previous: words[1] >> 32,
        }
    }

    #[inline]
    fn write(self, quota: &Quota, used: u64) -> Words {
        // Both counters stop at 32 bits by themselves.
        [
            first_word(
                self.start + 2 * quota.window_micros(),
                Kind::Sliding,
                Rank::of(used, quota),
            ),
            self.previous << 32 | self.current,
        ]
    }

    steps!(SlidingWindow);
}

impl Small for TokenBucket {
    const KIND: Kind = Kind::Token;

    #[inline(always)]
    fn read_plain(words: Words, quota: &Quota) -> Option<Self> {
        let tick_power = quota.tick_power();
        let is_plain =
            is_kind(&words, Kind::Token) && words[1] >> POWER_AT & 15 == u64::from(tick_power);
        // By the quota's word, so that nobody need compare them again.
        is_plain.then(|| Self {
            tick_power,
            ..Self::read(words, quota)
        })
    }

    #[inline]
    fn read(words: Words, _quota: &Quota) -> Self {
        Self {
            level: words[1] & LEVEL,
            filled_until: words[0] & TIME,
            tick_power: (words[1] >> POWER_AT & 15) as u8,
        }
    }

    #[inline(always)]
    fn write(self, quota: &Quota, used: u64) -> Words {
        let refill = u64::from(quota.by_amount().rough().bits());
        [
            first_word(self.filled_until, Kind::Token, Rank::of(used, quota))
                | refill << REFILL_LOW_AT,
            self.level | u64::from(self.tick_power) << POWER_AT | refill >> 4 << REFILL_HIGH_AT,
        ]
    }

    steps!(TokenBucket);
}
