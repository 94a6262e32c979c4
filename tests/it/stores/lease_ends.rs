//! How leases end: nothing that was taken is lost, and nobody waits for it in vain.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use tollgate::store::Leased;
use tollgate::{Answer, Batch, Check, Counter, Store, Subject, Timestamp, Verdict};

use super::{Counted, START, at, counter, take, user};

/// More than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Decides when it is asked, and answers when it is let. What is given back, it takes when somebody
/// looks for the answer, and not before.
#[derive(Clone)]
struct Held {
    counted: Counted,
    answers: watch::Sender<bool>,
    given_back: Arc<AtomicU64>,
}

impl Held {
    fn new() -> Self {
        Self {
            counted: Counted::default(),
            answers: watch::Sender::new(true),
            given_back: Arc::default(),
        }
    }

    fn answers(&self, now: bool) {
        self.answers.send_replace(now);
    }

    /// What was charged and not given back.
    fn used(&self, subject: &Subject<'_>, counter: &Counter) -> u64 {
        let checks = [Check::new(subject, counter)];
        let batch = Batch::new(&checks).unwrap();
        let verdict = self.counted.peek(&batch, at(START)).wait().unwrap();
        verdict.usages()[0].used() - self.given_back.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}

impl Store for Held {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> Answer<Verdict> {
        let verdict = self.counted.decide(batch, now).wait();
        let mut answers = self.answers.subscribe();
        Answer::pending(async move {
            let _ = answers.wait_for(|answers| *answers).await;
            verdict
        })
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> Answer<Verdict> {
        self.counted.peek(batch, now)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> Answer<Verdict> {
        self.counted.record(batch, now)
    }

    fn give_back(&self, batch: &Batch<'_>, _: Timestamp, _: Timestamp) -> Answer<()> {
        let cost = batch.checks().iter().map(Check::cost).sum();
        let given_back = Arc::clone(&self.given_back);
        Answer::pending(async move {
            given_back.fetch_add(cost, Ordering::SeqCst);
            Ok(())
        })
    }

    fn reset(&self, batch: &Batch<'_>) -> Answer<()> {
        self.counted.reset(batch)
    }

    fn reset_subject(&self, subject: &Subject<'_>) -> Answer<()> {
        self.counted.reset_subject(subject)
    }

    fn clear(&self) -> Answer<()> {
        self.counted.clear()
    }

    fn len(&self) -> Answer<usize> {
        self.counted.len()
    }
}

fn alice() -> Subject<'static> {
    user("alice")
}

fn hour() -> Counter {
    counter("rule", "1000/hour, fixed-window")
}

/// A store that has admitted three and takes four at once for the next one, which it is not told
/// yet.
async fn about_to_lease() -> (Held, Leased) {
    let inner = Held::new();
    let store = Leased::builder(inner.clone()).block(4).build().unwrap();
    for _ in 0..3 {
        let (usage, _) = store
            .decide_one(&Check::new(&alice(), &hour()), at(START))
            .await
            .unwrap();
        assert!(usage.is_allowed());
    }
    assert_eq!(inner.used(&alice(), &hour()), 3);
    inner.answers(false);
    (inner, store)
}

/// It has been charged, and will never be spent.
#[tokio::test]
async fn a_block_that_comes_after_the_end_is_given_back() {
    let (inner, store) = about_to_lease().await;
    let fourth = tokio::spawn(store.decide_one(&Check::new(&alice(), &hour()), at(START)));
    assert_eq!(inner.used(&alice(), &hour()), 7, "four are on their way");
    let closed = store.close();
    inner.answers(true);
    timeout(PATIENCE, closed).await.unwrap().unwrap();
    let fourth = timeout(PATIENCE, fourth).await.unwrap().unwrap();
    assert!(fourth.unwrap().0.is_allowed());
    assert_eq!(inner.used(&alice(), &hour()), 4);
}

/// The same if nobody closes it, and nobody waits.
#[tokio::test]
async fn a_block_that_comes_to_nobody_is_given_back() {
    let (inner, store) = about_to_lease().await;
    drop(store.decide_one(&Check::new(&alice(), &hour()), at(START)));
    assert_eq!(inner.used(&alice(), &hour()), 7, "four are on their way");
    drop(store);
    inner.answers(true);
    let given_back = async {
        while inner.used(&alice(), &hour()) > 3 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, given_back).await.unwrap();
}

/// Two wait for a block. The one who has asked last for it is busy elsewhere when it comes; the
/// other must hear of it all the same.
#[tokio::test]
async fn nobody_waits_for_somebody_who_does_not_look() {
    let (inner, store) = about_to_lease().await;
    let (alice, hour) = (alice(), hour());
    let attentive = tokio::spawn(store.decide_one(&Check::new(&alice, &hour), at(START)));
    tokio::task::yield_now().await;
    let mut busy = store.decide_one(&Check::new(&alice, &hour), at(START));
    let mut nobody = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut busy).poll(&mut nobody).is_pending());
    inner.answers(true);
    let attentive = timeout(PATIENCE, attentive).await.unwrap().unwrap();
    assert!(attentive.unwrap().0.is_allowed());
    assert!(busy.await.unwrap().0.is_allowed());
}

/// The store's clock may have gone on, into the next window.
#[test]
fn a_lease_of_a_later_instant_is_not_spent() {
    const LATER: u64 = START + 10_000_000;
    let inner = Counted::default();
    let store = Leased::builder(inner.clone()).block(8).build().unwrap();
    let (alice, hour) = (alice(), hour());
    let check = Check::new(&alice, &hour);
    for _ in 0..4 {
        take(&store, check, LATER);
    }
    let before = inner.decisions();
    take(&store, check, LATER - 10);
    assert_eq!(inner.decisions(), before, "who came a moment before spends");
    assert_eq!(take(&store, check, START).used(), 6);
    assert_eq!(inner.decisions(), before + 1, "the clock has gone back");
}
