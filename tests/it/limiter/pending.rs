//! Reservations in stores whose answers have to be waited for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use tollgate::{
    Batch, Limiter, MemoryStore, Store, StoreAdmin, StoreFuture, Subject, Timestamp, Usages,
};

/// More than a busy machine needs, and less than a person waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// A memory that does nothing before somebody waits for its answer, and then takes a while: as a
/// store over a network may that has no task of its own.
#[derive(Clone, Debug, Default)]
struct Lazy(Arc<MemoryStore>);

/// Does it when it is polled for the second time.
fn later<T: Unpin + Send + 'static>(
    work: impl FnOnce() -> StoreFuture<T> + Send + 'static,
) -> StoreFuture<T> {
    StoreFuture::pending(async move {
        tokio::task::yield_now().await;
        work().await
    })
}

/// As much of a batch as these tests need: one check of one subject.
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

/// Until as many are left as should be.
async fn until_left(limiter: &Limiter, wanted: u64) {
    let poll = async {
        while limiter.remaining("all").await.unwrap() != wanted {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let came = tokio::time::timeout(PATIENCE, poll).await;
    assert!(came.is_ok(), "{:?} left", limiter.remaining("all").await);
}

/// What must hold of every store.
async fn gives_back(limiter: &Limiter) {
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

/// Whoever asked for it has hung up before it came: nobody can commit it any more.
async fn gives_back_what_nobody_waits_for(limiter: &Limiter) {
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
    // It was really charged in between, if it was at all: in the end there is room for all.
    for _ in 0..before {
        let room = limiter.reserve("all").await.unwrap();
        assert!(room.is_allowed());
        room.commit();
    }
    assert!(limiter.reserve("all").await.unwrap().is_denied());
}

/// What was said of it was lost with the answer: a store that is lazy heard nothing, and what it had
/// charged stayed charged.
async fn hears_what_nobody_waits_for(limiter: &Limiter) {
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
async fn a_lazy_store_hears_of_the_end_by_the_runtime() {
    hears_what_nobody_waits_for(&limiter(Lazy::default())).await;
}

#[tokio::test]
async fn a_lazy_store_is_given_back_to_by_the_runtime() {
    let limiter = limiter(Lazy::default());
    gives_back(&limiter).await;
    gives_back_what_nobody_waits_for(&limiter).await;
}

/// There is nobody who could go on with it, and it must not be worse than a charge that stays.
#[test]
fn without_a_runtime_what_a_lazy_store_has_charged_stays_charged() {
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
        gives_back, gives_back_what_nobody_waits_for, hears_what_nobody_waits_for, limiter,
        until_left,
    };
    use crate::redis::Server;

    #[tokio::test]
    async fn what_is_said_in_the_end_is_heard() {
        let server = Server::start();
        hears_what_nobody_waits_for(&limiter(server.store().build().unwrap())).await;
        let stack = server.store().prefix("stack").connect().unwrap();
        hears_what_nobody_waits_for(&limiter(stack)).await;
    }

    #[tokio::test]
    async fn what_is_dropped_is_given_back() {
        let server = Server::start();
        let limiter = limiter(server.store().build().unwrap());
        gives_back(&limiter).await;
        gives_back_what_nobody_waits_for(&limiter).await;
    }

    /// The store is at work from the moment it is asked, on its own runtime.
    #[test]
    fn also_on_a_thread_that_has_no_runtime() {
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

    /// Two who share it hold each other's room.
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
