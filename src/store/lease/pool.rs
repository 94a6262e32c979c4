//! Lease of one kind of request, shared by the tasks that send it: [`LeasePool`].

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use super::block::{CreditBlock, PendingBlock};
use super::registry::LeaseRegistry;
use super::request::LeaseRequest;
use super::state::{LeaseState, NextStep};
use super::wait_queue::WaitQueue;
use super::waiter::{Grant, Waiter, WaiterState};
use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::store::{Store, StoreFuture};
use crate::sync::{Mutex, lock};
use crate::usage::Usages;

pub(super) struct LeasePool {
    registry: Weak<LeaseRegistry>,
    state: Mutex<LeaseState>,
    /// Queue of the state, accessible without its lock.
    queue: Arc<WaitQueue>,
}

impl LeasePool {
    pub(super) fn new(registry: &Arc<LeaseRegistry>) -> Self {
        let state = LeaseState::new(registry.settings.block_size);
        Self {
            registry: Arc::downgrade(registry),
            queue: Arc::clone(&state.queue),
            state: Mutex::new(state),
        }
    }

    /// Works on the state, then wakes tasks and schedules the expiry without holding its lock.
    /// Also returns whether a block was requested.
    #[inline]
    fn with_state<T>(
        self: &Arc<Self>,
        registry: &LeaseRegistry,
        work: impl FnOnce(&mut LeaseState) -> T,
    ) -> (T, bool) {
        let mut state = lock(&self.state);
        let result = work(&mut state);
        let effects = mem::take(&mut state.effects);
        drop(state);
        effects.wakers.into_iter().for_each(Waker::wake);
        if let Some(now) = effects.requested_at {
            registry.schedule_expiry(self, now);
        }
        (result, effects.requested_at.is_some())
    }

    /// Serves a request, or requests a block for it. Also returns whether a block was requested.
    #[inline]
    pub(super) fn next(
        self: &Arc<Self>,
        registry: &LeaseRegistry,
        now: Timestamp,
        request: impl FnOnce() -> LeaseRequest,
    ) -> (NextStep, bool) {
        self.with_state(registry, |state| {
            // Read under the lock, so that `close` finds every block that was requested before.
            if registry.is_closed.load(Ordering::Acquire) {
                return NextStep::Decide;
            }
            state.next(registry, now, request)
        })
    }

    pub(super) fn poll_grant(
        self: &Arc<Self>,
        registry: &LeaseRegistry,
        waiter: &Waiter,
        context: &mut Context<'_>,
    ) -> Poll<Grant> {
        // The waker is stored before `was_woken` is read, so that no wake-up is lost.
        let grant = waiter.poll(context.waker());
        if grant.is_ready() || !self.queue.was_woken() {
            return grant;
        }
        self.with_state(registry, |state| state.poll_pending(registry));
        waiter.poll(context.waker())
    }

    /// Removes a waiter whose task is gone, and refunds its credit.
    pub(super) fn cancel(self: &Arc<Self>, registry: &LeaseRegistry, waiter: &Waiter) {
        match waiter.cancel() {
            WaiterState::Waiting(_) => {
                self.queue.on_cancel();
                // This task may have been the only one that was woken.
                self.with_state(registry, |state| state.poll_pending(registry));
            }
            WaiterState::Granted(Grant::Credit(credit)) => {
                credit.refund(&*registry.store).detach();
            }
            WaiterState::Granted(_) | WaiterState::Finished => {}
        }
    }

    pub(super) fn on_decided(&self, usages: &Usages, costs: impl Iterator<Item = u64>) {
        lock(&self.state).on_decided(usages, costs);
    }

    /// Refunds expired blocks. Returns whether one is pending, which will expire later.
    pub(super) fn sweep(self: &Arc<Self>, registry: &LeaseRegistry, now: Timestamp) -> bool {
        let (has_pending, _) = self.with_state(registry, |state| {
            state.sweep(registry, now);
            state.has_pending()
        });
        has_pending
    }

    /// Refunds all blocks, and the pending one when it arrives. Waiters are decided by the store.
    pub(super) fn close(&self, store: &Arc<dyn Store>) -> StoreFuture<()> {
        let mut state = lock(&self.state);
        let (blocks, pending): (VecDeque<CreditBlock>, Option<PendingBlock>) = state.clear();
        let effects = mem::take(&mut state.effects);
        drop(state);
        effects.wakers.into_iter().for_each(Waker::wake);
        let blocks = blocks.into_iter().map(|block| block.refund(&**store, None));
        let cancel =
            |pending: PendingBlock| StoreFuture::pending(pending.cancel(Arc::clone(store)));
        StoreFuture::all(blocks.chain(pending.map(cancel)))
    }
}

/// The registry drops pools that are used less than others.
impl Drop for LeasePool {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.upgrade() {
            self.close(&registry.store).detach();
        }
    }
}

/// Future of a request that waits for a block.
pub(super) struct PendingGrant {
    pub(super) registry: Arc<LeaseRegistry>,
    pub(super) pool: Arc<LeasePool>,
    pub(super) waiter: Arc<Waiter>,
}

impl PendingGrant {
    pub(super) async fn resolve(self) -> Result<Usages, StoreError> {
        let poll =
            |context: &mut Context<'_>| self.pool.poll_grant(&self.registry, &self.waiter, context);
        match std::future::poll_fn(poll).await {
            Grant::Credit(credit) => Ok(credit.to_usages()),
            Grant::Fail(error) => Err(error),
            Grant::Decide => {
                let (request, now) = (self.waiter.request(), self.waiter.queued_at());
                let usages = request.decide(&*self.registry.store, 1, now).await?;
                self.pool.on_decided(&usages, request.costs());
                Ok(usages)
            }
        }
    }
}

/// Has no effect on a waiter that has received its grant.
impl Drop for PendingGrant {
    fn drop(&mut self) {
        self.pool.cancel(&self.registry, &self.waiter);
    }
}

/// A request that the store decides. Its result adapts the block size.
pub(in crate::store) struct SingleDecision {
    pool: Arc<LeasePool>,
    costs: [u64; MAX_CHECKS],
}

impl SingleDecision {
    pub(super) fn new(pool: Arc<LeasePool>, batch: &Batch<'_>) -> Self {
        let mut costs = [0; MAX_CHECKS];
        for (cost, check) in costs.iter_mut().zip(batch.checks()) {
            *cost = Check::cost(check);
        }
        Self { pool, costs }
    }

    pub(in crate::store) fn complete(self, usages: &Usages) {
        self.pool.on_decided(usages, self.costs.into_iter());
    }
}
