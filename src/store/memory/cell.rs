//! One counter in 32 bytes: its tag, and its state in two words.
//!
//! ```text
//! word 0   time (53 bits) | kind (3) | rank (4) | horizon, low (4)
//! word 1   fixed-window     count
//!          sliding-window   current (32) | previous (32)
//!          token-bucket     level (48) | tick power (4) | horizon, high (12)
//!          buckets, log     where on the heap
//! ```
//!
//! `time` is when the counter is worth nothing any more, from which the windows find where
//! they started. A token bucket needs the instant it was filled until, so its end is kept
//! apart, as a short float of what lies in between, rounded up.

use crate::algorithm::fixed_window::FixedWindow;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::token_bucket::TokenBucket;
use crate::decision::{Outcome, Usage};
use crate::quota::Quota;
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
const HORIZON_LOW_AT: u32 = 60;
const LEVEL: u64 = (1 << 48) - 1;
const POWER_AT: u32 = 48;
const HORIZON_HIGH_AT: u32 = 52;

impl Rank {
    /// Everything is used: whoever it is, is blocked. Never evicted before its end.
    pub(super) const BLOCKED: Self = Self(15);

    /// By the share that is used, or by its magnitude where that says more: a flood of keys
    /// seen once must not push out one that was seen five times in a thousand.
    #[inline]
    pub(super) fn of(usage: &Usage, quota: &Quota) -> Self {
        let used = usage.used();
        if used >= usage.limit() {
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
    pub(super) fn note_denial(&mut self, usage: &Usage) {
        if usage.remaining() == 0 && usage.limit() > 0 {
            self.words[0] |= u64::from(Rank::BLOCKED.0) << RANK_AT;
        }
    }

    pub(super) fn rank(&self) -> Rank {
        Rank((self.words[0] >> RANK_AT & 15) as u8)
    }

    /// When the counter is worth no more than a fresh one. Of a token bucket up to 0.4 %
    /// later than that, never earlier.
    pub(super) fn expires_at(&self) -> u64 {
        let time = self.words[0] & TIME;
        if self.kind() == Some(Kind::Token) {
            let high = self.words[1] >> HORIZON_HIGH_AT;
            let low = self.words[0] >> HORIZON_LOW_AT;
            time.saturating_add(short_float::read(high << 4 | low))
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
    time.min(TIME) | (kind as u64) << KIND_AT | u64::from(rank.0) << RANK_AT
}

pub(super) fn heap_words(expires_at: u64, rank: Rank, index: usize) -> Words {
    [first_word(expires_at, Kind::Heap, rank), index as u64]
}

/// The small states: read from a cell, advanced by value, written back.
pub(super) trait Small: Copy + Default {
    const KIND: Kind;
    fn read(words: Words, quota: &Quota) -> Self;
    /// `usage` is how the counter stands with this state.
    fn write(self, quota: &Quota, usage: &Usage) -> Words;
    fn step(self, quota: &Quota, now: u64, cost: u64) -> (Self, Usage);
    fn charge(&mut self, quota: &Quota, now: u64, cost: u64);
    fn give_back(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64);
}

/// The steps of the algorithm under the same names.
macro_rules! steps {
    ($state:ty) => {
        #[inline(always)]
        fn step(self, quota: &Quota, now: u64, cost: u64) -> (Self, Usage) {
            <$state>::step(self, quota, now, cost)
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
    fn write(self, quota: &Quota, usage: &Usage) -> Words {
        [
            first_word(self.end, Kind::Fixed, Rank::of(usage, quota)),
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
    fn write(self, quota: &Quota, usage: &Usage) -> Words {
        // Both counters stop at 32 bits by themselves.
        [
            first_word(
                self.start + 2 * quota.window_micros(),
                Kind::Sliding,
                Rank::of(usage, quota),
            ),
            self.previous << 32 | self.current,
        ]
    }

    steps!(SlidingWindow);
}

impl Small for TokenBucket {
    const KIND: Kind = Kind::Token;

    #[inline]
    fn read(words: Words, _quota: &Quota) -> Self {
        Self {
            level: words[1] & LEVEL,
            filled_until: words[0] & TIME,
            tick_power: (words[1] >> POWER_AT & 15) as u8,
        }
    }

    #[inline(always)]
    fn write(self, quota: &Quota, usage: &Usage) -> Words {
        // Allowed, the reset is when it is whole again: no need to compute that once more.
        let whole_at = match usage.outcome() {
            Outcome::Allowed => usage.reset_at().as_micros(),
            _ => self.expires_at(quota),
        };
        let left = whole_at.saturating_sub(self.filled_until);
        let horizon = short_float::at_least(left);
        [
            first_word(self.filled_until, Kind::Token, Rank::of(usage, quota))
                | (horizon & 15) << HORIZON_LOW_AT,
            self.level | u64::from(self.tick_power) << POWER_AT | (horizon >> 4) << HORIZON_HIGH_AT,
        ]
    }

    steps!(TokenBucket);
}

/// Lengths of time in 16 bits: 10 of mantissa, 6 of exponent, rounded up.
mod short_float {
    const MANTISSA: u32 = 10;

    #[inline]
    pub(super) fn at_least(value: u64) -> u64 {
        // Nine bits of the value, and one more: always at least it, and never too many.
        const SMALLEST: u64 = 1 << (MANTISSA - 2);
        let exponent = (value | SMALLEST).ilog2() - SMALLEST.ilog2();
        let mantissa = (value >> exponent) + 1;
        mantissa | u64::from(exponent) << MANTISSA
    }

    pub(super) fn read(packed: u64) -> u64 {
        let mantissa = packed & ((1 << MANTISSA) - 1);
        let exponent = packed >> MANTISSA;
        mantissa << exponent
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn is_never_less_and_hardly_more() {
            let near = (0..54)
                .flat_map(|bit| (0..5_u64).map(move |off| (1 << bit) + off - 2.min(1 << bit)));
            for value in (0..5_000).chain(near) {
                let read = read(at_least(value));
                assert!(read >= value, "{value} became {read}");
                assert!(read <= value + value / 256 + 1, "{value} became {read}");
            }
        }
    }
}
