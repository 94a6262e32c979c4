//! Where somebody waits for a permit.

use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::block::Credit;
use super::request::LeaseRequest;
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::sync::{Mutex, MutexGuard, lock};

/// What somebody is called for.
pub(super) enum Grant {
    /// There is a permit.
    Served(Credit),
    /// There is none to wait for: to be asked about by itself.
    Ask,
    /// The store could not answer.
    Fail(StoreError),
}

/// Whoever waits has a seat, and is called in turn. What he is called for lies there until he
/// comes: nobody who comes later can take it from him.
pub(super) struct Waiter {
    request: Arc<LeaseRequest>,
    now: Timestamp,
    place: Mutex<WaiterState>,
}

pub(super) enum WaiterState {
    Waiting(Option<Waker>),
    Called(Grant),
    Left,
}

impl WaiterState {
    pub(super) const fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting(_))
    }

    /// Says for what; and who is to be woken, unless he is awake already.
    pub(super) fn call(&mut self, call: Grant) -> Option<Waker> {
        match mem::replace(self, Self::Called(call)) {
            Self::Waiting(waker) => waker,
            Self::Called(_) | Self::Left => None,
        }
    }
}

impl Waiter {
    pub(super) fn new(request: Arc<LeaseRequest>, now: Timestamp) -> Self {
        Self {
            request,
            now,
            place: Mutex::new(WaiterState::Waiting(None)),
        }
    }

    pub(super) fn place(&self) -> MutexGuard<'_, WaiterState> {
        lock(&self.place)
    }

    pub(super) fn request(&self) -> &LeaseRequest {
        &self.request
    }

    /// When it was asked.
    pub(super) const fn now(&self) -> Timestamp {
        self.now
    }

    /// What he was called for, or whom to wake when he is.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<Grant> {
        let mut place = self.place();
        match &mut *place {
            WaiterState::Waiting(Some(known)) => known.clone_from(waker),
            WaiterState::Waiting(none) => *none = Some(waker.clone()),
            called => {
                if let WaiterState::Called(call) = mem::replace(called, WaiterState::Left) {
                    return Poll::Ready(call);
                }
            }
        }
        Poll::Pending
    }

    /// Whether he still waits. If so, he is to be woken to look whether something has come, unless
    /// he is awake already.
    pub(super) fn rouse(&self, wakers: &mut Vec<Waker>) -> bool {
        match &mut *self.place() {
            WaiterState::Waiting(waker) => {
                wakers.extend(waker.take());
                true
            }
            WaiterState::Called(_) | WaiterState::Left => false,
        }
    }

    /// He does not wait any more; what he was called for.
    pub(super) fn leave(&self) -> WaiterState {
        mem::replace(&mut self.place(), WaiterState::Left)
    }
}
