//! A piece of time and what was decided in it.

use std::time::Duration;

use crate::clock::Timestamp;

/// A minute or a quarter of an hour, and what was decided in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeBucket {
    pub(in crate::observe) from: Timestamp,
    pub(in crate::observe) length: Duration,
    pub(in crate::observe) allowed: u64,
    pub(in crate::observe) denied: u64,
}

impl TimeBucket {
    /// When it begins.
    #[must_use]
    pub const fn from(&self) -> Timestamp {
        self.from
    }

    /// How long it is. The last of several is still running.
    #[must_use]
    pub const fn length(&self) -> Duration {
        self.length
    }

    /// How many requests were allowed.
    #[must_use]
    pub const fn allowed(&self) -> u64 {
        self.allowed
    }

    /// How many requests were denied.
    #[must_use]
    pub const fn denied(&self) -> u64 {
        self.denied
    }
}
