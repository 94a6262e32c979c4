//! Result of a request: [`Decision`].

use std::time::Duration;

use crate::batch::MAX_CHECKS;
use crate::clock::Timestamp;
use crate::usage::{Outcome, Usage};

/// Result of a request: allowed or denied, and the usage of the binding quota.
///
/// The *binding* quota is the one to report: if allowed, the one with the least left (then the more
/// specific rule, then the longer window); if denied, the violated one with the longest wait.
/// [Quiet](crate::policy::Rule::quiet) rules come last among those that allow.
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
/// assert_eq!(third.retry_after(), Some(Duration::from_secs(60)));
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Decision {
    binding: Usage,
    /// Index of the binding quota; [`MAX_CHECKS`] if no quota applied.
    index: usize,
    at: Timestamp,
    charged: u64,
    /// Microseconds that were added to the store's instants to get these.
    wall_offset: i64,
}

impl Decision {
    /// Returns the decision that follows from usages of one group, taken at `at`. `order` ranks the
    /// usage at an index among equals; the smallest is reported. With the bit [`QUIET`], a usage that
    /// is allowed is reported only if all are.
    #[inline]
    pub(crate) fn new(at: Timestamp, usages: &[Usage], order: impl Fn(usize) -> (u8, u64)) -> Self {
        let Some((index, binding)) = tightest(usages, order) else {
            return Self::of_nothing(at);
        };
        Self {
            binding,
            index,
            at,
            charged: 0,
            wall_offset: 0,
        }
    }

    /// Returns the decision on a request that nothing counts.
    pub(crate) const fn of_nothing(at: Timestamp) -> Self {
        Self {
            binding: Usage::new(u64::MAX, 0, at, Outcome::Allowed),
            index: MAX_CHECKS,
            at,
            charged: 0,
            wall_offset: 0,
        }
    }

    /// Sets what has been charged.
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

    /// Returns whether the request is allowed.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        // If any quota has denied it, the binding one has.
        self.binding.is_allowed()
    }

    /// Returns whether the request is denied.
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        !self.is_allowed()
    }

    /// Returns the usage of the binding quota. Its limit is `u64::MAX` if no quota applied.
    #[must_use]
    pub const fn usage(&self) -> &Usage {
        &self.binding
    }

    /// Returns the index of the binding quota, in the order of the limiter or policy; `None` if no quota
    /// applied.
    #[must_use]
    pub const fn binding(&self) -> Option<usize> {
        if self.index < MAX_CHECKS {
            Some(self.index)
        } else {
            None
        }
    }

    /// Returns the binding limit; `u64::MAX` if no quota applied.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.binding.limit()
    }

    /// Returns what is left of the binding limit; `u64::MAX` if no quota applied.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.binding.remaining()
    }

    /// Returns what is used of the binding limit.
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

    /// If denied, returns the time until the request will be allowed, to the microsecond. `None` if allowed,
    /// or if it will never be.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.binding.outcome() {
            Outcome::Denied => Some(self.reset_at().duration_since(self.at)),
            Outcome::Allowed | Outcome::ExceedsCapacity => None,
        }
    }

    /// Returns whether the request can never be allowed: its cost exceeds the limit, or the quota is
    /// `blocked` without an end.
    #[must_use]
    pub const fn can_never_succeed(&self) -> bool {
        matches!(self.binding.outcome(), Outcome::ExceedsCapacity)
    }

    /// Returns the instant of the decision, on the wall clock.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns what was charged: the cost if it was allowed or recorded; 0 if it was denied or peeked.
    #[must_use]
    pub const fn charged(&self) -> u64 {
        self.charged
    }
}

/// Bit of the rank of quotas that are reported only when they deny.
pub(crate) const QUIET: u8 = 1 << 7;

/// Returns the usage to report, with its index. Of equals it is the first.
#[inline]
fn tightest(usages: &[Usage], order: impl Fn(usize) -> (u8, u64)) -> Option<(usize, Usage)> {
    let severity = |index: usize, usage: &Usage| match usage.outcome() {
        Outcome::ExceedsCapacity => (0, 0),
        Outcome::Denied => (1, u64::MAX - usage.reset_at().as_micros()),
        Outcome::Allowed => (2 + (order(index).0 & QUIET), usage.remaining()),
    };
    let all = usages.iter().enumerate();
    let tightest = all.min_by(|(index, usage), (other_index, other)| {
        let by_severity = severity(*index, usage).cmp(&severity(*other_index, other));
        by_severity.then_with(|| order(*index).cmp(&order(*other_index)))
    });
    tightest.map(|(index, usage)| (index, *usage))
}
