//! What a counter says, and what follows from all of them.

use std::fmt;
use std::time::Duration;

use crate::batch::{MAX_CHECKS, Outline};
use crate::clock::Timestamp;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    limit: u64,
    used: u64,
    reset_at: Timestamp,
    outcome: Outcome,
}

impl Usage {
    /// For stores that compute usages elsewhere, in a script for instance. `reset_at` is as
    /// [`Usage::reset_at`] says.
    #[must_use]
    pub const fn new(limit: u64, used: u64, reset_at: Timestamp, outcome: Outcome) -> Self {
        Self {
            limit,
            used,
            reset_at,
            outcome,
        }
    }

    /// What a blocked quota says to everything.
    pub(crate) const fn blocked(now: Timestamp) -> Self {
        Self::new(0, 0, now, Outcome::Never)
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
        self.reset_at
    }

    /// What this counter said.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Whether this counter had room.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.outcome, Outcome::Allowed)
    }
}

/// A store's answer to a [`Batch`](crate::Batch): one usage for each of its checks, in their order, all of
/// the same instant.
///
/// All-or-nothing: if one counter has no room, none was charged, and those that had room say
/// how they stand without the charge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    usages: [Usage; MAX_CHECKS],
    len: u8,
    allowed: bool,
    at: Timestamp,
}

impl Verdict {
    /// No usages yet, at the instant that the store decided at.
    #[must_use]
    pub fn new(at: Timestamp) -> Self {
        Self {
            usages: [Usage::default(); MAX_CHECKS],
            len: 0,
            allowed: true,
            at,
        }
    }

    /// Adds the usage of the next check. More than [`MAX_CHECKS`] are ignored: no batch has
    /// as many.
    #[inline]
    pub fn push(&mut self, usage: Usage) {
        if let Some(free) = self.usages.get_mut(usize::from(self.len)) {
            *free = usage;
            self.len += 1;
            self.allowed &= usage.is_allowed();
        }
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
    #[must_use]
    pub fn usages(&self) -> &[Usage] {
        &self.usages[..usize::from(self.len)]
    }

    /// Replaces the usages of those that had room, because the batch was denied by another.
    pub(crate) fn usages_mut(&mut self) -> &mut [Usage] {
        &mut self.usages[..usize::from(self.len)]
    }
}

impl fmt::Debug for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verdict")
            .field("allowed", &self.allowed)
            .field("at", &self.at)
            .field("usages", &self.usages())
            .finish()
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
/// assert_eq!(third.usages()[1].remaining(), 98);
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Decision {
    verdict: Verdict,
    binding: u8,
    cost: u64,
}

impl Decision {
    /// What follows for a batch from its store's verdict.
    #[inline]
    pub(crate) fn new(verdict: Verdict, outline: &Outline) -> Self {
        // Smaller is tighter, so that the first of equals is the more specific one.
        let tightest = verdict.usages().iter().zip(&outline.order).enumerate();
        let tightest = tightest.min_by_key(|(_, (usage, order))| {
            let (hope, left) = match usage.outcome() {
                Outcome::Never => (0, 0),
                Outcome::Denied => (1, u64::MAX - usage.reset_at().as_micros()),
                Outcome::Allowed => (2, usage.remaining()),
            };
            (hope, left, **order)
        });
        Self {
            binding: tightest.map_or(0, |(index, _)| u8::try_from(index).unwrap_or(0)),
            cost: outline.cost,
            verdict,
        }
    }

    /// Whether the request may go on.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.verdict.is_allowed()
    }

    /// Whether the request must be turned away.
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        !self.is_allowed()
    }

    /// The binding quota's usage; `None` if nothing applied.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage> {
        self.usages().get(self.binding())
    }

    /// The usages of all quotas, in the order in which they were asked.
    #[must_use]
    pub fn usages(&self) -> &[Usage] {
        self.verdict.usages()
    }

    /// Which of [`usages`](Decision::usages) is the binding one.
    #[must_use]
    pub const fn binding(&self) -> usize {
        self.binding as usize
    }

    /// The binding limit; `u64::MAX` if nothing applied.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.usage().map_or(u64::MAX, Usage::limit)
    }

    /// What is left of the binding limit; `u64::MAX` if nothing applied.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.usage().map_or(u64::MAX, Usage::remaining)
    }

    /// What is used of the binding limit.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.usage().map_or(0, Usage::used)
    }

    /// When the binding quota resets; see [`Usage::reset_at`].
    #[must_use]
    pub fn reset_at(&self) -> Timestamp {
        self.usage().map_or(self.at(), Usage::reset_at)
    }

    /// If denied, how long to wait: exactly as long as needed, to the microsecond. `None` if
    /// allowed, or if waiting cannot help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let denied = self
            .usage()
            .filter(|usage| usage.outcome() == Outcome::Denied)?;
        Some(denied.reset_at().duration_since(self.at()))
    }

    /// Whether the same request can never be allowed: it costs more than the limit, or the
    /// limit is `blocked`.
    #[must_use]
    pub fn is_hopeless(&self) -> bool {
        self.usage()
            .is_some_and(|usage| usage.outcome() == Outcome::Never)
    }

    /// The instant of the decision.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.verdict.at()
    }

    /// What was charged, if it was allowed.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("allowed", &self.is_allowed())
            .field("binding", &self.usage())
            .field("usages", &self.usages().len())
            .field("at", &self.at())
            .finish()
    }
}
