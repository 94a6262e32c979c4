//! What is told to those who watch: events with the feature `tracing`, figures with `metrics`.

mod event;
mod metric;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::{ReloadError, StoreError};
use crate::head::Head;
use crate::quota::Quota;

/// What has been told already and is not told again.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    no_peer_address: AtomicBool,
    unknown_tiers: Mutex<HashSet<Box<str>>>,
    store_failures: Mutex<Failures>,
    /// Whether the store has failed and not answered since.
    store_fails: AtomicBool,
}

/// How a store fails.
#[derive(Debug, Default)]
struct Failures {
    since: Option<Timestamp>,
    told_at: Option<Timestamp>,
    /// How many were not told of since.
    untold: u64,
}

impl Watch {
    /// Names beyond this many are not told of: they may be made up.
    const MOST_TIERS: usize = 64;

    /// A store that fails is told of so often, and not for every request.
    const TELLS_OF_FAILURES_EVERY: Duration = Duration::from_secs(1);

    /// The store could not answer. Said once a second, with how often it was so in between.
    #[cold]
    pub(crate) fn store_failed(&self, error: &StoreError, now: Timestamp) {
        let mut failures = self
            .store_failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        failures.since.get_or_insert(now);
        self.store_fails.store(true, Ordering::Relaxed);
        let is_due = failures
            .told_at
            .is_none_or(|told| now.duration_since(told) >= Self::TELLS_OF_FAILURES_EVERY);
        if is_due {
            failures.told_at = Some(now);
            event::store_failed(error, std::mem::take(&mut failures.untold));
        } else {
            failures.untold += 1;
        }
    }

    /// Whether the store has failed and not answered since.
    #[inline]
    pub(crate) fn is_store_failing(&self) -> bool {
        self.store_fails.load(Ordering::Relaxed)
    }

    /// The store answers again. Said once for each time it had failed.
    #[cold]
    pub(crate) fn store_recovered(&self, now: Timestamp) {
        let mut failures = self
            .store_failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !self.store_fails.swap(false, Ordering::Relaxed) {
            return;
        }
        let since = failures.since.take().unwrap_or(now);
        let untold = std::mem::take(&mut failures.untold);
        event::store_recovered(now.duration_since(since), untold);
    }

    /// Nobody has told where requests come from. Said once, with what to do about it.
    #[cold]
    pub(crate) fn no_peer_address(&self) {
        if self.no_peer_address.swap(true, Ordering::Relaxed) {
            return;
        }
        event::no_peer_address();
    }

    /// A caller has a tier that the policy does not know. Said once for each name.
    #[cold]
    pub(crate) fn unknown_tier(&self, name: &str) {
        let mut told = self
            .unknown_tiers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if told.len() < Self::MOST_TIERS && !told.contains(name) {
            told.insert(name.into());
            event::unknown_tier(name);
        }
    }
}

/// What an operator should know of a request that was turned away.
#[cfg_attr(
    not(feature = "tracing"),
    expect(dead_code, reason = "nobody is told of it then")
)]
pub(crate) struct Exceeded<'a> {
    pub(crate) head: Head<'a>,
    pub(crate) policy: &'a str,
    pub(crate) limit: u64,
    pub(crate) used: u64,
    pub(crate) window: u64,
    pub(crate) retry_after: Option<u64>,
    pub(crate) request_id: &'a str,
}

pub(crate) use event::{exceeded, exempt, overridden, would_exceed};

/// A charge could not be given back.
#[cold]
pub(crate) fn not_given_back(error: &StoreError) {
    event::store_failed(error, 0);
}

/// Another policy is in force.
pub(crate) fn reloaded(version: u64) {
    event::reloaded(version);
    metric::reloaded(version);
}

/// Another policy was refused.
#[cold]
pub(crate) fn reload_failed(error: &ReloadError) {
    event::reload_failed(error);
    metric::reload_failed();
}
