//! State machine of the circuit breaker: [`Breaker`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::{Clock, Timestamp};
use crate::error::StoreError;
use crate::store::StoreHealth;
use crate::store::chance::chance;
use crate::sync::{Mutex, lock};

/// Decides which calls reach the store, from the results of earlier calls.
pub(super) struct Breaker {
    clock: Arc<dyn Clock>,
    failure_threshold: u32,
    probe_interval: Duration,
    /// Whether `failing` is `Some`, readable without the lock. Written while it is held.
    is_failing: AtomicBool,
    /// Whether calls other than probes are rejected, readable without the lock. Written while it
    /// is held.
    is_open: AtomicBool,
    failing: Mutex<Option<Failing>>,
}

/// Failures since the last success.
struct Failing {
    since: Timestamp,
    why: StoreError,
    failures: u32,
    /// From when on the open breaker admits the next half-open probe.
    probe_at: Timestamp,
    /// Start of the probe that is in flight.
    probed_since: Option<Timestamp>,
}

/// A probe without a result blocks the next one for this many intervals. A future that is kept but
/// never polled would otherwise keep the breaker open for ever.
const MAX_PROBE_INTERVALS: u32 = 10;

impl Breaker {
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        failure_threshold: u32,
        probe_interval: Duration,
    ) -> Self {
        Self {
            clock,
            failure_threshold,
            probe_interval,
            is_failing: AtomicBool::new(false),
            is_open: AtomicBool::new(false),
            failing: Mutex::new(None),
        }
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Admits a call. Returns the last error of the store if the breaker is open.
    #[inline]
    pub(super) fn admit(self: &Arc<Self>) -> Result<AdmittedCall, StoreError> {
        let is_probe = self.is_open.load(Ordering::Acquire) && self.admit_probe()?;
        Ok(AdmittedCall {
            breaker: Arc::clone(self),
            is_probe,
        })
    }

    /// Admits one probe at a time, at most one per interval.
    #[cold]
    fn admit_probe(&self) -> Result<bool, StoreError> {
        let mut failing = lock(&self.failing);
        let Some(failing) = &mut *failing else {
            return Ok(false);
        };
        let now = self.clock.now();
        let long = self.probe_interval * MAX_PROBE_INTERVALS;
        let probed_since = failing.probed_since;
        let is_probed = probed_since.is_some_and(|since| now.duration_since(since) < long);
        if is_probed || now < failing.probe_at {
            return Err(failing.why.again());
        }
        failing.probed_since = Some(now);
        failing.probe_at = self.next_probe(now);
        Ok(true)
    }

    /// Returns half of the interval plus a random part of the other half.
    fn next_probe(&self, now: Timestamp) -> Timestamp {
        let half = self.probe_interval / 2;
        now.saturating_add(half + half.mul_f64(chance()))
    }

    #[inline]
    fn succeeded(&self) {
        if self.is_failing.load(Ordering::Acquire) {
            self.close();
        }
    }

    #[cold]
    fn close(&self) {
        let mut failing = lock(&self.failing);
        *failing = None;
        self.is_open.store(false, Ordering::Release);
        self.is_failing.store(false, Ordering::Release);
    }

    #[cold]
    fn failed(&self, error: &StoreError) {
        let mut failing = lock(&self.failing);
        let now = self.clock.now();
        let failing = failing.get_or_insert_with(|| Failing {
            since: now,
            why: error.again(),
            failures: 0,
            probe_at: now,
            probed_since: None,
        });
        failing.why = error.again();
        failing.failures = failing.failures.saturating_add(1);
        if failing.failures == self.failure_threshold {
            failing.probe_at = self.next_probe(now);
            self.is_open.store(true, Ordering::Release);
        }
        self.is_failing.store(true, Ordering::Release);
    }

    /// Returns `Degraded` from the first failure until the next success.
    pub(super) fn health(&self) -> StoreHealth {
        match &*lock(&self.failing) {
            Some(failing) => {
                let since = failing.since.offset_by(self.clock.wall_offset());
                StoreHealth::degraded(since, &failing.why)
            }
            None => StoreHealth::Healthy,
        }
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("health", &self.health())
            .finish_non_exhaustive()
    }
}

/// A call that the breaker has admitted. If a probe is dropped without a report, the next call may
/// become the probe.
pub(in crate::store) struct AdmittedCall {
    breaker: Arc<Breaker>,
    is_probe: bool,
}

impl AdmittedCall {
    /// Reports the result of the call.
    #[inline]
    pub(in crate::store) fn report<T>(&self, result: &Result<T, StoreError>) {
        match result {
            Ok(_) => self.breaker.succeeded(),
            Err(error) => self.breaker.failed(error),
        }
    }
}

impl Drop for AdmittedCall {
    fn drop(&mut self) {
        if self.is_probe
            && let Some(failing) = &mut *lock(&self.breaker.failing)
        {
            failing.probed_since = None;
        }
    }
}
