//! A circuit breaker: a store that fails is left alone, and looked at now and then.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::clock::{Clock, Timestamp};
use crate::error::StoreError;
use crate::store::StoreHealth;
use crate::store::chance::chance;
use crate::sync::{Mutex, lock};

/// Whether a store is asked.
pub(super) struct Breaker {
    clock: Arc<dyn Clock>,
    opens_after: u32,
    probes_every: Duration,
    /// How many calls have failed since the last that did not.
    failures: AtomicU32,
    /// Whether there is something in `open`: most calls need to know no more.
    is_open: AtomicBool,
    open: Mutex<Option<Open>>,
}

/// Nobody is let through, but for one at a time who finds out.
struct Open {
    since: Timestamp,
    why: StoreError,
    probe_at: Timestamp,
    is_probed: bool,
}

impl Breaker {
    pub(super) fn new(clock: Arc<dyn Clock>, opens_after: u32, probes_every: Duration) -> Self {
        Self {
            clock,
            opens_after,
            probes_every,
            failures: AtomicU32::new(0),
            is_open: AtomicBool::new(false),
            open: Mutex::new(None),
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
        let mut open = lock(&self.open);
        let Some(open) = &mut *open else {
            return Ok(false);
        };
        let now = self.clock.now();
        if open.is_probed || now < open.probe_at {
            return Err(open.why.again());
        }
        open.is_probed = true;
        open.probe_at = self.next_probe(now);
        Ok(true)
    }

    /// Half of the interval at least, the rest by chance.
    fn next_probe(&self, now: Timestamp) -> Timestamp {
        let half = self.probes_every / 2;
        now.saturating_add(half + half.mul_f64(chance()))
    }

    #[inline]
    fn succeeded(&self) {
        if self.failures.load(Ordering::Relaxed) > 0 {
            self.close();
        }
    }

    #[cold]
    fn close(&self) {
        let mut open = lock(&self.open);
        *open = None;
        self.failures.store(0, Ordering::Relaxed);
        self.is_open.store(false, Ordering::Release);
    }

    #[cold]
    fn failed(&self, error: &StoreError) {
        let mut open = lock(&self.open);
        let failures = self.failures.load(Ordering::Relaxed).saturating_add(1);
        self.failures.store(failures, Ordering::Relaxed);
        match &mut *open {
            Some(open) => open.why = error.again(),
            None if failures >= self.opens_after => {
                let now = self.clock.now();
                *open = Some(Open {
                    since: now,
                    why: error.again(),
                    probe_at: self.next_probe(now),
                    is_probed: false,
                });
                self.is_open.store(true, Ordering::Release);
            }
            None => {}
        }
    }

    pub(super) fn health(&self) -> StoreHealth {
        match &*lock(&self.open) {
            Some(open) => StoreHealth::degraded(open.since, &open.why),
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
            && let Some(open) = &mut *lock(&self.breaker.open)
        {
            open.is_probed = false;
        }
    }
}
