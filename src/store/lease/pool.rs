//! Where one kind of request is served.

use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use super::LeaseRegistry;
use super::block::Block;
use super::request::LeaseRequest;
use super::state::{LeaseState, NextStep};
use super::wait_queue::WaitQueue;
use super::waiter::{Grant, Waiter, WaiterState};
use crate::clock::Timestamp;
use crate::store::{Store, StoreFuture};
use crate::sync::{Mutex, MutexGuard, lock};
use crate::usage::Usage;

pub(super) struct LeasePool {
    shared: Weak<LeaseRegistry>,
    counter: Mutex<LeaseState>,
    /// The counter's own, to be listened to without its lock.
    bell: Arc<WaitQueue>,
}

impl LeasePool {
    pub(super) fn new(shared: &Arc<LeaseRegistry>) -> Self {
        let counter = LeaseState::new(&shared.settings);
        Self {
            shared: Arc::downgrade(shared),
            bell: Arc::clone(&counter.bell),
            counter: Mutex::new(counter),
        }
    }

    fn counter(&self) -> MutexGuard<'_, LeaseState> {
        lock(&self.counter)
    }

    /// Does something to the counter, and then what follows from it: outside of the lock, which
    /// others wait for. Says whether a block was asked for.
    #[inline]
    fn with<T>(
        self: &Arc<Self>,
        shared: &LeaseRegistry,
        work: impl FnOnce(&mut LeaseState) -> T,
    ) -> (T, bool) {
        let mut counter = self.counter();
        let before = counter.asked();
        let done = work(&mut counter);
        let (woken, now) = (mem::take(&mut counter.woken), counter.now());
        let has_asked = counter.asked() != before;
        drop(counter);
        woken.into_iter().for_each(Waker::wake);
        if has_asked {
            shared.see_to(self, now);
        }
        (done, has_asked)
    }

    /// Serves a request, or starts what it takes. Says whether a block was asked for.
    #[inline]
    pub(super) fn next(
        self: &Arc<Self>,
        shared: &LeaseRegistry,
        now: Timestamp,
        request: impl FnOnce() -> LeaseRequest,
    ) -> (NextStep, bool) {
        self.with(shared, |counter| {
            // Looked at in here, so that whoever closes it finds every block that was taken before.
            if shared.is_closed.load(Ordering::Acquire) {
                return NextStep::Ask;
            }
            counter.next(shared, now, request)
        })
    }

    /// Waits to be called.
    pub(super) fn poll(
        self: &Arc<Self>,
        shared: &LeaseRegistry,
        seat: &Waiter,
        context: &mut Context<'_>,
    ) -> Poll<Grant> {
        shared.void_old_leases();
        // Before the bell is listened to: it may wake_waiters meanwhile.
        let called = seat.poll(context.waker());
        if called.is_ready() || !self.bell.has_rung() {
            return called;
        }
        self.with(shared, |counter| counter.look(shared));
        seat.poll(context.waker())
    }

    /// Somebody does not wait any more.
    pub(super) fn leave(self: &Arc<Self>, shared: &LeaseRegistry, seat: &Waiter) {
        match seat.leave() {
            // He may have been woken to look, instead of all others.
            WaiterState::Waiting(_) => {
                self.with(shared, |counter| {
                    counter.bell.has_lost_one();
                    counter.look(shared);
                });
            }
            WaiterState::Called(Grant::Served(permit)) => {
                let (store, at) = (&*shared.store, permit.at());
                seat.request().refund(store, 1, at, at).detach();
            }
            WaiterState::Called(_) | WaiterState::Left => {}
        }
    }

    /// Notes what was said to a request that was asked about by itself.
    pub(super) fn heard(&self, usages: &[Usage], costs: impl Iterator<Item = u64>) {
        self.counter().heard(usages, costs);
    }

    /// Gives back what was not spent, if its time is over. Says whether it is to be seen to again:
    /// what nobody waits for any more may still come.
    pub(super) fn tidy(self: &Arc<Self>, shared: &LeaseRegistry, now: Timestamp) -> bool {
        let (is_due_again, _) = self.with(shared, |counter| {
            counter.tidy(shared, now);
            counter.has_underway()
        });
        is_due_again
    }

    /// Gives back what was not spent, whether its time is over or not, and what is still on its way.
    /// Whoever waits for that asks by himself.
    pub(super) fn close(&self, store: &Arc<dyn Store>) -> StoreFuture<()> {
        let mut counter = self.counter();
        let (blocks, underway) = counter.clear();
        let woken = mem::take(&mut counter.woken);
        drop(counter);
        woken.into_iter().for_each(Waker::wake);
        let refund = |block: Block| block.end_early(&**store);
        let blocks = blocks.into_iter().map(refund);
        let underway = underway
            .into_iter()
            .map(|underway| StoreFuture::pending(underway.end(Arc::clone(store))));
        StoreFuture::all(blocks.chain(underway))
    }

    /// Forgets what was not spent: the store has forgotten that it was charged. What is on its way
    /// may have been charged before.
    pub(super) fn forfeit(&self) {
        let mut counter = self.counter();
        let forfeited = counter.clear();
        let woken = mem::take(&mut counter.woken);
        drop(counter);
        woken.into_iter().for_each(Waker::wake);
        drop(forfeited);
    }
}

/// A pool that is closed, since others are busier or the store is dropped, keeps nothing.
impl Drop for LeasePool {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        self.close(&shared.store).detach();
    }
}
