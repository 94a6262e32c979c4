//! The five algorithms as pure steps: a quota, a state, an instant and a cost in; a usage out.
//!
//! Nothing in here reads a clock, takes a lock or knows of keys. A store keeps one [`State`]
//! per counter and applies these steps under a guard of its own:
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
//! // Retry-After is true: then and not a microsecond earlier.
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

/// What one counter remembers.
///
/// A state belongs to the algorithm and the window it was made for; the amount may change from
/// call to call (another tier, an override, a reload) without losing what was counted. To a
/// quota of another algorithm it is as good as a fresh one.
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

/// Runs the same step on whichever state it is.
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
    /// The state of a counter that has never been charged.
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

    /// Whether it was made for this algorithm, and for as many buckets.
    fn is_for(&self, quota: &Quota) -> bool {
        match &self.0 {
            Kind::Fixed(_) => quota.algorithm() == Algorithm::FixedWindow,
            Kind::Sliding(_) => quota.algorithm() == Algorithm::SlidingWindow,
            Kind::Token(_) => quota.algorithm() == Algorithm::TokenBucket,
            Kind::Log(_) => quota.algorithm() == Algorithm::SlidingLog,
            Kind::Buckets(state) => state.is_for(quota),
        }
    }

    /// What would come of charging `cost` now: if allowed, the usage after it; if not, the
    /// usage as it is and when to come back. Changes nothing.
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

    /// The usage as it is, with the outcome that charging `cost` would have. Changes nothing.
    #[must_use]
    pub fn peek(&self, quota: &Quota, now: Timestamp, cost: u64) -> Usage {
        let asked = self.assess(quota, now, cost);
        if asked.is_allowed() {
            self.assess(quota, now, 0)
        } else {
            asked
        }
    }

    /// Charges `cost`, whether there is room for it or not. Counters stop at their largest
    /// number; they never wrap. `blocked` and `unlimited` count nothing.
    pub fn charge(&mut self, quota: &Quota, now: Timestamp, cost: u64) {
        if quota.counts_nothing() {
            return;
        }
        if !self.is_for(quota) {
            *self = Self::fresh(quota);
        }
        each!(&mut self.0, state => state.charge(quota, now.as_micros(), cost));
    }

    /// Takes back a charge of `cost` made at `charged_at`, as far as it still counts.
    ///
    /// Never below zero, and never out of a window that the charge was not in. A token bucket
    /// gives back what the charge still weighs if it is refilled first: at most the cost,
    /// never so much that the bucket would hold more than if the charge had not been made.
    pub fn refund(&mut self, quota: &Quota, charged_at: Timestamp, now: Timestamp, cost: u64) {
        if quota.counts_nothing() || !self.is_for(quota) {
            return;
        }
        let charged_at = charged_at.as_micros();
        each!(&mut self.0, state => state.refund(quota, charged_at, now.as_micros(), cost));
    }

    /// From when on this state is worth no more than a fresh one. The epoch, if it already is.
    #[must_use]
    pub fn expires_at(&self, quota: &Quota) -> Timestamp {
        if quota.counts_nothing() || !self.is_for(quota) {
            return Timestamp::EPOCH;
        }
        Timestamp::end(each!(&self.0, state => state.expires_at(quota)))
    }
}

/// A step is an attempt and what is said about it: in two parts, because a store that is waited for
/// need only guard the first.
macro_rules! step {
    () => {
        /// The step: the state after it, and what is said.
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

/// There is room: `used` counts the cost, and the counter resets at `reset_at`.
#[inline]
fn allowed(quota: &Quota, used: u64, reset_at: u64) -> Usage {
    Usage::new(
        quota.burst(),
        used,
        Timestamp::end(reset_at),
        Outcome::Allowed,
    )
}

/// There is no room until `free_at`.
#[inline]
fn denied(quota: &Quota, used: u64, free_at: u64) -> Usage {
    Usage::new(
        quota.burst(),
        used,
        Timestamp::end(free_at),
        Outcome::Denied,
    )
}

/// There never will be room: the cost is over the limit.
fn never(quota: &Quota, used: u64, reset_at: u64) -> Usage {
    Usage::new(
        quota.burst(),
        used,
        Timestamp::end(reset_at),
        Outcome::ExceedsCapacity,
    )
}
