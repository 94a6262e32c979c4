//! One lookup for all who wait for it.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Wake, Waker};

use slab::Slab;

use super::lookup::{Lookup, Outcome};
use crate::clock::Timestamp;

/// A lookup that is driven by whoever of those who wait for it is polled.
pub(super) struct Flight {
    stage: Mutex<Stage>,
    waiting: Arc<Waiting>,
    deadline: Timestamp,
}

enum Stage {
    Going(Box<Lookup>),
    Landed(Outcome),
}

impl Flight {
    pub(super) fn new(lookup: Lookup, deadline: Timestamp) -> Self {
        Self {
            stage: Mutex::new(Stage::Going(Box::new(lookup))),
            waiting: Arc::default(),
            deadline,
        }
    }

    /// Whether it should have landed by `now`: then everybody has left it.
    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        now >= self.deadline
    }

    /// Waits for the outcome, together with all others who do.
    pub(super) fn join(flight: &Arc<Self>) -> Passenger {
        Passenger {
            flight: Arc::clone(flight),
            place: None,
        }
    }

    fn poll(&self) -> Poll<Outcome> {
        let mut stage = match self.stage.try_lock() {
            Ok(stage) => stage,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody else is at it, and will be polled again if there is more to do; if
            // they leave instead, that wakes all who stay.
            Err(TryLockError::WouldBlock) => return Poll::Pending,
        };
        let lookup = match &mut *stage {
            Stage::Landed(outcome) => return Poll::Ready(outcome.clone()),
            Stage::Going(lookup) => lookup,
        };
        let waker = Waker::from(Arc::clone(&self.waiting));
        let polled = Pin::new(&mut **lookup).poll(&mut Context::from_waker(&waker));
        if let Poll::Ready(outcome) = &polled {
            let over = mem::replace(&mut *stage, Stage::Landed(outcome.clone()));
            // What is left of the user's future ends without our lock.
            drop(stage);
            drop(over);
            self.waiting.wake_all();
        }
        polled
    }
}

/// Who waits for a flight. Apart from it, because the lookup keeps a waker of this, and the
/// flight keeps the lookup.
#[derive(Default)]
struct Waiting {
    wakers: Mutex<Slab<Waker>>,
}

impl Waiting {
    fn wake_all(&self) {
        // Without the lock, because whoever is woken may come back here.
        let wakers: Vec<Waker> = {
            let waiting = self.wakers();
            waiting.iter().map(|(_, waker)| waker.clone()).collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Keeps a waker at its place, or finds one for it.
    fn keep(&self, place: Option<usize>, waker: &Waker) -> usize {
        let mut wakers = self.wakers();
        if let Some(place) = place
            && let Some(kept) = wakers.get_mut(place)
        {
            kept.clone_from(waker);
            return place;
        }
        wakers.insert(waker.clone())
    }

    fn wakers(&self) -> MutexGuard<'_, Slab<Waker>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}

/// One who waits.
pub(super) struct Passenger {
    flight: Arc<Flight>,
    /// Where its waker is kept, while it waits.
    place: Option<usize>,
}

impl Passenger {
    /// Whether it was waiting.
    fn leave(&mut self) -> bool {
        let place = self.place.take();
        place.is_some_and(|place| {
            let mut wakers = self.flight.waiting.wakers();
            wakers.try_remove(place).is_some()
        })
    }
}

impl Future for Passenger {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        // Before the lookup is polled, so that no wake is missed.
        let place = self.flight.waiting.keep(self.place, cx.waker());
        self.place = Some(place);
        let polled = self.flight.poll();
        if polled.is_ready() {
            self.leave();
        }
        polled
    }
}

/// Whoever leaves early may have been the one to be polled next.
impl Drop for Passenger {
    fn drop(&mut self) {
        if self.leave() {
            self.flight.waiting.wake_all();
        }
    }
}
