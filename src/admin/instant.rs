//! Timestamps of the admin API.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// Timestamp in a request or a response, in the text form of [`Timestamp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Instant(pub(super) Timestamp);

impl Instant {
    /// Rounds up to a whole second, as reset times of callers are.
    pub(super) const fn rounded_up(instant: Timestamp) -> Self {
        Self(Timestamp::from_secs(instant.as_secs_rounded_up()))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
