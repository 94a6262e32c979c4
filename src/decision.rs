//! What a counter says, and what follows from all of them.

use std::fmt;
use std::time::Duration;

use crate::batch::MAX_CHECKS;
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::quota::Quota;

/// Whether a counter had room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// There was room.
    #[default]
    Allowed,
    /// There is none now, but there will be.
    Denied,
    /// There never will be: the cost is over the limit, or everything is blocked.
    Never,
}

/// How one counter stands.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    limit: u64,
    used: u64,
    /// The reset in the low 53 bits, the outcome in the topmost two. Three whole words: a
    /// verdict has eight usages, and a byte that is written and then copied with its neighbours
    /// stalls the processor for longer than the arithmetic of a decision takes.
    reset_and_outcome: u64,
}

const OUTCOME_AT: u32 = 62;

impl Usage {
    /// For stores that compute usages elsewhere, in a script for instance. `reset_at` is as
    /// [`Usage::reset_at`] says.
    #[inline]
    #[must_use]
    pub const fn new(limit: u64, used: u64, reset_at: Timestamp, outcome: Outcome) -> Self {
        Self {
            limit,
            used,
            reset_and_outcome: reset_at.as_micros() | (outcome as u64) << OUTCOME_AT,
        }
    }

    /// What a blocked quota says to everything.
    pub(crate) const fn blocked(now: Timestamp) -> Self {
        Self::new(0, 0, now, Outcome::Never)
    }

    /// What quotas say that count nothing: `blocked` and `unlimited`.
    #[inline]
    pub(crate) const fn without_counting(quota: &Quota, now: u64) -> Option<Self> {
        let now = Timestamp::end(now);
        match quota.burst() {
            0 => Some(Self::blocked(now)),
            u64::MAX => Some(Self::new(u64::MAX, 0, now, Outcome::Allowed)),
            _ => None,
        }
    }

    /// The most that may be used: the amount of the quota, or the burst of a token bucket.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// What is used, this request included if it was charged. A fraction counts as a whole.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// What is left; 0 if a charge went over the limit.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Allowed: when the window ends (fixed and sliding window), or when the quota is whole
    /// again (the others). Denied: when the same request will be allowed.
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

    /// What this counter said.
    #[inline]
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self.reset_and_outcome >> OUTCOME_AT {
            0 => Outcome::Allowed,
            1 => Outcome::Denied,
            _ => Outcome::Never,
        }
    }

    /// Whether this counter had room.
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

/// A store's answer to a [`Batch`](crate::Batch): one usage for each of its checks, in their order, all of
/// the same instant.
///
/// All-or-nothing: if one counter has no room, none was charged, and those that had room say
/// how they stand without the charge.
#[derive(Clone, Copy)]
#[must_use]
pub struct Usages {
    usages: [Usage; MAX_CHECKS],
    len: u32,
    allowed: bool,
    at: Timestamp,
}

impl Usages {
    /// No usages yet, at the instant that the store decided at.
    #[inline(always)]
    pub const fn new(at: Timestamp) -> Self {
        Self {
            // All zeros, which are written fastest. Nobody sees them.
            usages: [Usage::new(0, 0, Timestamp::EPOCH, Outcome::Allowed); MAX_CHECKS],
            len: 0,
            allowed: true,
            at,
        }
    }

    /// The same place in memory for another try, at the instant it is made.
    #[inline]
    pub(crate) fn restart(&mut self, at: Timestamp) {
        self.len = 0;
        self.allowed = true;
        self.at = at;
    }

    /// Adds the usage of the next check. More than [`MAX_CHECKS`] are ignored: no batch has
    /// as many.
    #[inline]
    pub fn push(&mut self, usage: Usage) {
        if let Some(free) = self.usages.get_mut(self.len as usize) {
            *free = usage;
            self.len += 1;
            self.allowed &= usage.is_allowed();
        }
    }

    /// The place of the next usage, to be filled in where it lies: with one that is allowed,
    /// or the verdict has to be started again.
    #[inline]
    pub(crate) fn next(&mut self) -> &mut Usage {
        let index = (self.len as usize).min(MAX_CHECKS - 1);
        self.len += 1;
        &mut self.usages[index]
    }

    /// Returns this verdict with all its instants moved by `micros` microseconds, to another clock.
    pub(crate) fn offset_by(&self, micros: i64) -> Self {
        let mut moved = Self::new(self.at.offset_by(micros));
        for usage in self.usages() {
            moved.push(usage.offset_by(micros));
        }
        moved
    }

    /// Whether every counter had room.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// The instant at which the batch was decided, by the store's clock.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// One usage per check.
    #[inline]
    #[must_use]
    pub fn usages(&self) -> &[Usage] {
        &self.usages[..self.len as usize]
    }
}

/// What lies beyond the usages does not count.
impl PartialEq for Usages {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at && self.usages() == other.usages()
    }
}

impl Eq for Usages {}

impl fmt::Debug for Usages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Usages")
            .field("allowed", &self.allowed)
            .field("at", &self.at)
            .field("usages", &self.usages())
            .finish_non_exhaustive()
    }
}

/// Allow or deny, and how the quota that decides it stands.
///
/// The *binding* quota speaks for all: if allowed, the one with the least left (then the more
/// specific rule, then the longer window); if denied, the violated one with the longest wait.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock};
///
/// let limiter = Limiter::builder()
///     .quota("2/minute")
///     .quota("100/hour")
///     .clock(ManualClock::new())
///     .build()?;
/// let first = limiter.check("alice").wait()?;
/// assert!(first.is_allowed());
/// assert_eq!((first.limit(), first.remaining()), (2, 1));
///
/// limiter.check("alice").wait()?;
/// let third = limiter.check("alice").wait()?;
/// assert!(third.is_denied());
/// assert_eq!(third.retry_after(), Some(Duration::from_secs(90)));
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Decision {
    binding: Usage,
    /// Past the end, if nothing applied.
    index: usize,
    at: Timestamp,
    charged: u64,
    /// Microseconds that were added to the store's instants to get these.
    wall_offset: i64,
}

impl Decision {
    /// What follows from a store's verdict on so many checks. `order` says of each how it ranks
    /// among equals, the smallest first.
    #[inline]
    pub(crate) fn new(
        verdict: &Usages,
        order: impl ExactSizeIterator<Item = (u8, u64)>,
    ) -> Result<Self, StoreError> {
        let usages = verdict.usages();
        if usages.len() != order.len() {
            return Err(StoreError::refused(format!(
                "asked about {} counters, the store answered for {}",
                order.len(),
                usages.len(),
            )));
        }
        let (binding, index) = match usages {
            [] => return Ok(Self::of_nothing(verdict.at())),
            several => tightest(several, order),
        };
        Ok(Self {
            binding,
            index,
            at: verdict.at(),
            charged: 0,
            wall_offset: 0,
        })
    }

    /// What follows if nothing is asked.
    pub(crate) const fn of_nothing(at: Timestamp) -> Self {
        Self {
            binding: Usage::new(u64::MAX, 0, at, Outcome::Allowed),
            index: MAX_CHECKS,
            at,
            charged: 0,
            wall_offset: 0,
        }
    }

    /// What follows from a single check.
    #[inline]
    pub(crate) const fn of_one(usage: Usage, at: Timestamp) -> Self {
        Self {
            binding: usage,
            index: 0,
            at,
            charged: 0,
            wall_offset: 0,
        }
    }

    /// Notes what has been charged.
    #[inline]
    pub(crate) const fn with_charged(mut self, charged: u64) -> Self {
        self.charged = charged;
        self
    }

    /// Converts the store's instants to the wall clock, which differs from the store's clock by
    /// `offset` microseconds.
    #[inline]
    pub(crate) const fn on_wall(self, offset: i64) -> Self {
        if offset == 0 {
            return self;
        }
        Self {
            binding: self.binding.offset_by(offset),
            at: self.at.offset_by(offset),
            wall_offset: offset,
            ..self
        }
    }

    /// Returns the microseconds that [`on_wall`](Self::on_wall) has added.
    #[inline]
    pub(crate) const fn wall_offset(&self) -> i64 {
        self.wall_offset
    }

    /// Returns the instant of the decision on the store's clock, as `Store::refund` expects it.
    pub(crate) const fn charged_at(&self) -> Timestamp {
        self.at.offset_by(-self.wall_offset)
    }

    /// Returns the usage of the binding quota with its reset on the store's clock.
    pub(crate) const fn store_usage(&self) -> Usage {
        self.binding.offset_by(-self.wall_offset)
    }

    /// Whether the request may go on.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        // If any quota has denied it, the binding one has.
        self.binding.is_allowed()
    }

    /// Whether the request must be turned away.
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        !self.is_allowed()
    }

    /// How the binding quota stands. Where nothing applied, a quota of `u64::MAX`.
    #[must_use]
    pub const fn usage(&self) -> &Usage {
        &self.binding
    }

    /// Which quota is the binding one, counted in the order in which they were given; `None`
    /// if nothing applied.
    #[must_use]
    pub const fn binding(&self) -> Option<usize> {
        if self.index < MAX_CHECKS {
            Some(self.index)
        } else {
            None
        }
    }

    /// The binding limit; `u64::MAX` if nothing applied.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.binding.limit()
    }

    /// What is left of the binding limit; `u64::MAX` if nothing applied.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.binding.remaining()
    }

    /// What is used of the binding limit.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.binding.used()
    }

    /// Returns when the binding quota resets, on the wall clock; see [`Usage::reset_at`]. To wait for
    /// it, use [`retry_after`](Self::retry_after), which a step of the wall clock does not change.
    #[must_use]
    pub const fn reset_at(&self) -> Timestamp {
        self.binding.reset_at()
    }

    /// If denied, how long to wait: exactly as long as needed, to the microsecond. `None` if
    /// allowed, or if waiting cannot help.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.binding.outcome() {
            Outcome::Denied => Some(self.reset_at().duration_since(self.at)),
            Outcome::Allowed | Outcome::Never => None,
        }
    }

    /// Whether the same request can never be allowed: it costs more than the limit, or the
    /// limit is `blocked`.
    #[must_use]
    pub const fn is_hopeless(&self) -> bool {
        matches!(self.binding.outcome(), Outcome::Never)
    }

    /// Returns the instant of the decision, on the wall clock.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// What was charged: nothing if it was denied or only looked at, the cost if it was allowed
    /// or recorded.
    #[must_use]
    pub const fn charged(&self) -> u64 {
        self.charged
    }
}

/// The usage that speaks for all of them. Smaller is tighter; of equals it is the first.
fn tightest(usages: &[Usage], order: impl Iterator<Item = (u8, u64)>) -> (Usage, usize) {
    let rows = usages.iter().zip(order).enumerate();
    let tightest = rows.min_by_key(|(_, (usage, order))| {
        let (hope, left) = match usage.outcome() {
            Outcome::Never => (0, 0),
            Outcome::Denied => (1, u64::MAX - usage.reset_at().as_micros()),
            Outcome::Allowed => (2, usage.remaining()),
        };
        (hope, left, *order)
    });
    tightest.map_or((Usage::default(), MAX_CHECKS), |(index, (usage, _))| {
        (*usage, index)
    })
}
