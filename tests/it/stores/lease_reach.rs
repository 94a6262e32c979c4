//! What two blocks do not last for: more of them are taken ahead, as long as there is plenty left.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tollgate::store::Leased;
use tollgate::{Check, Counter, Store, StoreFuture, Timestamp, Usage};

use super::held::Held;
use super::lease::Far;
use super::{Counted, START, at, counter, take, user};
use crate::support::store_ext::StoreExt as _;

const BLOCK: u64 = 8;
const MOST: u64 = 32 * BLOCK;

fn leased(inner: impl Store, block: u64) -> Leased {
    Leased::builder(inner).block_size(block).build().unwrap()
}

/// One process that asks as quickly as it can, of a store that answers when nothing is left.
struct Process {
    inner: Held,
    store: Leased,
    counter: Counter,
    limit: u64,
    spent: u64,
    /// What the store has charged so far.
    charged: u64,
    /// The most that was ever taken and not spent.
    most: u64,
}

impl Process {
    fn new(limit: u64) -> Self {
        let inner = Held::new();
        Self {
            store: leased(inner.clone(), BLOCK),
            inner,
            counter: counter("rule", &format!("{limit}/hour, fixed-window")),
            limit,
            spent: 0,
            charged: 0,
            most: 0,
        }
    }

    fn ask(&self) -> StoreFuture<(Usage, Timestamp)> {
        let alice = user("alice");
        let check = Check::new(&alice, &self.counter);
        self.store.decide_one(&check, at(START))
    }

    /// Asks once, and has the store answer only if there is nothing left to be spent. Whether it was
    /// admitted.
    fn spend(&mut self) -> bool {
        self.inner.answers(false);
        let mut answer = self.ask();
        let mut context = Context::from_waker(Waker::noop());
        // Whoever asks for the next block lets others have a turn.
        let mut told = Pin::new(&mut answer).poll(&mut context);
        if told.is_pending() {
            told = Pin::new(&mut answer).poll(&mut context);
        }
        if told.is_pending() {
            self.inner.answers(true);
            told = Pin::new(&mut answer).poll(&mut context);
        }
        let Poll::Ready(told) = told else {
            panic!("the store has answered");
        };
        let admitted = told.unwrap().0.is_allowed();
        self.spent += u64::from(admitted);
        self.look();
        admitted
    }

    /// Holds what is taken against what may be.
    fn look(&mut self) {
        let charged = self.inner.used(&user("alice"), &self.counter);
        let held = charged - self.spent;
        if charged > self.charged {
            let left = self.limit - self.charged;
            // Whoever is being served is not among those who hold something.
            let bound = (2 * BLOCK).max(left / 16).min(MOST);
            assert!(held <= bound, "{held} with {left} left");
        }
        self.charged = charged;
        self.most = self.most.max(held);
    }
}

#[test]
fn as_many_blocks_are_taken_as_last_for_a_round_trip() {
    let mut process = Process::new(1_000_000);
    for _ in 0..5_000 {
        assert!(process.spend());
    }
    assert!(process.most > MOST / 2, "{}", process.most);
    // Nobody waits for the store any more, and so little is taken again.
    process.inner.answers(true);
    for _ in 0..2_000 {
        assert!(process.ask().wait().unwrap().0.is_allowed());
        process.spent += 1;
    }
    for _ in 0..200 {
        assert!(process.ask().wait().unwrap().0.is_allowed());
        process.spent += 1;
        let held = process.inner.used(&user("alice"), &process.counter) - process.spent;
        assert!(held <= 2 * BLOCK, "{held}");
    }
}

/// Near its end a limit is shared as finely as if nobody ever took more than two blocks; and all of
/// it is admitted.
#[test]
fn no_more_than_a_sixteenth_of_what_is_left_is_taken_beyond_two_blocks() {
    for limit in [100, 200, 1_000, 5_000, 20_000] {
        let mut process = Process::new(limit);
        while process.spend() {}
        assert_eq!(process.spent, limit);
        let plenty = limit / 16 > 2 * BLOCK;
        assert_eq!(
            process.most > 2 * BLOCK,
            plenty,
            "{} of {limit}",
            process.most
        );
    }
}

/// Three processes that all take ahead as much as they may: never more than the limit; what they
/// have taken and not spent is given back, and then it is all of the limit.
#[tokio::test]
async fn a_fleet_that_looks_far_ahead_gets_the_limit() {
    const LIMIT: u64 = 30_000;
    for quota in ["30000/hour, fixed-window", "30000/hour"] {
        let inner = Counted::default();
        let fleet = [(); 3].map(|()| Arc::new(leased(Far(inner.clone()), 16)));
        let tasks: Vec<_> = (0..24)
            .map(|number: usize| {
                let store = Arc::clone(&fleet[number % 3]);
                tokio::spawn(async move {
                    let (alice, counter) = (user("alice"), counter("rule", quota));
                    let check = Check::new(&alice, &counter);
                    let mut admitted = 0_u64;
                    for _ in 0..1_500 {
                        let answer = store.decide_one(&check, at(START)).await;
                        admitted += u64::from(answer.unwrap().0.is_allowed());
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
        // Whoever is denied was asked about by himself. The others need half of the calls that two
        // blocks at a time would.
        let calls = inner.decisions() - (24 * 1_500 - admitted);
        assert!(calls < LIMIT / 64, "{calls} calls, {quota}");
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
