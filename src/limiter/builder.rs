//! Settings of a [`Limiter`], checked together.

use std::sync::Arc;

use super::{Inner, Limiter};
use crate::batch::MAX_CHECKS;
use crate::clock::{Clock, SystemClock};
use crate::error::ValidationError;
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
    /// The name of the rule. Limiters of the same name that share a store share their
    /// counters; `default`, if none is given.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// One more quota, all of which must have room. At least one, at most eight.
    pub fn quota(mut self, quota: impl IntoQuota) -> Self {
        self.quotas.push(quota.into_quota());
        self
    }

    /// Where to count; a [`MemoryStore`](crate::MemoryStore) of its own, if not given. In an [`Arc`], several
    /// limiters can share it. They should share their clock as well: a store that has seen one
    /// clock's present does not go back to another's past.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// The clock; the machine's, if not given. In an [`Arc`], it can be shared.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Checks the settings and builds the limiter.
    pub fn build(self) -> Result<Limiter, ValidationError> {
        if self.quotas.is_empty() || self.quotas.len() > MAX_CHECKS {
            return Err(ValidationError::new(
                "number of quotas",
                self.quotas.len(),
                format!("1 to {MAX_CHECKS} for one limiter"),
            ));
        }
        let mut counters: Vec<Counter> = Vec::with_capacity(self.quotas.len());
        for quota in self.quotas {
            let quota = quota?;
            let counter = Counter::new(&self.name, quota)?;
            if let Some(twin) = counters
                .iter()
                .find(|other| other.short_id() == counter.short_id())
            {
                return Err(ValidationError::new(
                    "quota",
                    quota,
                    format!(
                        "another window than `{}`, which is there already",
                        twin.quota()
                    ),
                ));
            }
            counters.push(counter);
        }
        let store = self.store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let clock = self.clock;
        let clock = clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        Ok(Limiter {
            inner: Arc::new(Inner {
                counters: counters.into(),
                time: store.use_clock(&clock),
                store,
                clock,
            }),
        })
    }
}
