//! Permits that are taken ahead, so that a hot counter costs a call per block.

mod block;
mod builder;
mod eligibility;
mod pool;
mod prefetch;
mod request;
mod state;
mod wait_queue;
mod waiter;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;
use std::{fmt, mem};

pub use self::builder::LeasedBuilder;
use self::eligibility::can_be_leased;
use self::pool::LeasePool;
use self::request::LeaseRequest;
use self::state::NextStep;
use self::waiter::{Grant, Waiter};
use super::by_print::ByPrint;
use super::fingerprint::{RequestPrint, Secret};
use super::{OverrideStore, Store, StoreAdmin, StoreFuture, StoreHealth, TimeSource, epoch_of};
use crate::batch::Batch;
use crate::clock::{Clock, Timestamp};
use crate::error::StoreError;
use crate::sync::{Mutex, lock};
use crate::usage::Usages;

/// Takes permits ahead in small blocks, so that a request that comes again and again costs the
/// store one call per block.
///
/// ```
/// use tollgate::store::Leased;
/// use tollgate::{Limiter, ManualClock, MemoryStore};
///
/// // Worth it around a store that is far away; memory is as quick by itself.
/// let store = Leased::builder(MemoryStore::new()).block_size(100).build()?;
/// let limiter = Limiter::builder()
///     .quota("100000/minute")
///     .store(store)
///     .clock(ManualClock::new())
///     .build()?;
/// for _ in 0..10_000 {
///     assert!(limiter.check("everybody").wait()?.is_allowed());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # How
///
/// Whoever asks first is asked about by itself. If the same request comes again (the same
/// counters, costs and limits), two are taken at once, then four, up to the
/// [block](LeasedBuilder::block_size); never more than a quarter of what is left, so near its end a
/// limit is counted one by one. While a block is on its way, those who need it wait for it, and are
/// served in turn.
///
/// Whatever is hot does not have to wait: if a block was spent within a quarter of its time, more is
/// asked for as soon as no more than one block is left, and so much that there are two. Whoever does
/// so lets other tasks have a turn before he goes on, so that the question is sent.
///
/// If two blocks do not last until the answer is there, and somebody has to wait for it, four are kept
/// ahead, then eight, up to 32: as many as are spent in a round trip. They are asked for in one call,
/// when half of them are spent. It is more than two only while that is no more than a sixteenth of
/// what is left, by what the store has said last; and half as many again when less than a quarter of
/// what was there is spent in a round trip.
///
/// # What is promised
///
/// **Never more than the limits.** What a lease has charged is spent while it makes no difference
/// to the counter when that was: a fixed or sliding window until it ends, sliding buckets until
/// the bucket ends. So everything that is admitted would have been admitted one by one, too, and
/// every bound of [the algorithms](crate::docs::algorithms) holds as it is. Token buckets and
/// sliding logs know the instant of each charge, and are passed on one by one; so is a request
/// that has one of them among its quotas.
///
/// **A little less, for a moment.** What one process has taken and not spent, no other can have.
/// For each kind of request in each process that is at most one block; two, if it is hot; and if two
/// are spent within a round trip, up to 32, but no more than a sixteenth of what was left when they
/// were asked for. So near its end a limit is shared by blocks as small as if nobody ever took more
/// than two. They are not spent any more after
/// [a quarter of a second](LeasedBuilder::max_ttl), and given back with the next call to the store,
/// whoever's that is; or by [`close`](Leased::close), or when the store is dropped, as far as a
/// runtime is left to do it on. A process that ends without a word takes its blocks with it until
/// their windows end, and one that has nothing more to do keeps them for as long.
///
/// # What is not
///
/// What was told with a lease holds for all of its permits: [`Usage::used`] does not know what
/// others have charged since. [`peek`](Store::peek) sees what is leased as used. A request whose
/// answer is dropped while it waits for a block is not charged.
///
/// If *another process* resets a counter, what this one has leased of it before does not know: so
/// much is admitted on top of the new limit, for each process up to two blocks, and up to 32 if it
/// spends two of them within a round trip.
pub struct Leased {
    shared: Arc<LeaseRegistry>,
}

struct LeaseRegistry {
    store: Arc<dyn Store>,
    settings: Settings,
    secret: Secret,
    pool: ByPrint<Arc<LeasePool>>,
    /// Desks in the order in which they took a lease, to see to those that nobody comes to.
    taken: Mutex<VecDeque<(Timestamp, Weak<LeasePool>)>>,
    is_closed: AtomicBool,
    /// Epoch of the store under which the leases were taken.
    epoch: AtomicU64,
}

#[derive(Debug)]
struct Settings {
    block: u64,
    max_ttl: Duration,
}

impl Leased {
    /// Takes up to 16 permits at once.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self::builder(store).create()
    }

    /// The same, with settings.
    pub fn builder(store: impl Store) -> LeasedBuilder {
        LeasedBuilder::new(Arc::new(store))
    }

    /// Gives back everything that was taken and not spent, and takes nothing ahead from now on.
    /// For the end of a process.
    pub fn close(&self) -> StoreFuture<()> {
        self.shared.is_closed.store(true, Ordering::Release);
        let store = &self.shared.store;
        StoreFuture::all(self.shared.pool().iter().map(|pool| pool.close(store)))
    }

    /// Returns unspent permits of leases that have expired at `now`. Requests do this as well; call it
    /// where there may be none for a while.
    pub fn sweep(&self, now: Timestamp) {
        for pool in self.shared.pool() {
            pool.tidy(&self.shared, now);
        }
    }

    fn pool(&self, print: RequestPrint) -> Arc<LeasePool> {
        let new = || Arc::new(LeasePool::new(&self.shared));
        if let Some(pool) = self.shared.pool.get(&print) {
            return pool;
        }
        let pool = new();
        self.shared.pool.insert(print, Arc::clone(&pool));
        pool
    }

    /// Serves a request from what was taken ahead, or asks for what it takes.
    #[inline]
    fn serve(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let shared = &self.shared;
        if !can_be_leased(batch) || shared.is_closed.load(Ordering::Acquire) {
            return shared.store.decide(batch, now);
        }
        shared.void_old_leases();
        let pool = self.pool(shared.secret.request_of(batch));
        let (next, has_asked) = pool.next(shared, now, || LeaseRequest::new(batch));
        // Whenever the store is asked, also if it has answered at once: else those that are to be
        // seen to would add up.
        if has_asked || matches!(next, NextStep::Ask) {
            shared.tidy(now);
        }
        match next {
            NextStep::Served(told) => StoreFuture::ready(Ok(told)),
            NextStep::ServedWithQuestion(told) => StoreFuture::pending(after_the_others(told)),
            NextStep::Fail(error) => StoreFuture::ready(Err(error)),
            NextStep::Ask => self.ask(pool, batch, now),
            NextStep::Wait(seat) => {
                let waiting = PendingGrant {
                    shared: Arc::clone(shared),
                    pool,
                    seat,
                    is_over: false,
                };
                StoreFuture::pending(waiting.called())
            }
        }
    }

    /// Asks about a request by itself.
    fn ask(&self, pool: Arc<LeasePool>, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let mut costs = [0; crate::batch::MAX_CHECKS];
        for (place, check) in costs.iter_mut().zip(batch.checks()) {
            *place = check.cost();
        }
        self.shared.store.decide(batch, now).map(move |answer| {
            let told = answer?;
            pool.heard(told.usages(), costs.into_iter());
            Ok(told)
        })
    }
}

/// Lets the others have a turn. Whoever has asked for the next block goes on with this one, and if
/// he never waited, those who are to send the question would not come to it before the block is
/// spent: a runtime has them wait in the line of this very thread.
async fn after_the_others<T>(told: T) -> Result<T, StoreError> {
    let mut had_a_turn = false;
    poll_fn(|context| {
        if mem::replace(&mut had_a_turn, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    Ok(told)
}

impl LeaseRegistry {
    /// All pool there are.
    fn pool(&self) -> Vec<Arc<LeasePool>> {
        self.pool.iter().map(|(_, pool)| pool).collect()
    }

    /// Voids all leases if the store's epoch has changed since they were taken. Their charges may have
    /// been reset, so they are not refunded.
    #[inline]
    fn void_old_leases(&self) {
        let epoch = epoch_of(&*self.store);
        if self.epoch.load(Ordering::Acquire) != epoch {
            self.epoch.store(epoch, Ordering::Release);
            self.pool().iter().for_each(|pool| pool.forfeit());
        }
    }

    /// Notes that there is a lease to be seen to, when its time is over.
    fn see_to(&self, pool: &Arc<LeasePool>, now: Timestamp) {
        let until = now.saturating_add(self.settings.max_ttl);
        lock(&self.taken).push_back((until, Arc::downgrade(pool)));
    }

    /// Sees to some leases whose time is over.
    fn tidy(&self, now: Timestamp) {
        const SOME: usize = 4;
        for _ in 0..SOME {
            let mut taken = lock(&self.taken);
            let is_due = taken.front().is_some_and(|(until, _)| *until <= now);
            let Some((_, pool)) = taken.pop_front_if(|_| is_due) else {
                return;
            };
            drop(taken);
            if let Some(pool) = pool.upgrade()
                && pool.tidy(self, now)
            {
                self.see_to(&pool, now);
            }
        }
    }
}

/// Somebody who waits for a block.
struct PendingGrant {
    shared: Arc<LeaseRegistry>,
    pool: Arc<LeasePool>,
    seat: Arc<Waiter>,
    is_over: bool,
}

impl PendingGrant {
    /// Waits to be called, and goes on with what for.
    async fn called(mut self) -> Result<Usages, StoreError> {
        let call = poll_fn(|context| self.pool.poll(&self.shared, &self.seat, context)).await;
        self.is_over = true;
        match call {
            Grant::Served(permit) => Ok(permit.tell()),
            Grant::Fail(error) => Err(error),
            Grant::Ask => {
                let (request, now) = (self.seat.request(), self.seat.now());
                let verdict = request.decide(&*self.shared.store, 1, now).await?;
                self.pool.heard(verdict.usages(), request.costs());
                Ok(verdict)
            }
        }
    }
}

/// Whoever goes without having been called leaves.
impl Drop for PendingGrant {
    fn drop(&mut self) {
        if !self.is_over {
            self.pool.leave(&self.shared, &self.seat);
        }
    }
}

impl Store for Leased {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.serve(batch, now)
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.shared.store.peek(batch, now)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.shared.store.record(batch, now)
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.shared.store.refund(batch, charged_at, now)
    }

    fn health(&self) -> StoreHealth {
        self.shared.store.health()
    }

    fn use_clock(&self, clock: &Arc<dyn Clock>) -> TimeSource {
        self.shared.store.use_clock(clock)
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.shared.store.admin()
    }

    #[inline]
    fn overrides(&self) -> Option<&dyn OverrideStore> {
        self.shared.store.overrides()
    }
}

/// What was not spent is given back, as far as there is a runtime left to do it on.
impl Drop for Leased {
    fn drop(&mut self) {
        self.close().detach();
    }
}

impl fmt::Debug for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased")
            .field("store", &self.shared.store)
            .field("settings", &self.shared.settings)
            .field("kinds_of_requests", &self.shared.pool.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Check;
    use crate::key::{Counter, Subject};
    use crate::store::MemoryStore;

    /// A store that answers at once is asked for one lease after the other, and nobody ever waits.
    #[test]
    fn leases_that_are_over_do_not_add_up() {
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
            let answer = store.decide(&batch, now).wait().expect("memory");
            assert!(answer.is_allowed());
        }
        let kept = lock(&store.shared.taken).len();
        assert!(kept <= 130, "{kept} of a quarter of a second");
    }
}
