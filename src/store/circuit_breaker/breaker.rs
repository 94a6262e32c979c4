//! A circuit breaker: a store that fails is left alone, and looked at now and then.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::{Clock, Timestamp};
use crate::error::StoreError;
use crate::store::StoreHealth;
use crate::store::chance::chance;
use crate::sync::{Mutex, lock};

/// Whether a store is asked.
pub(super) struct Breaker {
    clock: Arc<dyn Clock>,
    failure_threshold: u32,
    probe_interval: Duration,
    /// Whether there is something in `failing`, and whether that is much: most calls need to know
    /// no more.
    is_failing: AtomicBool,
    is_open: AtomicBool,
    failing: Mutex<Option<Failing>>,
}

/// A store that has failed and not answered since.
struct Failing {
    since: Timestamp,
    why: StoreError,
    failures: u32,
    /// When the next call may find out whether it is back, once nobody else is let through.
    probe_at: Timestamp,
    /// Since when a call is under way that finds it out.
    probed_since: Option<Timestamp>,
}

/// After so many intervals nobody waits for that call any more. Whoever keeps its answer may never
/// look at it, and the store would be left alone for good.
const MOST_INTERVALS: u32 = 10;

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

    /// Lets a call through, or says why not.
    #[inline]
    pub(super) fn admit(self: &Arc<Self>) -> Result<Pass, StoreError> {
        let is_probe = self.is_open.load(Ordering::Acquire) && self.admit_probe()?;
        Ok(Pass {
            breaker: Arc::clone(self),
            is_probe,
        })
    }

    /// One at a time, and not too often.
    #[cold]
    fn admit_probe(&self) -> Result<bool, StoreError> {
        let mut failing = lock(&self.failing);
        let Some(failing) = &mut *failing else {
            return Ok(false);
        };
        let now = self.clock.now();
        let long = self.probe_interval * MOST_INTERVALS;
        let probed_since = failing.probed_since;
        let is_probed = probed_since.is_some_and(|since| now.duration_since(since) < long);
        if is_probed || now < failing.probe_at {
            return Err(failing.why.again());
        }
        failing.probed_since = Some(now);
        failing.probe_at = self.next_probe(now);
        Ok(true)
    }

    /// Half of the interval at least, the rest by chance.
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

    /// Not well from the first failure on, until it has answered.
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

/// A call that was let through. If it ends without a word, because nobody waits for the answer
/// any more, it has shown nothing, and the next one may.
pub(super) struct Pass {
    breaker: Arc<Breaker>,
    is_probe: bool,
}

impl Pass {
    /// What came of it.
    #[inline]
    pub(super) fn report<T>(&self, result: &Result<T, StoreError>) {
        match result {
            Ok(_) => self.breaker.succeeded(),
            Err(error) => self.breaker.failed(error),
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.is_probe
            && let Some(failing) = &mut *lock(&self.breaker.failing)
        {
            failing.probed_since = None;
        }
    }
}
