//! A circuit breaker: a store that fails is left alone, and looked at now and then.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::Clock;
use crate::error::StoreError;
use crate::store::StoreHealth;
use crate::store::breaker::BreakerState;
use crate::store::chance::chance;
use crate::sync::{Mutex, lock};

/// Shared circuit breaker of a store.
pub(super) struct Breaker {
    clock: Arc<dyn Clock>,
    /// Whether `state` has a failure, and whether it rejects calls. Most calls read no more.
    is_failing: AtomicBool,
    is_open: AtomicBool,
    state: Mutex<BreakerState<StoreError>>,
}

impl Breaker {
    pub(super) fn new(clock: Arc<dyn Clock>, opens_after: u32, probes_every: Duration) -> Self {
        Self {
            clock,
            is_failing: AtomicBool::new(false),
            is_open: AtomicBool::new(false),
            state: Mutex::new(BreakerState::new(opens_after, probes_every)),
        }
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Lets a call pass, or returns the error that it is rejected with.
    #[inline]
    pub(super) fn admit(self: &Arc<Self>) -> Result<Pass, StoreError> {
        let is_probe = self.is_open.load(Ordering::Acquire) && self.admit_probe()?;
        Ok(Pass {
            breaker: Arc::clone(self),
            is_probe,
        })
    }

    #[cold]
    fn admit_probe(&self) -> Result<bool, StoreError> {
        let mut state = lock(&self.state);
        if state.start_probe(self.clock.now(), chance()) {
            return Ok(true);
        }
        let rejection = state.rejection().map(StoreError::again);
        rejection.map_or(Ok(false), Err)
    }

    #[inline]
    fn succeeded(&self) {
        if self.is_failing.load(Ordering::Acquire) {
            self.close();
        }
    }

    #[cold]
    fn close(&self) {
        let mut state = lock(&self.state);
        state.record_success();
        self.is_open.store(false, Ordering::Release);
        self.is_failing.store(false, Ordering::Release);
    }

    #[cold]
    fn failed(&self, error: &StoreError) {
        let mut state = lock(&self.state);
        if state.record_failure(error.again(), self.clock.now(), chance()) {
            self.is_open.store(true, Ordering::Release);
        }
        self.is_failing.store(true, Ordering::Release);
    }

    /// Degraded from the first failure until the next success.
    pub(super) fn health(&self) -> StoreHealth {
        match lock(&self.state).failing() {
            Some((since, error)) => {
                StoreHealth::degraded(since.offset_by(self.clock.wall_offset()), error)
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

/// A call that was admitted. If it is dropped without a report, because its future was dropped, it
/// proves nothing, and the next call may probe.
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
        if self.is_probe {
            lock(&self.breaker.state).end_probe();
        }
    }
}
