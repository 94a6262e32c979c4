//! [`Leased`]: decorator that charges blocks of credits in advance.

mod block;
mod builder;
mod eligibility;
mod pool;
mod prefetch;
mod registry;
mod request;
mod state;
mod wait_queue;
mod waiter;

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::{fmt, mem};

pub use self::builder::LeasedBuilder;
use self::eligibility::can_be_leased;
use self::pool::PendingGrant;
pub(super) use self::pool::SingleDecision;
use self::registry::LeaseRegistry;
use self::request::LeaseRequest;
use self::state::NextStep;
use super::hook::CompletionHook;
use super::{Store, StoreFuture};
use crate::batch::Batch;
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::usage::Usages;

/// Decorator that charges blocks of credits in advance, so that a frequent request costs one store
/// call per block.
///
/// ```
/// use tollgate::store::Leased;
/// use tollgate::{Limiter, ManualClock, MemoryStore};
///
/// // For remote stores. A memory store decides as fast without it.
/// let store = Leased::builder(MemoryStore::new()).block_size(100).build()?;
/// let limiter = Limiter::builder()
///     .quota("100000/minute")
///     .store(store)
///     .clock(ManualClock::new())
///     .build()?;
/// for _ in 0..10_000 {
///     assert!(limiter.check("shared-key").wait()?.is_allowed());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # How it works
///
/// The store decides the first request of a kind (the same subjects, counters, costs and limits).
/// The next ones are leased in blocks of 2, then 4, up to the
/// [block size](LeasedBuilder::block_size); each block is at most a quarter of what remains, so that
/// the end of a limit is counted one by one. Requests that arrive while a block is pending wait for
/// it and are served in FIFO order.
///
/// If a block is spent within a quarter of its time to live, the next one is requested while one
/// block is left. The task that requests it yields once, so that the call is sent.
///
/// # Guarantees
///
/// **No more than the limit.** A credit is spent only while it makes no difference to the counter
/// when it was charged: until a fixed or sliding window ends, or the bucket of sliding buckets. Every
/// bound of [the algorithms](crate::docs::algorithms) holds. Requests with a token bucket or a
/// sliding log are not leased, because these store the instant of each charge. Requests with a dry
/// run are not leased either.
///
/// **Temporarily less than the limit.** Unspent credits of one process are not available to others:
/// for each kind of request up to one block, or two if it is frequent. They expire after
/// [250 ms](LeasedBuilder::max_ttl) and are refunded with the next store call of any kind of
/// request, by a [shutdown](Store::shutdown), or when the decorator is dropped, if a runtime is running.
/// A process that crashes, or that sends no further requests, leaves them charged until their window
/// ends.
///
/// A reset or a changed override makes all leases of this process void: their credits are neither
/// spent nor refunded. Leases of *other* processes are not affected: up to two blocks per process
/// are admitted on top of the new limit.
///
/// # Limitations
///
/// [`Usage::used`](crate::Usage::used) does not contain what other processes have charged since the
/// block was charged. [`peek`](Store::peek) counts unspent credits as used.
///
/// # Cancellation
///
/// A request that is dropped while it waits for a block is not charged.
pub struct Leased {
    registry: Arc<LeaseRegistry>,
}

impl Leased {
    /// Creates a decorator with the default settings.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self::builder(store).create()
    }

    /// Returns a builder with the default settings.
    pub fn builder(store: impl Store) -> LeasedBuilder {
        LeasedBuilder::new(Arc::new(store))
    }

    /// Refunds all unspent credits and stops leasing. [`shutdown`](Store::shutdown) does this as well.
    pub fn close(&self) -> StoreFuture<()> {
        let registry = &self.registry;
        registry.is_closed.store(true, Ordering::Release);
        let pools = registry.all_pools();
        StoreFuture::all(pools.iter().map(|pool| pool.close(&registry.store)))
    }

    /// Refunds unspent credits that have expired at `now`. Requests do this as well; for times
    /// without requests.
    pub fn sweep(&self, now: Timestamp) {
        for pool in self.registry.all_pools() {
            pool.sweep(&self.registry, now);
        }
    }
}

/// Lets other tasks of this thread run once. The call for the next block is sent by one of them, and
/// a task that never yields would spend the current block before.
async fn after_yield(usages: Usages) -> Result<Usages, StoreError> {
    let mut has_yielded = false;
    poll_fn(|context| {
        if mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    Ok(usages)
}

impl Store for Leased {
    #[inline]
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let registry = &self.registry;
        if !can_be_leased(batch) || registry.is_closed.load(Ordering::Acquire) {
            return registry.store.decide(batch, now);
        }
        let pool = registry.pool(registry.hasher.request_of(batch));
        let (step, has_requested) = pool.next(registry, now, || LeaseRequest::new(batch));
        // With every store call, so that the schedule does not grow.
        if has_requested || matches!(step, NextStep::Decide) {
            registry.sweep_some(now);
        }
        match step {
            NextStep::Serve(credit) => StoreFuture::ready(Ok(credit.to_usages())),
            NextStep::ServeAfterYield(credit) => {
                StoreFuture::pending(after_yield(credit.to_usages()))
            }
            NextStep::Fail(error) => StoreFuture::ready(Err(error)),
            NextStep::Decide => {
                let decision = SingleDecision::new(pool, batch);
                let future = registry.store.decide(batch, now);
                future.with_hook(CompletionHook::Lease(decision))
            }
            NextStep::Wait(waiter) => {
                let registry = Arc::clone(registry);
                let grant = PendingGrant {
                    registry,
                    pool,
                    waiter,
                };
                StoreFuture::pending(grant.resolve())
            }
        }
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.registry.store.peek(batch, now)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.registry.store.record(batch, now)
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.registry.store.refund(batch, charged_at, now)
    }

    /// [Closes](Self::close) the leases, then shuts the inner store down.
    fn shutdown(&self) -> StoreFuture<()> {
        let (closed, store) = (self.close(), Arc::clone(&self.registry.store));
        StoreFuture::pending(async move {
            let closed = closed.await;
            closed.and(store.shutdown().await)
        })
    }

    #[inline]
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.registry.store)
    }
}

/// Refunds unspent credits in the background, if a runtime is running.
impl Drop for Leased {
    fn drop(&mut self) {
        self.close().detach();
    }
}

impl fmt::Debug for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased")
            .field("store", &self.registry.store)
            .field("settings", &self.registry.settings)
            .field("kinds_of_requests", &self.registry.pools.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Check;
    use crate::key::{Counter, Subject};
    use crate::store::MemoryStore;

    /// A store that replies synchronously receives one request for a block after the other, and no
    /// request ever waits.
    #[test]
    fn expired_leases_are_removed_from_the_schedule() {
        let store = Leased::builder(MemoryStore::new()).block_size(2);
        let store = store.build().expect("valid");
        let quota = "1000000/hour".parse().expect("valid");
        let (subject, counter) = (
            Subject::from("hot"),
            Counter::new("rule", quota).expect("valid"),
        );
        for millis in 0..10_000 {
            let now = Timestamp::from_micros(millis * 1_000);
            let check = Check::new(&subject, &counter);
            let batch = Batch::new(std::slice::from_ref(&check)).expect("valid");
            let usages = store.decide(&batch, now).wait().expect("memory");
            assert!(usages.is_allowed());
        }
        let scheduled = store.registry.scheduled_expiries();
        assert!(scheduled <= 130, "{scheduled} within 250 ms");
    }
}
