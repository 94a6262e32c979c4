//! The settings of a [`TierResolver`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Find, Settings, TierResolver};
use crate::clock::{Clock, SystemClock};
use crate::error::ValidationError;

/// The settings of a [`TierResolver`].
#[must_use]
pub struct TierResolverBuilder {
    find: Arc<Find>,
    clock: Option<Arc<dyn Clock>>,
    settings: Settings,
}

impl TierResolverBuilder {
    pub(super) fn new(find: Arc<Find>) -> Self {
        Self {
            find,
            clock: None,
            settings: Settings {
                deadline: Duration::from_millis(100),
                remember: Duration::from_hours(1),
                capacity: 10_000,
            },
        }
    }

    /// How long a request waits for its tier; 100 milliseconds by default.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// How long a tier is believed before it is looked up again; an hour by default.
    pub const fn remember(mut self, remember: Duration) -> Self {
        self.settings.remember = remember;
        self
    }

    /// How many callers are remembered; 10 000 by default.
    pub const fn capacity(mut self, callers: usize) -> Self {
        self.settings.capacity = callers;
        self
    }

    /// The clock to go by; the machine's by default.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Checks the settings.
    pub fn build(self) -> Result<TierResolver, ValidationError> {
        if self.settings.capacity == 0 {
            let expected = "room for one caller at least";
            return Err(ValidationError::new("tier capacity", 0, expected));
        }
        if self.settings.deadline.is_zero() {
            let expected = "some time, such as 100ms";
            return Err(ValidationError::new("tier deadline", "0s", expected));
        }
        Ok(self.create())
    }

    /// For settings that are known to be right.
    pub(super) fn create(self) -> TierResolver {
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        TierResolver::assemble(self.find, clock, self.settings)
    }
}

impl fmt::Debug for TierResolverBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TierResolverBuilder")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
