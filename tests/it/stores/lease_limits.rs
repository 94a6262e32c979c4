//! A slow store: no process holds more than two blocks, and the fleet admits the full limit.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tollgate::store::Leased;
use tollgate::{Check, Counter, Store, StoreFuture, Timestamp, Usage};

use super::held::Held;
use super::{START, at, counter, take, user};
use crate::support::scripted_store::{Script, ScriptedStore};
use crate::support::store_ext::StoreExt as _;

const BLOCK: u64 = 8;

fn leased(inner: impl Store, block: u64) -> Leased {
    Leased::builder(inner).block_size(block).build().unwrap()
}

/// A process that sends requests without a pause. Its store replies only when no credit is left.
struct Process {
    inner: Held,
    store: Leased,
    counter: Counter,
    spent: u64,
    /// Largest number of credits that were charged and unspent at one time.
    max_held: u64,
}

impl Process {
    fn new(limit: u64) -> Self {
        let inner = Held::new();
        Self {
            store: leased(inner.clone(), BLOCK),
            inner,
            counter: counter("rule", &format!("{limit}/hour, fixed-window")),
            spent: 0,
            max_held: 0,
        }
    }

    fn decide(&self) -> StoreFuture<(Usage, Timestamp)> {
        let alice = user("alice");
        let check = Check::new(&alice, &self.counter);
        self.store.decide_one(&check, at(START))
    }

    /// Sends a request. Lets the store reply if the request waits for a block. Returns whether it was
    /// allowed.
    fn spend(&mut self) -> bool {
        self.inner.set_replying(false);
        let mut future = self.decide();
        let mut context = Context::from_waker(Waker::noop());
        let mut result = Pin::new(&mut future).poll(&mut context);
        // The request that requests the next block yields once.
        if result.is_pending() {
            result = Pin::new(&mut future).poll(&mut context);
        }
        if result.is_pending() {
            self.inner.set_replying(true);
            result = Pin::new(&mut future).poll(&mut context);
        }
        let Poll::Ready(result) = result else {
            panic!("the request waits after the reply of the store");
        };
        let is_allowed = result.unwrap().0.is_allowed();
        self.spent += u64::from(is_allowed);
        let charged = self.inner.used(&user("alice"), &self.counter);
        self.max_held = self.max_held.max(charged - self.spent);
        is_allowed
    }
}

#[test]
fn no_more_than_two_blocks_are_held_with_a_slow_store() {
    let mut process = Process::new(1_000_000);
    for _ in 0..5_000 {
        assert!(process.spend());
    }
    let held = process.max_held;
    assert!((BLOCK..=2 * BLOCK).contains(&held), "{held}");
}

#[test]
fn the_whole_limit_is_admitted_by_one_process() {
    for limit in [100, 200, 1_000, 5_000, 20_000] {
        let mut process = Process::new(limit);
        while process.spend() {}
        assert_eq!(process.spent, limit);
        assert!(process.max_held <= 2 * BLOCK, "{}", process.max_held);
    }
}

/// Three processes with eight tasks each never admit more than the limit. After they have refunded
/// their credits, exactly the limit is admitted.
#[tokio::test]
async fn a_fleet_with_a_slow_store_gets_the_limit() {
    const LIMIT: u64 = 30_000;
    for quota in ["30000/hour, fixed-window", "30000/hour"] {
        let inner = ScriptedStore::new(Script::ReplyAfter(1));
        let fleet = [(); 3].map(|()| Arc::new(leased(inner.clone(), 16)));
        let tasks: Vec<_> = (0..24)
            .map(|number: usize| {
                let store = Arc::clone(&fleet[number % 3]);
                tokio::spawn(async move {
                    let (alice, counter) = (user("alice"), counter("rule", quota));
                    let check = Check::new(&alice, &counter);
                    let mut admitted = 0_u64;
                    for _ in 0..1_500 {
                        let result = store.decide_one(&check, at(START)).await;
                        admitted += u64::from(result.unwrap().0.is_allowed());
                    }
                    admitted
                })
            })
            .collect();
        let mut admitted = 0;
        for task in tasks {
            admitted += task.await.unwrap();
        }
        assert!(admitted <= LIMIT, "{admitted}, {quota}");
        // Each denied request is a call. Allowed requests share a call per block.
        let calls = inner.decisions() - (24 * 1_500 - admitted);
        assert!(calls < LIMIT / 12, "{calls} calls, {quota}");
        for store in &fleet {
            store.close().await.unwrap();
        }
        let (alice, counter) = (user("alice"), counter("rule", quota));
        let check = Check::new(&alice, &counter);
        while take(&inner, check, START).is_allowed() {
            admitted += 1;
        }
        assert_eq!(admitted, LIMIT, "{quota}");
    }
}
