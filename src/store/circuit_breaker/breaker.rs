//! State machine of the circuit breaker: [`Breaker`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::{Clock, Timestamp};
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
    /// Whether calls other than probes are rejected, readable without the lock. Written while it
    /// is held.
    is_open: AtomicBool,
    /// Pending calls that the store has answered.
    replies: AtomicU64,
    state: Mutex<BreakerState<StoreError>>,
}

impl Breaker {
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        failure_threshold: u32,
        probe_interval: Duration,
    ) -> Self {
        Self {
            clock,
            is_failing: AtomicBool::new(false),
            is_open: AtomicBool::new(false),
            replies: AtomicU64::new(0),
            state: Mutex::new(BreakerState::new(failure_threshold, probe_interval)),
        }
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Lets a call pass, or returns the error that it is rejected with.
    #[inline]
    pub(super) fn admit(self: &Arc<Self>) -> Result<AdmittedCall, StoreError> {
        let is_probe = self.is_open.load(Ordering::Acquire) && self.admit_probe()?;
        Ok(AdmittedCall {
            breaker: Arc::clone(self),
            is_probe,
            pending: None,
        })
    }

    /// Counts a call with a reply before its deadline. An error reply counts as well.
    pub(super) fn count_reply(&self) {
        self.replies.fetch_add(1, Ordering::Relaxed);
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

/// Error of a call without a reply.
pub(super) fn no_reply(deadline: Duration) -> StoreError {
    StoreError::new(format!("the store has not answered within {deadline:?}"))
}

/// A call that the breaker has admitted. If a probe is dropped without a report, the next call may
/// become the probe.
pub(in crate::store) struct AdmittedCall {
    breaker: Arc<Breaker>,
    is_probe: bool,
    /// Set while the call waits for a reply with a deadline.
    pending: Option<WatchedCall>,
}

struct WatchedCall {
    since: Timestamp,
    deadline: Duration,
    /// [`Breaker::replies`] when the call was started.
    replies: u64,
}

impl WatchedCall {
    /// Returns whether a call that is dropped now counts as a failure.
    fn is_failure(&self, breaker: &Breaker) -> bool {
        let waited = breaker.clock.now().duration_since(self.since);
        waited >= self.deadline / 2 && breaker.replies.load(Ordering::Relaxed) == self.replies
    }
}

impl AdmittedCall {
    /// Counts the call as a failure if it is dropped without a reply, after half of the deadline.
    pub(super) fn watch(&mut self, now: Timestamp, deadline: Duration) {
        self.pending = Some(WatchedCall {
            since: now,
            deadline,
            replies: self.breaker.replies.load(Ordering::Relaxed),
        });
    }

    /// Reports the result of the call.
    #[inline]
    pub(in crate::store) fn report<T>(&mut self, result: &Result<T, StoreError>) {
        self.pending = None;
        match result {
            Ok(_) => self.breaker.succeeded(),
            Err(error) => self.breaker.failed(error),
        }
    }
}

impl Drop for AdmittedCall {
    fn drop(&mut self) {
        if let Some(call) = self.pending.take()
            && call.is_failure(&self.breaker)
        {
            self.breaker.failed(&no_reply(call.deadline / 2));
        }
        if self.is_probe {
            lock(&self.breaker.state).end_probe();
        }
    }
}
