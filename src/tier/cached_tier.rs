//! Cached tier of one caller.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use quick_cache::Equivalent;

use super::lookup::LookupResult;
use super::shared_lookup::SharedLookup;
use crate::clock::Timestamp;
use crate::sync::locked;

/// How long after a failure no other look-up is started.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Tier of one caller and the look-up in progress.
#[derive(Default)]
pub(super) struct CachedTier {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last tier that was found.
    tier: Option<Arc<str>>,
    /// Until then `tier` applies without another look-up.
    fresh_until: Timestamp,
    lookup: Option<Arc<SharedLookup>>,
}

/// What a cached tier provides at one instant.
pub(super) enum CacheAccess {
    Fresh(Option<Arc<str>>),
    InFlight(Arc<SharedLookup>),
}

impl CachedTier {
    /// Returns the tier if it is fresh, else the look-up in progress or one that `start` begins.
    pub(super) fn get_or_start(
        &self,
        now: Timestamp,
        start: impl FnOnce() -> Arc<SharedLookup>,
    ) -> CacheAccess {
        let mut state = self.state();
        if now < state.fresh_until {
            return CacheAccess::Fresh(state.tier.clone());
        }
        let in_progress = state.lookup.take().filter(|lookup| !lookup.is_overdue(now));
        let lookup = in_progress.unwrap_or_else(start);
        state.lookup = Some(Arc::clone(&lookup));
        CacheAccess::InFlight(lookup)
    }

    /// Stores the result of `lookup`, unless another of its waiters has stored it or a newer look-up
    /// was started. Returns the tier that applies to this waiter.
    pub(super) fn complete(
        &self,
        lookup: &Arc<SharedLookup>,
        result: LookupResult,
        now: Timestamp,
        cache_ttl: Duration,
    ) -> Option<Arc<str>> {
        let mut state = self.state();
        let is_current = |known: &Arc<SharedLookup>| Arc::ptr_eq(known, lookup);
        if state.lookup.as_ref().is_some_and(is_current) {
            state.lookup = None;
            let fresh_for = if result.is_ok() {
                cache_ttl
            } else {
                RETRY_DELAY.min(cache_ttl)
            };
            state.fresh_until = now.saturating_add(fresh_for);
            if let Ok(tier) = &result {
                state.tier.clone_from(tier);
            }
        }
        result.unwrap_or_else(|_| state.tier.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

/// Key of the cache: the primary dimension of a caller, with its issuer, and its value.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct CallerKey {
    dimension: Box<str>,
    value: Box<str>,
}

/// Borrowed [`CallerKey`]. Both have equal hashes.
#[derive(Hash)]
pub(super) struct CallerKeyRef<'a>(pub(super) (&'a str, &'a str));

impl CallerKeyRef<'_> {
    pub(super) fn to_key(&self) -> CallerKey {
        let (dimension, value) = self.0;
        CallerKey {
            dimension: dimension.into(),
            value: value.into(),
        }
    }
}

impl Equivalent<CallerKey> for CallerKeyRef<'_> {
    fn equivalent(&self, key: &CallerKey) -> bool {
        self.0 == (&*key.dimension, &*key.value)
    }
}
