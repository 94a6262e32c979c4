//! A request that waits for a credit: [`Waiter`].

use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::block::Credit;
use super::request::LeaseRequest;
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::sync::{Mutex, MutexGuard, lock};

/// What a waiter receives.
pub(super) enum Grant {
    Credit(Credit),
    /// No block is coming: the request is decided by the store.
    Decide,
    Fail(StoreError),
}

/// Entry in the FIFO wait queue of a lease.
///
/// A [`Grant`] is stored here as soon as it is assigned, even if the task has not been polled since.
/// Credits are therefore assigned in arrival order: a later request never takes a credit that was
/// assigned to an earlier one.
pub(super) struct Waiter {
    request: Arc<LeaseRequest>,
    queued_at: Timestamp,
    /// Lock order: after the lock of the lease state or of the queue, never before.
    state: Mutex<WaiterState>,
}

pub(super) enum WaiterState {
    /// The waker is `None` before the first poll, and after it was taken to wake the task.
    Waiting(Option<Waker>),
    Granted(Grant),
    /// The grant was received, or the task has stopped waiting.
    Finished,
}

impl WaiterState {
    pub(super) const fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting(_))
    }

    /// Stores a grant and returns the waker of the task.
    pub(super) fn grant(&mut self, grant: Grant) -> Option<Waker> {
        match mem::replace(self, Self::Granted(grant)) {
            Self::Waiting(waker) => waker,
            Self::Granted(_) | Self::Finished => None,
        }
    }
}

impl Waiter {
    pub(super) fn new(request: Arc<LeaseRequest>, queued_at: Timestamp) -> Self {
        Self {
            request,
            queued_at,
            state: Mutex::new(WaiterState::Waiting(None)),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, WaiterState> {
        lock(&self.state)
    }

    pub(super) fn request(&self) -> &LeaseRequest {
        &self.request
    }

    pub(super) const fn queued_at(&self) -> Timestamp {
        self.queued_at
    }

    /// Takes the grant, or stores the waker.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<Grant> {
        let mut state = self.state();
        match &mut *state {
            WaiterState::Waiting(Some(stored)) => stored.clone_from(waker),
            WaiterState::Waiting(none) => *none = Some(waker.clone()),
            finished => {
                if let WaiterState::Granted(grant) = mem::replace(finished, WaiterState::Finished) {
                    return Poll::Ready(grant);
                }
            }
        }
        Poll::Pending
    }

    /// Takes the waker of a task that is waiting, and pushes it to `wakers`.
    ///
    /// Returns `false` if the waiter has a grant or has stopped waiting. The caller wakes the
    /// collected wakers after it has released the queue lock.
    pub(super) fn take_waker(&self, wakers: &mut Vec<Waker>) -> bool {
        match &mut *self.state() {
            WaiterState::Waiting(waker) => {
                wakers.extend(waker.take());
                true
            }
            WaiterState::Granted(_) | WaiterState::Finished => false,
        }
    }

    /// Stops waiting. Returns the state before.
    pub(super) fn cancel(&self) -> WaiterState {
        mem::replace(&mut self.state(), WaiterState::Finished)
    }
}
