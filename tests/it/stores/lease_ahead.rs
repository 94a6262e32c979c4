//! Leases: the next block is requested in advance, and waiters are served in FIFO order.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tollgate::store::Leased;
use tollgate::{Check, Counter, Store, StoreFuture, Timestamp, Usage};

use super::held::Held;
use super::{START, at, counter, take, user};
use crate::support::scripted_store::{Script, ScriptedStore};
use crate::support::store_ext::StoreExt as _;
use crate::support::waker::WakeCounter;

const BLOCK: u64 = 8;

type One = StoreFuture<(Usage, Timestamp)>;

fn hour() -> Counter {
    counter("rule", "1000/hour, fixed-window")
}

fn leased(inner: &(impl Store + Clone)) -> Leased {
    let leased = Leased::builder(inner.clone()).block_size(BLOCK);
    leased.build().unwrap()
}

/// Decides one request.
fn decide(store: &Leased) -> One {
    store.decide_one(&Check::new(&user("alice"), &hour()), at(START))
}

/// A request and the number of its wake-ups.
struct Request {
    answer: One,
    woken: Arc<WakeCounter>,
}

impl Request {
    fn of(store: &Leased) -> Self {
        Self {
            answer: decide(store),
            woken: Arc::default(),
        }
    }

    fn poll(&mut self) -> Poll<u64> {
        let waker = Waker::from(Arc::clone(&self.woken));
        let answer = Pin::new(&mut self.answer).poll(&mut Context::from_waker(&waker));
        answer.map(|answer| answer.unwrap().0.used())
    }

    fn wakes(&self) -> usize {
        self.woken.count()
    }
}

/// Returns a store with two unspent blocks, and the number of requests it has served.
fn with_two_blocks(inner: &Held) -> (Leased, u64) {
    let store = leased(inner);
    let mut spent = 0;
    while inner.used(&user("alice"), &hour()) < spent + 2 * BLOCK {
        assert!(decide(&store).wait().unwrap().0.is_allowed());
        spent += 1;
        assert!(spent < 100, "no second block was requested");
    }
    (store, spent)
}

/// A block is spent while the next one is pending.
#[test]
fn no_request_waits_for_a_block_that_was_requested_in_time() {
    let inner = Held::new();
    let (store, mut spent) = with_two_blocks(&inner);
    for _ in 0..20 {
        // The store replies at the last credit of a block.
        for number in 1..=BLOCK {
            inner.set_replying(number == BLOCK);
            let mut request = Request::of(&store);
            // The request that requests the next block yields once.
            let first = request.poll();
            let reply = if first.is_pending() {
                request.poll()
            } else {
                first
            };
            spent += 1;
            assert_eq!(reply, Poll::Ready(spent), "number {number} of a block");
        }
    }
}

/// Unspent credits are not available to other processes.
#[test]
fn no_more_than_two_blocks_are_held() {
    let inner = Held::new();
    let store = leased(&inner);
    let mut most = 0;
    for spent in 1..=500 {
        assert!(decide(&store).wait().unwrap().0.is_allowed());
        most = most.max(inner.used(&user("alice"), &hour()) - spent);
    }
    assert!((BLOCK..=2 * BLOCK).contains(&most), "{most}");
}

/// A block that is spent slowly is not renewed in advance.
#[test]
fn a_rare_request_holds_one_block() {
    let inner = ScriptedStore::default();
    let store = leased(&inner);
    let (alice, hour) = (user("alice"), hour());
    let mut before = 0;
    for number in 1..=200 {
        let now = START + number * 25_000;
        let usage = take(&store, Check::new(&alice, &hour), now);
        assert_eq!(usage.used(), number);
        let calls = inner.decisions();
        if number > 20 && calls > before {
            // The next block is requested when no credit is left.
            let checks = [Check::new(&alice, &hour)];
            let batch = tollgate::Batch::new(&checks).unwrap();
            let used = inner.peek(&batch, at(now)).wait().unwrap().usages()[0].used();
            assert!(used < number + BLOCK, "{used} at {number}");
        }
        before = calls;
    }
}

/// 24 requests wait for a block of 8. When it arrives, 8 are woken. The last one is woken as well, in
/// case none of the others is polled.
#[test]
fn waiters_are_served_in_order_and_only_the_served_ones_are_woken() {
    let inner = Held::new();
    let (store, spent) = with_two_blocks(&inner);
    inner.set_replying(false);
    for _ in 0..2 * BLOCK {
        let mut request = Request::of(&store);
        while request.poll().is_pending() {}
    }
    let spent = spent + 2 * BLOCK;
    let mut requests: Vec<Request> = (0..3 * BLOCK).map(|_| Request::of(&store)).collect();
    for request in &mut requests {
        assert!(request.poll().is_pending(), "a block is pending");
    }
    inner.set_replying(true);
    let woken: Vec<usize> = requests.iter().map(Request::wakes).collect();
    assert_eq!(woken[..8], [1; 8], "served");
    assert_eq!(woken[8..23], [0; 15], "a waiter without a credit was woken");
    assert_eq!(woken[23], 1, "the last waiter is not woken");
    // One poll assigns the credits of all, and requests a block for the others.
    assert_eq!(requests[23].poll(), Poll::Ready(spent + 24));
    for (request, number) in requests.iter_mut().zip(1..24) {
        assert_eq!(request.poll(), Poll::Ready(spent + number));
        assert!(request.wakes() <= 1);
    }
}

/// The credit of a dropped waiter is refunded.
#[tokio::test]
async fn a_waiter_that_is_dropped_after_its_grant_is_not_charged() {
    let inner = Held::new();
    let (store, spent) = with_two_blocks(&inner);
    inner.set_replying(false);
    for _ in 0..2 * BLOCK {
        decide(&store).await.unwrap();
    }
    let spent = spent + 2 * BLOCK;
    let (mut dropped, mut waits) = (Request::of(&store), Request::of(&store));
    assert!(dropped.poll().is_pending() && waits.poll().is_pending());
    inner.set_replying(true);
    // One poll assigns credits to both.
    assert_eq!(waits.poll(), Poll::Ready(spent + 2));
    drop(dropped);
    store.close().await.unwrap();
    while inner.used(&user("alice"), &hour()) > spent + 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(inner.used(&user("alice"), &hour()), spent + 1);
}

/// A failed request for the next block has no effect while credits are left.
#[test]
fn a_failed_prefetch_fails_no_request() {
    let inner = ScriptedStore::default();
    let store = leased(&inner);
    for _ in 0..100 {
        assert!(decide(&store).wait().unwrap().0.is_allowed());
    }
    inner.follow(Script::Unavailable);
    let served = (0..100)
        .take_while(|_| decide(&store).wait().is_ok())
        .count();
    assert!((1..=16).contains(&served), "{served} credits");
    inner.follow(Script::Reply);
    assert!(decide(&store).wait().unwrap().0.is_allowed());
}

/// A block that was requested before a reset is not spent on top of the new limit.
#[test]
fn a_reset_invalidates_a_pending_block() {
    let inner = Held::new();
    let (store, _) = with_two_blocks(&inner);
    inner.set_replying(false);
    // Spends two blocks, so that the next one is requested.
    for _ in 0..2 * BLOCK {
        let mut request = Request::of(&store);
        while request.poll().is_pending() {}
    }
    let mut waits = Request::of(&store);
    assert!(waits.poll().is_pending());
    store.clear().wait().unwrap();
    inner.set_replying(true);
    assert_eq!(waits.poll(), Poll::Ready(1), "charged after the reset");
    let admitted = (0..2_000).filter(|_| decide(&store).wait().unwrap().0.is_allowed());
    assert_eq!(admitted.count(), 999);
}
