//! What goes wrong around requests, told so often that it is seen, and not more often.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::{Telemetry, event, metric};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::sync::{Mutex, MutexGuard, lock};

/// How the store fails.
#[derive(Debug, Default)]
pub(super) struct StoreFailures {
    count: AtomicU64,
    /// Whether it failed when it was last asked.
    is_failing: AtomicBool,
    failures: Mutex<Failures>,
}

#[derive(Debug, Default)]
struct Failures {
    since: Option<Timestamp>,
    /// Failures before this instant are counted, and not reported.
    silent_until: Timestamp,
    /// Whether the current outage has been reported. If not, its end is not reported either.
    is_reported: bool,
    /// How many were not told of since.
    untold: u64,
}

impl StoreFailures {
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn failing_since(&self) -> Option<Timestamp> {
        lock(&self.failures).since
    }
}

impl Telemetry {
    /// Names beyond this many are not told of: they may be made up.
    const MOST_TIERS: usize = 64;

    /// A store that fails is told of so often, and not for every request.
    const TELLS_OF_FAILURES_EVERY: Duration = Duration::from_secs(1);

    /// Time after the event of a recovery in which no failure is reported. A store that fails and
    /// recovers many times a second would fill the log otherwise.
    const SILENCE_AFTER_RECOVERY: Duration = Duration::from_secs(10);

    /// The store could not answer. Said once a second, with how often it was so in between.
    #[cold]
    pub(crate) fn store_failed(&self, error: &StoreError, now: Timestamp) {
        let mut failures = lock(&self.store_failures.failures);
        failures.since.get_or_insert(now);
        self.store_failures
            .is_failing
            .store(true, Ordering::Relaxed);
        self.log_failure(failures, error, now);
    }

    /// A charge could not be given back. Requests are decided all the same, so the store is not taken
    /// for one that does not answer; but it is told of, and no more often.
    #[cold]
    pub(crate) fn refund_failed(&self, error: &StoreError, now: Timestamp) {
        self.log_failure(lock(&self.store_failures.failures), error, now);
    }

    fn log_failure(
        &self,
        mut failures: MutexGuard<'_, Failures>,
        error: &StoreError,
        now: Timestamp,
    ) {
        self.store_failures.count.fetch_add(1, Ordering::Relaxed);
        if now >= failures.silent_until {
            failures.silent_until = now.saturating_add(Self::TELLS_OF_FAILURES_EVERY);
            failures.is_reported = failures.since.is_some();
            let untold = std::mem::take(&mut failures.untold);
            drop(failures);
            event::store_failed(error, untold);
        } else {
            failures.untold += 1;
            drop(failures);
        }
        metric::store_failed();
    }

    /// Whether the store failed when it was last asked.
    #[inline]
    pub(crate) fn is_store_failing(&self) -> bool {
        self.store_failures.is_failing.load(Ordering::Relaxed)
    }

    /// The store answers again. Reported once for each outage that was reported.
    #[cold]
    pub(crate) fn store_recovered(&self, now: Timestamp) {
        let mut failures = lock(&self.store_failures.failures);
        self.store_failures
            .is_failing
            .store(false, Ordering::Relaxed);
        let Some(since) = failures.since.take() else {
            return;
        };
        if !std::mem::take(&mut failures.is_reported) {
            return;
        }
        failures.silent_until = now.saturating_add(Self::SILENCE_AFTER_RECOVERY);
        let untold = std::mem::take(&mut failures.untold);
        drop(failures);
        event::store_recovered(now.duration_since(since).as_secs(), untold);
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
        let mut told = lock(&self.unknown_tiers);
        if told.len() < Self::MOST_TIERS && !told.contains(name) {
            told.insert(name.into());
            drop(told);
            event::unknown_tier(name);
        }
    }
}
