//! One lookup for all who wait for it.

use std::collections::BTreeMap;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::task::{Context, Poll, Wake, Waker};

use super::lookup::{Lookup, Outcome};
use crate::clock::Timestamp;
use crate::sync::locked;

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

    /// `place` is that of whoever is polled.
    fn poll(&self, place: u64) -> Poll<Outcome> {
        let mut stage = match self.stage.try_lock() {
            Ok(stage) => stage,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody else is at it, and will be polled again if there is more to do; if
            // they leave instead, that wakes one who stays.
            Err(TryLockError::WouldBlock) => return Poll::Pending,
        };
        let lookup = match &mut *stage {
            Stage::Landed(outcome) => return Poll::Ready(outcome.clone()),
            Stage::Going(lookup) => lookup,
        };
        self.waiting.desk().driver = Some(place);
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
    desk: Mutex<Desk>,
}

/// Wakers leave it before they are woken or dropped: both may come back here.
#[derive(Default)]
struct Desk {
    /// By place; places are given out once.
    wakers: BTreeMap<u64, Waker>,
    next: u64,
    /// Who was the last to poll the lookup, or has been woken to do so.
    driver: Option<u64>,
}

impl Waiting {
    fn wake_all(&self) {
        let wakers: Vec<Waker> = self.desk().wakers.values().cloned().collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Keeps a waker at its place, or finds one for it.
    fn keep(&self, place: Option<u64>, waker: &Waker) -> u64 {
        let mut desk = self.desk();
        let place = place.unwrap_or_else(|| {
            desk.next += 1;
            desk.next
        });
        let before = match desk.wakers.get(&place) {
            Some(kept) if kept.will_wake(waker) => None,
            _ => desk.wakers.insert(place, waker.clone()),
        };
        drop(desk);
        drop(before);
        place
    }

    /// Gives a place back, and wakes one who stays if it was the driver's.
    ///
    /// Whenever the lookup can go on, all are woken, and the first to be polled polls it. Only
    /// those who come while the driver is at it go back to sleep, and rely on the driver, who
    /// has been woken as well. So nobody else's leaving is anybody's business.
    fn leave(&self, place: u64) {
        let mut desk = self.desk();
        let gone = desk.wakers.remove(&place);
        let mut heir = None;
        if desk.driver == Some(place) {
            let first = desk.wakers.first_key_value();
            heir = first.map(|(place, waker)| (*place, waker.clone()));
            // Who may leave before it is polled, too.
            desk.driver = heir.as_ref().map(|(place, _)| *place);
        }
        drop(desk);
        drop(gone);
        if let Some((_, waker)) = heir {
            waker.wake();
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        locked(&self.desk)
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
    /// Where its waker is kept, once it waits.
    place: Option<u64>,
}

impl Future for Passenger {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        // Before the lookup is polled, so that no wake is missed.
        let place = self.flight.waiting.keep(self.place, cx.waker());
        self.place = Some(place);
        self.flight.poll(place)
    }
}

impl Drop for Passenger {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.flight.waiting.leave(place);
        }
    }
}
