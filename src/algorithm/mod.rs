//! The five algorithms as pure functions of a quota, a state, an instant and a cost.
//!
//! They read no clock, take no lock and have no keys. A store keeps one [`State`] per counter and calls
//! them under a lock of its own:
//!
//! ```
//! use tollgate::algorithm::State;
//! use tollgate::{Quota, Timestamp};
//!
//! let quota: Quota = "2/minute".parse()?;
//! let now = Timestamp::from_secs(1_735_689_600);
//! let mut state = State::fresh(&quota);
//!
//! for left in [1, 0] {
//!     let usage = state.assess(&quota, now, 1);
//!     assert!(usage.is_allowed());
//!     assert_eq!(usage.remaining(), left);
//!     state.charge(&quota, now, 1);
//! }
//! let denied = state.assess(&quota, now, 1);
//! assert!(!denied.is_allowed());
//!
//! // Retry-After is exact: allowed then, denied one microsecond earlier.
//! let free = denied.reset_at();
//! assert!(state.assess(&quota, free, 1).is_allowed());
//! let just_before = Timestamp::from_micros(free.as_micros() - 1);
//! assert!(!state.assess(&quota, just_before, 1).is_allowed());
//! # Ok::<(), tollgate::ValidationError>(())
//! ```

pub(crate) mod fixed_window;
pub(crate) mod sliding_buckets;
pub(crate) mod sliding_log;
pub(crate) mod sliding_window;
pub(crate) mod token_bucket;

use crate::clock::Timestamp;
use crate::quota::{Algorithm, Quota};
use crate::usage::{Outcome, Usage};

use self::fixed_window::FixedWindow;
use self::sliding_buckets::SlidingBuckets;
use self::sliding_log::SlidingLog;
use self::sliding_window::SlidingWindow;
use self::token_bucket::TokenBucket;

/// State of one counter.
///
/// A state belongs to an algorithm and a window. The amount may change from call to call (another tier,
/// an override, a reload) and the counts are kept. For a quota of another algorithm, the state counts
/// as fresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Fixed(FixedWindow),
    Sliding(SlidingWindow),
    Token(TokenBucket),
    Buckets(SlidingBuckets),
    Log(SlidingLog),
}

/// Evaluates an expression with the state of any algorithm.
macro_rules! each {
    ($kind:expr, $state:ident => $step:expr) => {
        match $kind {
            Kind::Fixed($state) => $step,
            Kind::Sliding($state) => $step,
            Kind::Token($state) => $step,
            Kind::Buckets($state) => $step,
            Kind::Log($state) => $step,
        }
    };
}

impl State {
    /// Creates the state of a counter that was never charged.
    #[must_use]
    pub fn fresh(quota: &Quota) -> Self {
        Self(match quota.algorithm() {
            Algorithm::FixedWindow => Kind::Fixed(FixedWindow::default()),
            Algorithm::SlidingWindow => Kind::Sliding(SlidingWindow::default()),
            Algorithm::TokenBucket => Kind::Token(TokenBucket::default()),
            Algorithm::SlidingBuckets => Kind::Buckets(SlidingBuckets::default()),
            Algorithm::SlidingLog => Kind::Log(SlidingLog::default()),
        })
    }

    /// Returns whether the state has the algorithm and the number of buckets of the quota.
    fn is_for(&self, quota: &Quota) -> bool {
        match &self.0 {
            Kind::Fixed(_) => quota.algorithm() == Algorithm::FixedWindow,
            Kind::Sliding(_) => quota.algorithm() == Algorithm::SlidingWindow,
            Kind::Token(_) => quota.algorithm() == Algorithm::TokenBucket,
            Kind::Log(_) => quota.algorithm() == Algorithm::SlidingLog,
            Kind::Buckets(state) => state.is_for(quota),
        }
    }

    /// Evaluates a charge of `cost`. If it is allowed, returns the usage after the charge; otherwise the
    /// current usage, with the time of the next attempt. Changes nothing.
    #[must_use]
    pub fn assess(&self, quota: &Quota, now: Timestamp, cost: u64) -> Usage {
        if let Some(usage) = Usage::without_counting(quota, now.as_micros()) {
            return usage;
        }
        if !self.is_for(quota) {
            return Self::fresh(quota).assess(quota, now, cost);
        }
        let now = now.as_micros();
        match &self.0 {
            Kind::Fixed(state) => state.step(quota, now, cost).1,
            Kind::Sliding(state) => state.step(quota, now, cost).1,
            Kind::Token(state) => state.step(quota, now, cost).1,
            Kind::Buckets(state) => state.assess(quota, now, cost),
            Kind::Log(state) => state.assess(quota, now, cost),
        }
    }

    /// Returns the current usage, with the outcome that a charge of `cost` would have. Changes nothing.
    #[must_use]
    pub fn peek(&self, quota: &Quota, now: Timestamp, cost: u64) -> Usage {
        let evaluated = self.assess(quota, now, cost);
        if evaluated.is_allowed() {
            self.assess(quota, now, 0)
        } else {
            evaluated
        }
    }

    /// Charges `cost`, whether there is room for it or not. A counter stops at its largest count and
    /// never wraps. `blocked` and `unlimited` quotas count nothing.
    pub fn charge(&mut self, quota: &Quota, now: Timestamp, cost: u64) {
        if quota.counts_nothing() {
            return;
        }
        if !self.is_for(quota) {
            *self = Self::fresh(quota);
        }
        each!(&mut self.0, state => state.charge(quota, now.as_micros(), cost));
    }

    /// Refunds a charge of `cost` made at `charged_at`, as far as it still counts.
    ///
    /// Never goes below zero, and never changes a window that the charge was not in. A token bucket treats
    /// the refill since the charge as the refill of this charge, and refunds the rest: at most the
    /// cost, and never so much that the bucket would hold more than without the charge.
    pub fn refund(&mut self, quota: &Quota, charged_at: Timestamp, now: Timestamp, cost: u64) {
        if quota.counts_nothing() || !self.is_for(quota) {
            return;
        }
        let charged_at = charged_at.as_micros();
        each!(&mut self.0, state => state.refund(quota, charged_at, now.as_micros(), cost));
    }

    /// Returns when this state becomes equivalent to a fresh one; the epoch if it already is.
    #[must_use]
    pub fn expires_at(&self, quota: &Quota) -> Timestamp {
        if quota.counts_nothing() || !self.is_for(quota) {
            return Timestamp::EPOCH;
        }
        Timestamp::end(each!(&self.0, state => state.expires_at(quota)))
    }
}

/// Defines `step`: an attempt and its usage. They are two functions, because a store has to hold its lock
/// for the attempt only.
macro_rules! step {
    () => {
        /// Charges `cost` if there is room. Returns the state afterwards and the usage.
        #[inline(always)]
        pub(crate) fn step(self, quota: &Quota, now: u64, cost: u64) -> (Self, Usage) {
            match self.attempt(quota, now, cost) {
                Ok((after, weight)) => {
                    let used = Self::used_of(weight, quota);
                    (after, after.granted(quota, now, used))
                }
                Err(at_now) => {
                    let used = at_now.used(quota, now);
                    (at_now, at_now.refused(quota, now, cost, used))
                }
            }
        }
    };
}
use step;

/// Returns the usage of an allowed request. `used` includes its cost.
#[inline]
fn allowed(quota: &Quota, used: u64, reset_at: u64) -> Usage {
    Usage::new(
        quota.burst(),
        used,
        Timestamp::end(reset_at),
        Outcome::Allowed,
    )
}

/// Returns the usage of a denied request. There is room at `free_at`.
#[inline]
fn denied(quota: &Quota, used: u64, free_at: u64) -> Usage {
    Usage::new(
        quota.burst(),
        used,
        Timestamp::end(free_at),
        Outcome::Denied,
    )
}

/// Returns the usage of a request whose cost exceeds the limit.
fn never(quota: &Quota, used: u64, reset_at: u64) -> Usage {
    Usage::new(
        quota.burst(),
        used,
        Timestamp::end(reset_at),
        Outcome::ExceedsCapacity,
    )
}
