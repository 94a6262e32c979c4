//! Lease of one kind of request: its blocks and the policy for the next one.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::block::{Credit, CreditBlock, PendingBlock, remaining_credits};
use super::prefetch::PrefetchPolicy;
use super::registry::LeaseRegistry;
use super::request::LeaseRequest;
use super::wait_queue::WaitQueue;
use super::waiter::{Grant, Waiter};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::store::{Store, epoch_of};
use crate::usage::Usages;

/// State behind the lock of a [`LeasePool`](super::pool::LeasePool).
pub(super) struct LeaseState {
    /// Set when the first block is requested. Equal for all requests of the pool.
    request: Option<Arc<LeaseRequest>>,
    /// In order of arrival.
    blocks: VecDeque<CreditBlock>,
    /// One at a time, so that waiters share a call.
    pending: Option<PendingBlock>,
    policy: PrefetchPolicy,
    /// Instant of the last request.
    now: Timestamp,
    pub(super) queue: Arc<WaitQueue>,
    pub(super) effects: Effects,
}

/// What remains to be done after the lock is released.
#[derive(Default)]
pub(super) struct Effects {
    pub(super) wakers: Vec<Waker>,
    /// Instant at which a block was requested.
    pub(super) requested_at: Option<Timestamp>,
}

/// How a request proceeds.
pub(super) enum NextStep {
    Serve(Credit),
    /// Serves the credit after one yield, in which the request for the next block is sent.
    ServeAfterYield(Credit),
    Wait(Arc<Waiter>),
    /// The request is decided by the store.
    Decide,
    Fail(StoreError),
}

/// Result of a request for a block.
enum BlockRequest {
    Pending,
    Completed(Result<(), StoreError>),
    /// Fewer than two credits would be requested.
    TooSmall,
}

impl LeaseState {
    pub(super) fn new(max_block: u64) -> Self {
        Self {
            request: None,
            blocks: VecDeque::new(),
            pending: None,
            policy: PrefetchPolicy::new(max_block),
            now: Timestamp::EPOCH,
            queue: Arc::default(),
            effects: Effects::default(),
        }
    }

    pub(super) const fn has_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns the unspent credits, including those of the pending block.
    fn credits(&self) -> u64 {
        let pending = self.pending.as_ref().map_or(0, PendingBlock::credits);
        self.blocks.iter().map(CreditBlock::credits).sum::<u64>() + pending
    }

    /// Serves a request, or requests a block for it.
    #[inline]
    pub(super) fn next(
        &mut self,
        registry: &LeaseRegistry,
        now: Timestamp,
        request: impl FnOnce() -> LeaseRequest,
    ) -> NextStep {
        let store = &*registry.store;
        self.now = now;
        if self.has_pending() && self.queue.was_woken() {
            self.poll_pending(registry);
        }
        let front = self.blocks.front();
        if front.is_some_and(|block| block.is_from_future(now)) {
            while self.end_block(store, now) {}
        }
        let Some(credit) = self.take_credit(store, now) else {
            return self.next_without_credit(registry, request);
        };
        if !self.has_pending()
            && self.policy.wants_more(self.credits())
            // This request has its credit. An error concerns the next request without one.
            && let BlockRequest::Pending = self.request_block(registry)
        {
            return NextStep::ServeAfterYield(credit);
        }
        NextStep::Serve(credit)
    }

    #[cold]
    fn next_without_credit(
        &mut self,
        registry: &LeaseRegistry,
        request: impl FnOnce() -> LeaseRequest,
    ) -> NextStep {
        if self.request.is_none() && self.shortfall() >= 2 {
            self.request = Some(Arc::new(request()));
        }
        if !self.has_pending() {
            if let BlockRequest::Completed(Err(error)) = self.request_block(registry) {
                return NextStep::Fail(error);
            }
            if let Some(credit) = self.take_credit(&*registry.store, self.now) {
                return NextStep::Serve(credit);
            }
        }
        match &self.request {
            Some(request) if self.has_pending() => {
                let waiter = Arc::new(Waiter::new(Arc::clone(request), self.now));
                self.queue.push(Arc::clone(&waiter));
                NextStep::Wait(waiter)
            }
            _ => NextStep::Decide,
        }
    }

    /// Takes a credit of the first block that has one. Ends the blocks before it.
    #[inline]
    fn take_credit(&mut self, store: &dyn Store, now: Timestamp) -> Option<Credit> {
        let epoch = epoch_of(store);
        loop {
            let block = self.blocks.front_mut()?;
            let Some(credit) = block.take_credit(epoch, now) else {
                self.end_block(store, now);
                continue;
            };
            if block.credits() == 0 {
                self.policy.on_spent(block.is_hot(now));
                self.blocks.pop_front();
            }
            return Some(credit);
        }
    }

    fn shortfall(&self) -> u64 {
        self.policy
            .shortfall(self.credits(), self.queue.len() as u64)
    }

    #[cold]
    fn request_block(&mut self, registry: &LeaseRegistry) -> BlockRequest {
        let credits = self.shortfall();
        let request = match &self.request {
            Some(request) if credits >= 2 => request,
            _ => return BlockRequest::TooSmall,
        };
        let mut block = PendingBlock::new(request, credits, &*registry.store, self.now);
        self.effects.requested_at = Some(self.now);
        self.policy.on_request(credits);
        self.queue.expect_credits(credits);
        let waker = Waker::from(Arc::clone(&self.queue));
        match block.poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => {
                self.pending = Some(block);
                BlockRequest::Pending
            }
            Poll::Ready(reply) => BlockRequest::Completed(self.on_reply(block, reply, registry)),
        }
    }

    /// Polls the pending block if the queue was woken, and assigns its credits to waiters.
    #[cold]
    pub(super) fn poll_pending(&mut self, registry: &LeaseRegistry) {
        if !self.queue.take_wake() {
            return;
        }
        let waker = Waker::from(Arc::clone(&self.queue));
        let Some(mut block) = self.pending.take() else {
            return;
        };
        match block.poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => self.pending = Some(block),
            Poll::Ready(reply) => {
                let result = self.on_reply(block, reply, registry);
                self.serve_waiters(registry, result.err());
            }
        }
    }

    fn on_reply(
        &mut self,
        pending: PendingBlock,
        reply: Result<Usages, StoreError>,
        registry: &LeaseRegistry,
    ) -> Result<(), StoreError> {
        let block = reply.map(|usages| pending.into_block(&usages, registry.settings.max_ttl));
        if let Ok(Some(block)) = block {
            self.policy.on_arrival(block.remaining());
            self.blocks.push_back(block);
            return Ok(());
        }
        self.policy.on_refused();
        block.map(drop)
    }

    /// Assigns credits to waiters in FIFO order. Requests one more block for the others, if none is
    /// pending. If there is none to request, all others are decided by the store, or fail with
    /// `error`.
    fn serve_waiters(&mut self, registry: &LeaseRegistry, mut error: Option<StoreError>) {
        let mut has_requested = false;
        while let Some(waiter) = self.queue.first() {
            let mut state = waiter.state();
            if state.is_waiting() {
                let now = waiter.queued_at();
                let Some(credit) = self.take_credit(&*registry.store, now) else {
                    drop(state);
                    if self.has_pending() {
                        return;
                    }
                    // Waiters can be later than the last request that was served.
                    self.now = self.now.max(now);
                    let request = if mem::replace(&mut has_requested, true) {
                        BlockRequest::TooSmall
                    } else {
                        self.request_block(registry)
                    };
                    match request {
                        BlockRequest::Pending => return,
                        BlockRequest::Completed(Ok(())) => continue,
                        BlockRequest::Completed(Err(failed)) => error = Some(failed),
                        BlockRequest::TooSmall => {}
                    }
                    return self.dismiss_waiters(error.as_ref());
                };
                self.effects
                    .wakers
                    .extend(state.grant(Grant::Credit(credit)));
            }
            drop(state);
            self.queue.remove_first(&waiter);
        }
    }

    /// Ends the wait of all waiters: they are decided by the store, or fail with `error`.
    fn dismiss_waiters(&mut self, error: Option<&StoreError>) {
        while let Some(waiter) = self.queue.first() {
            let mut state = waiter.state();
            if state.is_waiting() {
                let grant = error.map_or(Grant::Decide, |error| Grant::Fail(error.again()));
                self.effects.wakers.extend(state.grant(grant));
            }
            drop(state);
            self.queue.remove_first(&waiter);
        }
    }

    /// Removes the first block and refunds it in the background. Returns whether there was one.
    #[cold]
    fn end_block(&mut self, store: &dyn Store, now: Timestamp) -> bool {
        let Some(block) = self.blocks.pop_front() else {
            return false;
        };
        self.policy.on_unspent();
        // A lost refund makes the limit smaller until its window ends.
        block.refund(store, Some(now)).detach();
        true
    }

    /// Refunds expired blocks.
    pub(super) fn sweep(&mut self, registry: &LeaseRegistry, now: Timestamp) {
        self.poll_pending(registry);
        while self
            .blocks
            .front()
            .is_some_and(|block| block.is_expired(now))
        {
            self.end_block(&*registry.store, now);
        }
    }

    /// Removes all blocks, which the caller refunds, and dismisses the waiters.
    pub(super) fn clear(&mut self) -> (VecDeque<CreditBlock>, Option<PendingBlock>) {
        self.policy.on_unspent();
        self.dismiss_waiters(None);
        (mem::take(&mut self.blocks), self.pending.take())
    }

    /// Adapts the policy to a request that was decided by the store.
    pub(super) fn on_decided(&mut self, usages: &Usages, costs: impl Iterator<Item = u64>) {
        if usages.is_allowed() {
            let remaining = remaining_credits(usages.usages(), costs);
            self.policy.on_allowed(remaining);
        } else {
            self.policy.on_denied();
        }
    }
}
