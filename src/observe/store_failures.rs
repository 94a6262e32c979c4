//! Failures of the store, and events that are logged once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Telemetry, event};
use crate::clock::Timestamp;
use crate::error::{ReloadError, StoreError};
use crate::sync::{Mutex, MutexGuard, lock};

/// Failures of the store.
#[derive(Debug, Default)]
pub(super) struct StoreFailures {
    /// Whether its last answer was an error.
    is_failing: AtomicBool,
    /// Whether the store's health was degraded during the outage. Changed under the lock of the
    /// outage.
    is_reported: AtomicBool,
    outage: Mutex<Outage>,
}

#[derive(Debug, Default)]
struct Outage {
    since: Option<Timestamp>,
    /// Failures before this instant are counted without an event.
    silent_until: Timestamp,
    /// Whether the current outage has been logged. If not, its end is not logged either.
    is_logged: bool,
    /// Failures without an event since the last one.
    suppressed: u64,
}

impl StoreFailures {
    pub(super) fn since(&self) -> Option<Timestamp> {
        lock(&self.outage).since
    }
}

impl Telemetry {
    /// Unknown tiers that are logged. Callers may make up names.
    const MAX_UNKNOWN_TIERS: usize = 64;

    /// Time between events of a failing store.
    const STORE_FAILURE_INTERVAL: Duration = Duration::from_secs(1);

    /// Time after the event of a recovery in which no failure is logged. A store that fails and
    /// recovers many times a second would fill the log otherwise.
    const SILENCE_AFTER_RECOVERY: Duration = Duration::from_secs(10);

    /// Reports a failed call. Logs at most one event per second, with the number of failures in
    /// between.
    #[cold]
    pub(crate) fn store_failed(&self, error: &StoreError, now: Timestamp) {
        let mut outage = lock(&self.store_failures.outage);
        outage.since.get_or_insert(now);
        self.store_failures
            .is_failing
            .store(true, Ordering::Relaxed);
        self.log_failure(outage, error, now);
    }

    /// Reports a failed refund. Requests are still decided, so that the store does not count as
    /// failing.
    #[cold]
    pub(crate) fn refund_failed(&self, error: &StoreError, now: Timestamp) {
        self.log_failure(lock(&self.store_failures.outage), error, now);
    }

    fn log_failure(&self, mut outage: MutexGuard<'_, Outage>, error: &StoreError, now: Timestamp) {
        self.totals.store_failures.increment();
        if now >= outage.silent_until {
            outage.silent_until = now.saturating_add(Self::STORE_FAILURE_INTERVAL);
            outage.is_logged = outage.since.is_some();
            let suppressed = std::mem::take(&mut outage.suppressed);
            drop(outage);
            event::store_failed(error, suppressed);
        } else {
            outage.suppressed += 1;
            drop(outage);
        }
        #[cfg(feature = "metrics")]
        self.metrics().store_errors.add("", 1);
    }

    /// Returns whether the last answer of the store was an error.
    #[inline]
    pub(crate) fn is_store_failing(&self) -> bool {
        self.store_failures.is_failing.load(Ordering::Relaxed)
    }

    /// Notes that the store's own health is degraded. Ignored if no outage is in progress: the store
    /// may have recovered since its health was read.
    #[cold]
    pub(crate) fn store_reports_failure(&self) {
        let outage = lock(&self.store_failures.outage);
        if outage.since.is_some() {
            self.store_failures
                .is_reported
                .store(true, Ordering::Relaxed);
        }
        drop(outage);
    }

    /// Returns whether the store's own health was degraded during this outage. If so, it also shows
    /// the end.
    pub(crate) fn has_store_reported_failure(&self) -> bool {
        self.store_failures.is_reported.load(Ordering::Relaxed)
    }

    /// Reports that the store answers again. Logs one event per outage that was logged.
    #[cold]
    pub(crate) fn store_recovered(&self, now: Timestamp) {
        let mut outage = lock(&self.store_failures.outage);
        self.store_failures
            .is_failing
            .store(false, Ordering::Relaxed);
        self.store_failures
            .is_reported
            .store(false, Ordering::Relaxed);
        let Some(since) = outage.since.take() else {
            return;
        };
        if !std::mem::take(&mut outage.is_logged) {
            return;
        }
        outage.silent_until = now.saturating_add(Self::SILENCE_AFTER_RECOVERY);
        let suppressed = std::mem::take(&mut outage.suppressed);
        drop(outage);
        event::store_recovered(now.duration_since(since).as_secs(), suppressed);
    }

    /// Reports that the policy was replaced.
    #[cfg_attr(
        not(feature = "metrics"),
        expect(clippy::unused_self, reason = "holds the metrics")
    )]
    pub(crate) fn reloaded(&self, version: u64) {
        event::reloaded(version);
        #[cfg(feature = "metrics")]
        self.metrics().reloads.add("ok", 1);
    }

    /// Reports that a new policy was rejected.
    #[cold]
    #[cfg_attr(
        not(feature = "metrics"),
        expect(clippy::unused_self, reason = "holds the metrics")
    )]
    pub(crate) fn reload_failed(&self, error: &ReloadError) {
        event::reload_failed(error);
        #[cfg(feature = "metrics")]
        self.metrics().reloads.add("failed", 1);
    }

    /// Logs once that the peer address of requests is not known.
    #[cold]
    pub(crate) fn no_peer_address(&self) {
        if self.no_peer_address.swap(true, Ordering::Relaxed) {
            return;
        }
        event::no_peer_address();
    }

    /// Logs a tier that the policy does not have, once per name.
    #[cold]
    pub(crate) fn unknown_tier(&self, name: &str) {
        let mut logged = lock(&self.unknown_tiers);
        if logged.len() < Self::MAX_UNKNOWN_TIERS && !logged.contains(name) {
            logged.insert(name.into());
            drop(logged);
            event::unknown_tier(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::TelemetrySettings;

    #[test]
    fn health_that_was_read_before_the_recovery_belongs_to_no_later_outage() {
        let now = Timestamp::from_secs(1_735_689_600);
        let telemetry = Telemetry::new(TelemetrySettings::default(), now);
        let error = StoreError::new("connection refused");
        telemetry.store_failed(&error, now);
        telemetry.store_reports_failure();
        assert!(telemetry.has_store_reported_failure());
        telemetry.store_recovered(now);
        telemetry.store_reports_failure();
        telemetry.store_failed(&error, now);
        assert!(!telemetry.has_store_reported_failure());
    }
}
