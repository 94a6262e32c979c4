//! Settings of a [`Limiter`], checked together.

use std::sync::Arc;

use super::{Limiter, LimiterShared};
use crate::batch::MAX_CHECKS;
use crate::clock::{Clock, SystemClock};
use crate::error::{ValidationError, ValidationErrors};
use crate::key::Counter;
use crate::quota::{IntoQuota, Quota};
use crate::store::{MemoryStore, Store};

/// Settings of a [`Limiter`].
#[derive(Debug)]
#[must_use]
pub struct LimiterBuilder {
    name: String,
    quotas: Vec<Result<Quota, ValidationError>>,
    store: Option<Arc<dyn Store>>,
    clock: Option<Arc<dyn Clock>>,
}

impl Default for LimiterBuilder {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            quotas: Vec::new(),
            store: None,
            clock: None,
        }
    }
}

impl LimiterBuilder {
    /// Sets the name of the rule. Default: `default`. Limiters of one name that share a store share their
    /// counters.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Adds a quota. All quotas must have room. Required: one to eight.
    pub fn quota(mut self, quota: impl IntoQuota) -> Self {
        self.quotas.push(quota.into_quota());
        self
    }

    /// Sets the store. Default: a [`MemoryStore`](crate::MemoryStore) of its own. Limiters can share a store
    /// in an [`Arc`]. They should share the clock, too: for a store, time does not go back.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Sets the clock. Default: [`SystemClock`](crate::SystemClock). Can be shared in an [`Arc`].
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Validates the settings and builds the limiter.
    ///
    /// # Errors
    ///
    /// All wrong settings, each with its path: `name`, `quota` (their number), `quota[1]`.
    pub fn build(self) -> Result<Limiter, ValidationErrors> {
        let mut errors = ValidationErrors::default();
        if self.quotas.is_empty() || self.quotas.len() > MAX_CHECKS {
            let expected = format!("1 to {MAX_CHECKS} for one limiter");
            let error = ValidationError::new("number of quotas", self.quotas.len(), expected);
            errors.push(error.at("quota"));
        }
        let mut counters: Vec<Counter> = Vec::with_capacity(self.quotas.len());
        for (index, quota) in self.quotas.into_iter().enumerate() {
            let path = format!("quota[{index}]");
            let Some(quota) = errors.note(quota.map_err(|error| error.at(&*path))) else {
                continue;
            };
            let counter = Counter::new(&self.name, quota).map_err(|error| error.at("name"));
            let Some(counter) = errors.note(counter) else {
                continue;
            };
            let mut others = counters.iter();
            if let Some(twin) = others.find(|other| other.short_id() == counter.short_id()) {
                let twin = twin.quota();
                let expected = format!("another window than `{twin}`, which is there already");
                errors.push(ValidationError::new("quota", quota, expected).at(path));
            }
            counters.push(counter);
        }
        errors.or(())?;
        let store = self.store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let clock = self.clock;
        let clock = clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        Ok(Limiter {
            shared: Arc::new(LimiterShared {
                counters: counters.into(),
                time: store.use_clock(&clock),
                store,
                clock,
            }),
        })
    }
}
