//! One look-up that all requests of a caller wait for.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::future::BoxFuture;

use super::lookup::LookupResult;
use crate::clock::Timestamp;
use crate::sync::locked;

/// A look-up that is polled by the tasks that wait for it. No task is spawned.
///
/// `futures_util::future::Shared` does the same, but loses a wake-up if the look-up makes progress
/// while one task polls it, another task is polled meanwhile, and the first one is then dropped.
pub(super) struct SharedLookup {
    /// `None` when the look-up is done.
    running: Mutex<Option<BoxFuture<'static, LookupResult>>>,
    /// Not behind the lock: a waiter that reads it must not make another one wait, which is never woken.
    result: OnceLock<LookupResult>,
    wakers: Arc<LookupWakers>,
    deadline: Timestamp,
}

impl SharedLookup {
    pub(super) fn new(lookup: BoxFuture<'static, LookupResult>, deadline: Timestamp) -> Self {
        Self {
            running: Mutex::new(Some(lookup)),
            result: OnceLock::new(),
            wakers: Arc::default(),
            deadline,
        }
    }

    /// Whether the deadline has passed at `now`. All waiters have then been dropped.
    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        now >= self.deadline
    }

    /// Returns a future of the result. Dropping it does not cancel the look-up for the others.
    pub(super) fn join(lookup: &Arc<Self>) -> LookupWaiter {
        LookupWaiter {
            lookup: Arc::clone(lookup),
            id: None,
        }
    }

    /// Polls the look-up on behalf of the waiter `id`.
    fn poll(&self, id: u64) -> Poll<LookupResult> {
        if let Some(result) = self.result.get() {
            return Poll::Ready(result.clone());
        }
        let mut running = match self.running.try_lock() {
            Ok(running) => running,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another waiter polls the look-up. It is polled again if there is more to do; if it is
            // dropped instead, `LookupWakers::remove` wakes another waiter.
            Err(TryLockError::WouldBlock) => return Poll::Pending,
        };
        let Some(lookup) = &mut *running else {
            // It was done after the check above.
            return self
                .result
                .get()
                .cloned()
                .map_or(Poll::Pending, Poll::Ready);
        };
        self.wakers.table().driver = Some(id);
        let waker = Waker::from(Arc::clone(&self.wakers));
        let polled = lookup.as_mut().poll(&mut Context::from_waker(&waker));
        if let Poll::Ready(result) = &polled {
            // Before the release and the wake-ups: a waiter that finds no result is woken afterwards.
            let _ = self.result.set(result.clone());
            let finished = running.take();
            // The user's future was polled, and has been dropped, under the lock. Its code may come back
            // here: `try_lock` fails then, so that it cannot deadlock. Wakers run after the release.
            drop(running);
            drop(finished);
            self.wakers.wake_all();
        }
        polled
    }
}

/// Wakers of the tasks that wait for a look-up.
///
/// A type of its own, because the look-up keeps a waker of this, and [`SharedLookup`] keeps the
/// look-up: otherwise the reference count would never reach zero.
#[derive(Default)]
struct LookupWakers {
    table: Mutex<WakerTable>,
}

/// Wakers are taken out under the lock, and woken or dropped after it is released: both may call
/// back into this module.
#[derive(Default)]
struct WakerTable {
    /// By waiter. An id is used once.
    wakers: BTreeMap<u64, Waker>,
    last_id: u64,
    /// The waiter that polled the look-up last, or that was woken to do so.
    driver: Option<u64>,
}

impl LookupWakers {
    fn wake_all(&self) {
        let wakers: Vec<Waker> = self.table().wakers.values().cloned().collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Stores the waker of a waiter. Returns the waiter's id, a new one for `None`.
    fn store(&self, id: Option<u64>, waker: &Waker) -> u64 {
        let mut table = self.table();
        let id = id.unwrap_or_else(|| {
            table.last_id += 1;
            table.last_id
        });
        let replaced = match table.wakers.get(&id) {
            Some(stored) if stored.will_wake(waker) => None,
            _ => table.wakers.insert(id, waker.clone()),
        };
        drop(table);
        drop(replaced);
        id
    }

    /// Removes a waiter. If it was the driver, another waiter becomes the driver and is woken.
    ///
    /// Progress of the look-up wakes all waiters, and the first one that is polled polls the look-up.
    /// Only waiters that are polled meanwhile return `Pending` without polling it, and they rely on
    /// the driver. So the removal of any other waiter needs no wake-up.
    fn remove(&self, id: u64) {
        let mut table = self.table();
        let removed = table.wakers.remove(&id);
        let mut successor = None;
        if table.driver == Some(id) {
            let first = table.wakers.first_key_value();
            successor = first.map(|(id, waker)| (*id, waker.clone()));
            // Recorded now: the successor may be dropped before it is polled.
            table.driver = successor.as_ref().map(|(id, _)| *id);
        }
        drop(table);
        drop(removed);
        if let Some((_, waker)) = successor {
            waker.wake();
        }
    }

    fn table(&self) -> MutexGuard<'_, WakerTable> {
        locked(&self.table)
    }
}

impl Wake for LookupWakers {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}

/// Future of the result of a [`SharedLookup`].
pub(super) struct LookupWaiter {
    lookup: Arc<SharedLookup>,
    /// `None` until the first poll.
    id: Option<u64>,
}

impl Future for LookupWaiter {
    type Output = LookupResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LookupResult> {
        // Stored before the look-up is polled, so that no wake-up is lost.
        let id = self.lookup.wakers.store(self.id, cx.waker());
        self.id = Some(id);
        self.lookup.poll(id)
    }
}

impl Drop for LookupWaiter {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.lookup.wakers.remove(id);
        }
    }
}
