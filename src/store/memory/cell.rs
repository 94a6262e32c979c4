//! One counter in 32 bytes: its tag, and its state in two words.
//!
//! ```text
//! word 0   time (53 bits) | kind (3) | rank (4) | tick power of a token bucket (4)
//! word 1   fixed-window     count
//!          sliding-window   current (32) | previous (32)
//!          token-bucket     level (48) | refill (16)
//!          buckets, log     where on the heap
//! ```
//!
//! A fixed window of days or months is marked in the bits of the tick power: its time is wall-clock
//! time.
//!
//! `time` is when the counter is worth nothing any more, from which the windows find where
//! they started. A token bucket needs the instant it was filled until. Its end follows from how
//! fast it refills: the amount of its quota, as a divisor in 16 bits that is rounded up. So a
//! decision has nothing to compute for the end; whoever sweeps has.

use crate::algorithm::fixed_window::FixedWindow;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::token_bucket::TokenBucket;
use crate::quota::{Quota, Rough};
use crate::store::fingerprint::Tag;
use crate::usage::Usage;

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
const POWER_AT: u32 = 60;
const LEVEL: u64 = (1 << 48) - 1;
const REFILL_AT: u32 = 48;
/// By their power.
const TICKS: [u64; 16] = {
    let mut ticks = [1; 16];
    let mut power = 1;
    while power < ticks.len() {
        ticks[power] = ticks[power - 1] * 10;
        power += 1;
    }
    ticks
};
/// Marks a fixed window that ends on the wall clock. Only token buckets have a tick power, so the bit
/// is free.
const CALENDAR: u64 = 1 << POWER_AT;
/// Where the rank is. All of it is that of those who are blocked.
const RANK: u64 = 15 << RANK_AT;
/// What is the same in the first word of all cells that count in the same way.
const SORT: u64 = 7 << KIND_AT | 15 << POWER_AT;

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
        Self::of_either(used << 3 >> quota.burst_power(), used)
    }

    /// The same of what is used times the window, as two of the algorithms count it, without
    /// finding out how much that is: this is known when a counter is written, and others may be
    /// waiting for it.
    #[inline(always)]
    pub(super) fn of_weighted(weighted: u64, quota: &Quota) -> Self {
        if is_used_up(weighted, quota) {
            return Self::BLOCKED;
        }
        let power = quota.weight_power();
        Self::of_either(weighted << 3 >> quota.full_power(), weighted >> power)
    }

    /// As a cell's first word has it.
    #[inline]
    const fn bits(self) -> u64 {
        (self.0 as u64) << RANK_AT
    }

    #[inline(always)]
    fn of_either(share: u64, used: u64) -> Self {
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

    /// Returns whether [`expires_at`](Self::expires_at) is wall-clock time.
    pub(super) fn is_calendar(&self) -> bool {
        is_kind(&self.words, Kind::Fixed) && self.words[0] & CALENDAR != 0
    }

    /// When the counter is worth no more than a fresh one. Of a token bucket up to 0.4 % and
    /// a tick later than that, never earlier.
    pub(super) fn expires_at(&self) -> u64 {
        let [first, second] = self.words;
        let time = first & TIME;
        if is_kind(&self.words, Kind::Token) {
            let ticks = Rough::new((second >> REFILL_AT) as u16).divide_up(second & LEVEL);
            let tick = TICKS[(first >> POWER_AT) as usize];
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
    time | (kind as u64) << KIND_AT | rank.bits()
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
    /// As a state that stands at `now`.
    fn write(self, quota: &Quota, now: u64) -> Words;
    /// The state, if the words hold such a one, counted as this quota counts. Most do, and what
    /// is done with those is short.
    #[inline(always)]
    fn read_plain(words: Words, quota: &Quota) -> Option<Self> {
        is_kind(&words, Self::KIND).then(|| Self::read(words, quota))
    }
    /// The same in place of the words that it was read from. `weight` is what an attempt says.
    ///
    /// The rank changes when what is used has doubled or halved, or is another eighth of the limit,
    /// when nothing is left, and in every window. Where limits are large that is seldom, and to find
    /// it takes as long as all else that is done here.
    fn rewrite(self, before: Words, weight: u64, quota: &Quota) -> Words;
    fn used_of(weight: u64, quota: &Quota) -> u64;
    fn attempt(self, quota: &Quota, now: u64, cost: u64) -> Result<(Self, u64), Self>;
    fn used(self, quota: &Quota, now: u64) -> u64;
    fn granted(self, quota: &Quota, now: u64, used: u64) -> Usage;
    fn refused(self, quota: &Quota, now: u64, cost: u64, used: u64) -> Usage;
    fn charge(&mut self, quota: &Quota, now: u64, cost: u64);
    fn refund(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64);
}

/// The steps of the algorithm under the same names.
macro_rules! steps {
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
    fn write(self, quota: &Quota, now: u64) -> Words {
        let rank = Rank::of(self.used(quota, now), quota);
        let calendar = if quota.is_calendar() { CALENDAR } else { 0 };
        [
            first_word(self.end, Kind::Fixed, rank) | calendar,
            self.count,
        ]
    }

    #[inline(always)]
    fn rewrite(self, before: Words, count: u64, quota: &Quota) -> Words {
        let mut rank = before[0] & RANK;
        if !ranks_alike(before[1], count, quota.burst_power())
            || before[0] & TIME != self.end
            || count >= quota.burst()
            || rank == RANK
        {
            rank = Rank::of(count, quota).bits();
        }
        // Calendar windows do not come here: the mark need not be kept.
        [self.end | rank | (Kind::Fixed as u64) << KIND_AT, count]
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

    #[inline(always)]
    fn write(self, quota: &Quota, now: u64) -> Words {
        // Both counters stop at 32 bits by themselves.
        [
            first_word(
                self.start + 2 * quota.window_micros(),
                Kind::Sliding,
                Rank::of_weighted(self.weighted(quota, now), quota),
            ),
            self.previous << 32 | self.current,
        ]
    }

    #[inline(always)]
    fn rewrite(self, before: Words, weighted: u64, quota: &Quota) -> Words {
        let end = self.start + 2 * quota.window_micros();
        let mut rank = before[0] & RANK;
        if !ranks_alike(
            before[1] & u64::from(u32::MAX),
            self.current,
            quota.burst_power(),
        ) || before[0] & TIME != end
            || is_used_up(weighted, quota)
            || rank == RANK
        {
            rank = rank_anew(weighted, quota);
        }
        [
            end | rank | (Kind::Sliding as u64) << KIND_AT,
            self.previous << 32 | self.current,
        ]
    }

    steps!(SlidingWindow);
}

/// The sort of a token bucket that is counted in such ticks.
#[inline]
const fn token_of(tick_power: u8) -> u64 {
    (Kind::Token as u64) << KIND_AT | (tick_power as u64) << POWER_AT
}

/// Whether what is used, times the window, is a whole limit, rounded up.
#[inline(always)]
fn is_used_up(weighted: u64, quota: &Quota) -> bool {
    weighted > (quota.burst() - 1) * quota.by_window().value()
}

/// Whether two numbers rank alike where the limit is about `2^power`: they have as many digits, in
/// twos, and are in the same eighth of it.
#[inline(always)]
const fn ranks_alike(one: u64, other: u64, power: u32) -> bool {
    let differs = one ^ other;
    differs <= one & other && differs >> power.saturating_sub(3) == 0
}

/// [`Rank::of_weighted`] where a word has it.
#[cold]
#[inline(never)]
fn rank_anew(weighted: u64, quota: &Quota) -> u64 {
    Rank::of_weighted(weighted, quota).bits()
}

impl Small for TokenBucket {
    const KIND: Kind = Kind::Token;

    #[inline(always)]
    fn read_plain(words: Words, quota: &Quota) -> Option<Self> {
        let tick_power = quota.tick_power();
        // By the quota's word, so that nobody need compare them again.
        (words[0] & SORT == token_of(tick_power)).then(|| Self {
            tick_power,
            ..Self::read(words, quota)
        })
    }

    #[inline]
    fn read(words: Words, _quota: &Quota) -> Self {
        Self {
            level: words[1] & LEVEL,
            filled_until: words[0] & TIME,
            tick_power: (words[0] >> POWER_AT) as u8,
        }
    }

    #[inline(always)]
    fn write(self, quota: &Quota, now: u64) -> Words {
        let refill = u64::from(quota.by_amount().rough().bits());
        let rank = if self.tick_power == quota.tick_power() {
            Rank::of_weighted(self.level, quota)
        } else {
            Rank::of(self.used(quota, now), quota)
        };
        [
            first_word(self.filled_until, Kind::Token, rank) | token_of(self.tick_power),
            self.level | refill << REFILL_AT,
        ]
    }

    #[inline(always)]
    fn rewrite(self, before: Words, level: u64, quota: &Quota) -> Words {
        let mut rank = before[0] & RANK;
        if !ranks_alike(before[1] & LEVEL, level, quota.full_power())
            || is_used_up(level, quota)
            || rank == RANK
        {
            rank = rank_anew(level, quota);
        }
        let refill = u64::from(quota.by_amount().rough().bits());
        [
            self.filled_until | rank | token_of(self.tick_power),
            level | refill << REFILL_AT,
        ]
    }

    steps!(TokenBucket);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Charges as often as there is room, and looks at what is written each time.
    fn charge_and_look<S: Small>(quota: &str, steps: &[(u64, u64)]) -> Result<(), TestCaseError> {
        let quota: Quota = quota.parse().expect("valid");
        let (mut words, mut now) = (Words::default(), 1_735_689_600_000_000);
        for (cost, micros) in steps {
            now += micros;
            let known = S::read_plain(words, &quota);
            let Ok((after, weight)) = known.unwrap_or_default().attempt(&quota, now, *cost) else {
                continue;
            };
            let used = after.used(&quota, now);
            prop_assert_eq!(S::used_of(weight, &quota), used);
            let anew = after.write(&quota, now);
            let again = match known {
                Some(_) => after.rewrite(words, weight, &quota),
                None => anew,
            };
            prop_assert_eq!([again[0] & !RANK, again[1]], [anew[0] & !RANK, anew[1]]);
            let ranks = [again, anew].map(|words| words[0] >> RANK_AT & 15);
            // Of a sliding window it may be late: the window before fades meanwhile.
            if S::KIND != Kind::Sliding {
                prop_assert!(ranks[0].abs_diff(ranks[1]) <= 1, "{ranks:?} at {used}");
            }
            let is_blocked = again[0] & RANK == RANK;
            prop_assert_eq!(is_blocked, used >= quota.burst(), "{} used", used);
            words = again;
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn what_is_written_again_is_what_is_written(
            steps in prop::collection::vec((0..4_u64, 0..9_000_000_u64), 1..80),
        ) {
            charge_and_look::<TokenBucket>("20/minute, token-bucket", &steps)?;
            charge_and_look::<TokenBucket>("1000/hour, token-bucket, burst 100", &steps)?;
            charge_and_look::<FixedWindow>("100/hour, fixed-window", &steps)?;
            charge_and_look::<TokenBucket>("2000000/hour, token-bucket, burst 9", &steps)?;
            charge_and_look::<SlidingWindow>("20/minute", &steps)?;
            charge_and_look::<FixedWindow>("20/minute, fixed-window", &steps)?;
        }
    }

    /// Whoever climbs step by step ranks as high as who got there at once. Ranks were kept for as
    /// long as what is used did not double, and at 999 of 1000 a counter was as dispensable as at 512.
    #[test]
    fn a_rank_follows_every_step() {
        let charge = |quota: &Quota, times: u64, cost: u64| {
            let mut words = FixedWindow::default().write(quota, 0);
            for _ in 0..times {
                let state = FixedWindow::read_plain(words, quota).expect("of this sort");
                let (after, count) = state.attempt(quota, 1, cost).expect("room");
                words = after.rewrite(words, count, quota);
            }
            words[0] & RANK
        };
        for limit in [10, 100, 1_000] {
            let quota = format!("{limit}/hour, fixed-window")
                .parse()
                .expect("valid");
            for used in 1..=limit {
                assert_eq!(
                    charge(&quota, used, 1),
                    charge(&quota, 1, used),
                    "{used} of {limit}"
                );
            }
        }
    }

    /// A flood of keys seen once must not push out who was seen five times in a thousand.
    #[test]
    fn whoever_was_seen_more_often_ranks_higher() {
        for quota in [
            "1000/hour",
            "1000/hour, token-bucket",
            "1000/month, token-bucket",
        ] {
            let quota: Quota = quota.parse().expect("valid");
            let weight = quota.by_window().value();
            let rank = |used: u64| Rank::of_weighted(used * weight, &quota);
            assert!(rank(1) < rank(5), "{quota}");
            assert!(rank(5) < rank(500) && rank(500) < Rank::BLOCKED, "{quota}");
            assert!(
                rank(999) < Rank::BLOCKED && rank(1000) == Rank::BLOCKED,
                "{quota}"
            );
        }
    }
}
