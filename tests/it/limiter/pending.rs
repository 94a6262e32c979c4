//! Reservations in stores whose futures are not ready at once.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use tollgate::{
    Batch, Limiter, MemoryStore, Store, StoreAdmin, StoreFuture, Subject, Timestamp, Usages,
};

/// Longer than any operation takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Memory store whose futures do nothing before they are polled, and are pending at the first poll,
/// like a network store without a task of its own.
#[derive(Clone, Debug, Default)]
struct Lazy(Arc<MemoryStore>);

/// Runs `work` at the second poll.
fn later<T: Unpin + Send + 'static>(
    work: impl FnOnce() -> StoreFuture<T> + Send + 'static,
) -> StoreFuture<T> {
    StoreFuture::pending(async move {
        tokio::task::yield_now().await;
        work().await
    })
}

/// Supports the batches of these tests: one check of one subject.
macro_rules! on_its_own {
    ($self:ident, $batch:ident, |$store:ident, $again:ident| $work:expr) => {{
        let $store = Arc::clone(&$self.0);
        let check = $batch.checks()[0];
        let (counter, quota, cost) = (check.counter().clone(), *check.quota(), check.cost());
        later(move || {
            let subject = Subject::from("all");
            let checks = [tollgate::Check::new(&subject, &counter)
                .with_quota(&quota)
                .with_cost(cost)];
            let $again = Batch::new(&checks).unwrap();
            $work
        })
    }};
}

impl Store for Lazy {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        on_its_own!(self, batch, |store, batch| store.decide(&batch, now))
    }
    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        on_its_own!(self, batch, |store, batch| store.peek(&batch, now))
    }
    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        on_its_own!(self, batch, |store, batch| store.record(&batch, now))
    }
    fn refund(&self, batch: &Batch<'_>, at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        on_its_own!(self, batch, |store, batch| store.refund(&batch, at, now))
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.0.admin()
    }
}

fn limiter(store: impl Store) -> Limiter {
    let builder = Limiter::builder().quota("5/hour, sliding-log");
    builder.store(store).build().unwrap()
}

/// Waits until `wanted` are left.
async fn until_left(limiter: &Limiter, wanted: u64) {
    let poll = async {
        while limiter.remaining("all").await.unwrap() != wanted {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let came = tokio::time::timeout(PATIENCE, poll).await;
    assert!(came.is_ok(), "{:?} left", limiter.remaining("all").await);
}

/// Must hold for every store.
async fn refunds_unless_committed(limiter: &Limiter) {
    let room = limiter.reserve("all").cost(2).await.unwrap();
    until_left(limiter, 3).await;
    drop(room);
    until_left(limiter, 5).await;

    let room = limiter.reserve("all").cost(2).await.unwrap();
    room.cancel().await.unwrap();
    assert_eq!(limiter.remaining("all").await.unwrap(), 5);

    let room = limiter.reserve("all").cost(4).await.unwrap();
    room.commit_cost(1).await.unwrap();
    assert_eq!(limiter.remaining("all").await.unwrap(), 4);

    let room = limiter.reserve("all").await.unwrap();
    assert!(room.is_allowed());
    room.commit();
    assert_eq!(limiter.remaining("all").await.unwrap(), 3);
}

/// The future of the reservation is dropped before it completes, so it can never be committed.
async fn refunds_a_dropped_future(limiter: &Limiter) {
    let before = limiter.remaining("all").await.unwrap();
    for polls in 0..3 {
        let mut answer = limiter.reserve("all").cost(2).into_future();
        for _ in 0..polls {
            let mut context = Context::from_waker(Waker::noop());
            let _ = Pin::new(&mut answer).poll(&mut context);
        }
        drop(answer);
        until_left(limiter, before).await;
    }
    // Every charge was refunded: the whole limit is available.
    for _ in 0..before {
        let room = limiter.reserve("all").await.unwrap();
        assert!(room.is_allowed());
        room.commit();
    }
    assert!(limiter.reserve("all").await.unwrap().is_denied());
}

/// The settlement was lost when its future was dropped: a lazy store was not called, and the charge
/// stayed.
async fn settles_after_a_dropped_future(limiter: &Limiter) {
    let before = limiter.remaining("all").await.unwrap();
    let reserve = async |cost| limiter.reserve("all").cost(cost).await.unwrap();
    drop(reserve(2).await.cancel());
    until_left(limiter, before).await;
    drop(reserve(2).await.commit_cost(1));
    until_left(limiter, before - 1).await;
    drop(reserve(1).await.commit_cost(2));
    until_left(limiter, before - 3).await;
}

#[tokio::test]
async fn runtime_settles_dropped_futures_in_a_lazy_store() {
    settles_after_a_dropped_future(&limiter(Lazy::default())).await;
}

#[tokio::test]
async fn runtime_refunds_dropped_reservations_in_a_lazy_store() {
    let limiter = limiter(Lazy::default());
    refunds_unless_committed(&limiter).await;
    refunds_a_dropped_future(&limiter).await;
}

/// Without a runtime no task can poll the refund. The charge stays; nothing worse happens.
#[test]
fn without_a_runtime_a_charge_in_a_lazy_store_stays() {
    let limiter = limiter(Lazy::default());
    let room = limiter.reserve("all").cost(2).wait().unwrap();
    drop(room);
    assert_eq!(limiter.remaining("all").wait().unwrap(), 3);
    let room = limiter.reserve("all").cost(2).wait().unwrap();
    room.cancel().wait().unwrap();
    assert_eq!(limiter.remaining("all").wait().unwrap(), 3);
}

mod in_redis {
    use super::{
        limiter, refunds_a_dropped_future, refunds_unless_committed,
        settles_after_a_dropped_future, until_left,
    };
    use crate::redis::Server;

    #[tokio::test]
    async fn settlement_runs_after_its_future_is_dropped() {
        let server = Server::start();
        settles_after_a_dropped_future(&limiter(server.store().build().unwrap())).await;
        let stack = server.store().prefix("stack").connect().unwrap();
        settles_after_a_dropped_future(&limiter(stack)).await;
    }

    #[tokio::test]
    async fn dropped_reservation_is_refunded() {
        let server = Server::start();
        let limiter = limiter(server.store().build().unwrap());
        refunds_unless_committed(&limiter).await;
        refunds_a_dropped_future(&limiter).await;
    }

    /// The store starts each call at once, on its own runtime.
    #[test]
    fn dropped_reservation_is_refunded_on_a_thread_without_a_runtime() {
        let server = Server::start();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let limiter = {
            let _inside = runtime.enter();
            limiter(server.store().build().unwrap())
        };
        let room = limiter.reserve("all").cost(2).wait().unwrap();
        assert_eq!(limiter.remaining("all").wait().unwrap(), 3);
        drop(room);
        runtime.block_on(until_left(&limiter, 5));
    }

    /// Reservations of two limiters on one server count together.
    #[tokio::test]
    async fn a_fleet_never_holds_more_than_the_limit() {
        let server = Server::start();
        let store = || server.store().prefix("fleet").build().unwrap();
        let (one, other) = (limiter(store()), limiter(store()));
        let mut held = Vec::new();
        for number in 0..8 {
            let limiter = if number % 2 == 0 { &one } else { &other };
            held.push(limiter.reserve("all").await.unwrap());
        }
        let allowed = held.iter().filter(|room| room.is_allowed()).count();
        assert_eq!(allowed, 5);
        drop(held.pop());
        drop(held.remove(0));
        until_left(&other, 1).await;
    }
}
