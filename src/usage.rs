//! State of counters after a check: [`Usage`], and [`Usages`] for a whole batch.

use std::borrow::Cow;
use std::fmt;

use crate::batch::{Batch, MAX_BATCH};
use crate::clock::Timestamp;
use crate::quota::Quota;

/// Result of a check for one counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The counter had room.
    #[default]
    Allowed,
    /// The counter has no room now, and will have.
    Denied,
    /// The counter will never have room: the cost exceeds the limit, or the quota is `blocked` without
    /// an end.
    ExceedsCapacity,
}

/// State of one counter after a check.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    limit: u64,
    used: u64,
    /// The reset in the low 53 bits, the outcome in the topmost two. Three whole words, because a byte that
    /// is written and then copied with its neighbours stalls the processor for longer than the arithmetic
    /// of a decision takes.
    reset_and_outcome: u64,
}

const OUTCOME_AT: u32 = 62;

impl Usage {
    /// Returns a usage, for stores that compute it elsewhere, for instance in a script. `reset_at` has the
    /// meaning of [`Usage::reset_at`].
    #[inline]
    #[must_use]
    pub const fn new(limit: u64, used: u64, reset_at: Timestamp, outcome: Outcome) -> Self {
        Self {
            limit,
            used,
            reset_and_outcome: reset_at.as_micros() | (outcome as u64) << OUTCOME_AT,
        }
    }

    /// Returns the usage of a blocked quota.
    pub(crate) const fn blocked(now: Timestamp) -> Self {
        Self::new(0, 0, now, Outcome::ExceedsCapacity)
    }

    /// Returns the usage of a quota that is blocked until an instant.
    pub(crate) const fn blocked_until(until: Timestamp) -> Self {
        Self::new(0, 0, until, Outcome::Denied)
    }

    /// Returns the usage of a quota that counts nothing: `blocked` or `unlimited`.
    #[inline]
    pub(crate) const fn without_counting(quota: &Quota, now: u64) -> Option<Self> {
        let now = Timestamp::end(now);
        match quota.burst() {
            0 => Some(Self::blocked(now)),
            u64::MAX => Some(Self::new(u64::MAX, 0, now, Outcome::Allowed)),
            _ => None,
        }
    }

    /// Returns the limit: the amount of the quota, or the burst of a token bucket.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns what is used, including this request if it was charged. A fraction counts as a whole.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// Returns what is left; 0 if a charge exceeded the limit.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Returns the reset. If allowed: the end of the window (fixed and sliding window), or the instant at
    /// which nothing is used any more (the others). If denied: the instant at which this request will be
    /// allowed.
    #[must_use]
    pub const fn reset_at(&self) -> Timestamp {
        Timestamp::again(self.reset_and_outcome & ((1 << OUTCOME_AT) - 1))
    }

    /// Returns this usage with its reset moved by `micros` microseconds, to another clock.
    #[inline]
    #[must_use]
    pub(crate) const fn offset_by(self, micros: i64) -> Self {
        if micros == 0 {
            return self;
        }
        let reset_at = self.reset_at().offset_by(micros);
        Self::new(self.limit, self.used, reset_at, self.outcome())
    }

    /// Returns the outcome.
    #[inline]
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self.reset_and_outcome >> OUTCOME_AT {
            0 => Outcome::Allowed,
            1 => Outcome::Denied,
            _ => Outcome::ExceedsCapacity,
        }
    }

    /// Returns whether this counter had room.
    #[inline]
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.reset_and_outcome >> OUTCOME_AT == 0
    }
}

#[expect(clippy::missing_fields_in_debug, reason = "two of them share a field")]
impl fmt::Debug for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Usage")
            .field("limit", &self.limit)
            .field("used", &self.used)
            .field("reset_at", &self.reset_at())
            .field("outcome", &self.outcome())
            .finish()
    }
}

/// Usages that are stored without an allocation. Measured for one usage through a virtual call: 13.8 ns
/// with 4 inline, 24.8 ns with 8.
const INLINE: usize = 4;

/// Answer of a store to a [`Batch`]: one usage per check, in the order of the checks, all at one
/// instant.
///
/// If a group was not charged, the usages of its checks that had room are those without the charge.
#[derive(Clone)]
#[must_use]
pub struct Usages {
    at: Timestamp,
    len: u8,
    /// Checks of the group [`Live`](crate::Group::Live); they come first.
    live: u8,
    inline: [Usage; INLINE],
    /// All usages, if there are more than fit inline. One word, because the whole is moved often.
    spilled: Option<Box<[Usage; MAX_BATCH]>>,
}

impl Usages {
    /// Returns an empty answer to a batch that was decided at this instant. [Push](Self::push) a
    /// usage for each of its checks.
    #[inline]
    pub fn new(batch: &Batch<'_>, at: Timestamp) -> Self {
        Self::with_live(batch.live_len(), at)
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a batch has at most 24 checks"
    )]
    pub(crate) const fn with_live(live: usize, at: Timestamp) -> Self {
        Self {
            at,
            len: 0,
            live: live as u8,
            inline: [Usage::new(0, 0, Timestamp::EPOCH, Outcome::Allowed); INLINE],
            spilled: None,
        }
    }

    /// Returns the usages of a batch with so many checks in the group [`Live`](crate::Group::Live).
    #[inline(always)]
    pub(crate) fn collect(
        live: usize,
        at: Timestamp,
        usages: impl ExactSizeIterator<Item = Usage>,
    ) -> Self {
        let mut all = Self::with_live(live, at);
        all.set_len(usages.len());
        for (free, usage) in all.all_mut().iter_mut().zip(usages) {
            *free = usage;
        }
        all
    }

    /// Adds the usage of the next check. Ignores more than [`MAX_BATCH`], the most checks of a batch.
    #[inline]
    pub fn push(&mut self, usage: Usage) {
        let index = usize::from(self.len);
        self.set_len(index + 1);
        if let Some(free) = self.all_mut().get_mut(index) {
            *free = usage;
        }
    }

    /// Sets the number of usages, at most [`MAX_BATCH`]. Those that are added are unspecified.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a batch has at most 24 checks"
    )]
    fn set_len(&mut self, len: usize) {
        if len > INLINE {
            self.spill();
        }
        self.len = len.min(MAX_BATCH) as u8;
    }

    #[cold]
    fn spill(&mut self) {
        self.spilled.get_or_insert_with(|| {
            let mut all = [Usage::default(); MAX_BATCH];
            all[..INLINE].copy_from_slice(&self.inline);
            Box::new(all)
        });
    }

    #[inline]
    fn all_mut(&mut self) -> &mut [Usage] {
        match &mut self.spilled {
            None => &mut self.inline,
            Some(all) => &mut all[..],
        }
    }

    /// Returns a copy with all instants moved by `micros` microseconds, to another clock.
    pub(crate) fn offset_by(&self, micros: i64) -> Self {
        let usages = self.usages().iter().map(|usage| usage.offset_by(micros));
        Self::collect(usize::from(self.live), self.at.offset_by(micros), usages)
    }

    /// Returns usages in which the checks of blocks that end are denied until then. For a store, a block
    /// has no end. `until` returns the end of the block of a check, on the wall clock; `wall_offset`
    /// converts the store's instants to it.
    pub(crate) fn with_block_ends(
        &self,
        until: impl Fn(usize) -> Option<Timestamp>,
        wall_offset: i64,
    ) -> Cow<'_, Self> {
        if (0..self.usages().len()).all(|index| until(index).is_none()) {
            return Cow::Borrowed(self);
        }
        let on_store_clock = |until: Timestamp| until.offset_by(wall_offset.saturating_neg());
        let usages = self.usages().iter().enumerate().map(|(index, usage)| {
            let until = until(index).map(on_store_clock);
            until.map_or(*usage, Usage::blocked_until)
        });
        Cow::Owned(Self::collect(usize::from(self.live), self.at, usages))
    }

    /// Returns whether every check of the group [`Live`](crate::Group::Live) had room. Dry runs do not
    /// matter.
    #[inline]
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.live().iter().all(Usage::is_allowed)
    }

    /// Returns the instant of the decision, on the store's clock.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns one usage per check.
    #[inline]
    #[must_use]
    pub fn usages(&self) -> &[Usage] {
        let all = match &self.spilled {
            None => &self.inline[..],
            Some(all) => &all[..],
        };
        &all[..usize::from(self.len)]
    }

    /// Returns the usages of the group [`Live`](crate::Group::Live).
    #[inline]
    pub(crate) fn live(&self) -> &[Usage] {
        let usages = self.usages();
        &usages[..usize::from(self.live).min(usages.len())]
    }
}

/// Compares the instant and the usages.
impl PartialEq for Usages {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at && self.usages() == other.usages()
    }
}

impl Eq for Usages {}

impl fmt::Debug for Usages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Usages")
            .field("allowed", &self.is_allowed())
            .field("at", &self.at)
            .field("usages", &self.usages())
            .finish_non_exhaustive()
    }
}
