//! The end of leases: no charge is lost, and no request waits for ever.

use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::time::timeout;
use tollgate::store::Leased;
use tollgate::{Check, Counter, Subject};

use super::held::Held;
use super::{START, at, counter, take, user};
use crate::support::scripted_store::ScriptedStore;
use crate::support::store_ext::StoreExt as _;

/// Upper bound for any operation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn alice() -> Subject<'static> {
    user("alice")
}

fn hour() -> Counter {
    counter("rule", "1000/hour, fixed-window")
}

/// Returns a store that has admitted three requests, with a pending request for eight credits.
async fn with_pending_block() -> (Held, Leased) {
    let inner = Held::new();
    let store = Leased::builder(inner.clone())
        .block_size(4)
        .build()
        .unwrap();
    for number in 1..=3 {
        // The last credit of the first block requests the next ones.
        inner.set_replying(number < 3);
        let (usage, _) = store
            .decide_one(&Check::new(&alice(), &hour()), at(START))
            .await
            .unwrap();
        assert!(usage.is_allowed());
    }
    assert_eq!(inner.used(&alice(), &hour()), 11, "eight are pending");
    (inner, store)
}

#[tokio::test]
async fn a_block_that_arrives_after_close_is_refunded() {
    let (inner, store) = with_pending_block().await;
    let fourth = tokio::spawn(store.decide_one(&Check::new(&alice(), &hour()), at(START)));
    let closed = store.close();
    inner.set_replying(true);
    timeout(PATIENCE, closed).await.unwrap().unwrap();
    let fourth = timeout(PATIENCE, fourth).await.unwrap().unwrap();
    assert!(fourth.unwrap().0.is_allowed());
    assert_eq!(inner.used(&alice(), &hour()), 4);
}

#[tokio::test]
async fn a_block_that_arrives_after_the_drop_is_refunded() {
    let (inner, store) = with_pending_block().await;
    drop(store.decide_one(&Check::new(&alice(), &hour()), at(START)));
    drop(store);
    inner.set_replying(true);
    let refunded = async {
        while inner.used(&alice(), &hour()) > 3 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, refunded).await.unwrap();
}

/// Two requests wait for a block. The one that was polled last is not polled again.
#[tokio::test]
async fn a_waiter_that_is_not_polled_does_not_delay_others() {
    let (inner, store) = with_pending_block().await;
    let (alice, hour) = (alice(), hour());
    let polled = tokio::spawn(store.decide_one(&Check::new(&alice, &hour), at(START)));
    tokio::task::yield_now().await;
    let mut not_polled = store.decide_one(&Check::new(&alice, &hour), at(START));
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut not_polled).poll(&mut context).is_pending());
    inner.set_replying(true);
    let polled = timeout(PATIENCE, polled).await.unwrap().unwrap();
    assert!(polled.unwrap().0.is_allowed());
    assert!(not_polled.await.unwrap().0.is_allowed());
}

/// The age of such a lease is unknown, and the store may already be in the next window.
#[test]
fn a_lease_of_a_later_instant_is_not_spent() {
    const LATER: u64 = START + 10_000_000;
    let inner = ScriptedStore::default();
    let store = Leased::builder(inner.clone())
        .block_size(8)
        .build()
        .unwrap();
    let (alice, hour) = (alice(), hour());
    let check = Check::new(&alice, &hour);
    for _ in 0..4 {
        take(&store, check, LATER);
    }
    let before = inner.decisions();
    take(&store, check, LATER - 10);
    assert_eq!(
        inner.decisions(),
        before,
        "a request slightly out of order does not use the lease"
    );
    assert_eq!(take(&store, check, START).used(), 6);
    assert_eq!(
        inner.decisions(),
        before + 1,
        "the lease was used after a step back of the clock"
    );
}

/// The charge of a block that was requested before a reset may be lost. The block is neither spent nor
/// refunded, because a refund would lower a counter of the new window.
#[tokio::test]
async fn a_block_that_was_requested_before_a_reset_is_never_refunded() {
    let (inner, store) = with_pending_block().await;
    store.clear().await.unwrap();
    let fourth = tokio::spawn(store.decide_one(&Check::new(&alice(), &hour()), at(START)));
    let closed = store.close();
    inner.set_replying(true);
    timeout(PATIENCE, closed).await.unwrap().unwrap();
    let fourth = timeout(PATIENCE, fourth).await.unwrap().unwrap();
    assert_eq!(fourth.unwrap().0.used(), 1);
    assert_eq!((inner.used(&alice(), &hour()), inner.refunded()), (1, 0));
}

/// A credit is assigned to a task before the reset, and the task is dropped after it.
#[tokio::test]
async fn a_credit_that_was_assigned_before_a_reset_is_never_refunded() {
    let (inner, store) = with_pending_block().await;
    let mut context = Context::from_waker(Waker::noop());
    let mut waiters = [(); 4].map(|()| store.decide_one(&Check::new(&alice(), &hour()), at(START)));
    for waiter in &mut waiters {
        // The first waiter takes the last credit of the block.
        let _ = Pin::new(waiter).poll(&mut context);
    }
    inner.set_replying(true);
    let [.., dropped, polled] = waiters;
    assert!(polled.await.unwrap().0.is_allowed());
    store.clear().await.unwrap();
    drop(dropped);
    store.close().await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!((inner.used(&alice(), &hour()), inner.refunded()), (0, 0));
}
