//! Settings of a [`TierResolver`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{FindTier, Settings, TierResolver};
use crate::clock::{Clock, SystemClock};
use crate::error::{ValidationError, ValidationErrors};

/// Settings of a [`TierResolver`].
#[must_use]
pub struct TierResolverBuilder {
    find: Arc<FindTier>,
    clock: Option<Arc<dyn Clock>>,
    settings: Settings,
}

impl TierResolverBuilder {
    pub(super) fn new(find: Arc<FindTier>) -> Self {
        Self {
            find,
            clock: None,
            settings: Settings {
                deadline: Duration::from_millis(100),
                cache_ttl: Duration::from_hours(1),
                cache_capacity: 10_000,
            },
        }
    }

    /// Sets how long a request waits for its tier. Default: 100 ms.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// Sets how long a tier is cached before it is looked up again. Default: 1 hour.
    pub const fn cache_ttl(mut self, ttl: Duration) -> Self {
        self.settings.cache_ttl = ttl;
        self
    }

    /// Sets for how many callers tiers are cached. Default: 10,000.
    pub const fn cache_capacity(mut self, callers: usize) -> Self {
        self.settings.cache_capacity = callers;
        self
    }

    /// Sets the clock of deadlines and of the cache. Default: a [`SystemClock`].
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Validates the settings.
    ///
    /// # Errors
    ///
    /// All wrong settings, each with its path: `cache_capacity`, `deadline`.
    pub fn build(self) -> Result<TierResolver, ValidationErrors> {
        let mut errors = ValidationErrors::default();
        if self.settings.cache_capacity == 0 {
            let expected = "at least 1 caller";
            let error = ValidationError::new("tier cache_capacity", 0, expected);
            errors.push(error.at("cache_capacity"));
        }
        if self.settings.deadline.is_zero() {
            let expected = "more than 0, such as 100ms";
            errors.push(ValidationError::new("tier deadline", "0s", expected).at("deadline"));
        }
        Ok(errors.or(self)?.build_unchecked())
    }

    /// Builds a resolver from settings that are valid.
    pub(super) fn build_unchecked(self) -> TierResolver {
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        TierResolver::from_parts(self.find, clock, self.settings)
    }
}

impl fmt::Debug for TierResolverBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TierResolverBuilder")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
