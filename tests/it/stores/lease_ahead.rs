//! The next block is on its way before the last is spent; and if it is not, who waits for it is
//! served in turn.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tollgate::store::Leased;
use tollgate::{Check, Counter, Store, StoreFuture, Timestamp, Usage};

use super::faulty::{Faulty, Mood};
use super::held::Held;
use super::{Counted, START, at, counter, take, user};
use crate::support::store_ext::StoreExt as _;

const BLOCK: u64 = 8;

type One = StoreFuture<(Usage, Timestamp)>;

fn hour() -> Counter {
    counter("rule", "1000/hour, fixed-window")
}

fn leased(inner: &(impl Store + Clone)) -> Leased {
    let leased = Leased::builder(inner.clone()).block_size(BLOCK);
    leased.build().unwrap()
}

/// Asks for one.
fn ask(store: &Leased) -> One {
    store.decide_one(&Check::new(&user("alice"), &hour()), at(START))
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Somebody who waits, and how often he was woken.
struct Guest {
    answer: One,
    woken: Arc<Woken>,
}

impl Guest {
    fn of(store: &Leased) -> Self {
        Self {
            answer: ask(store),
            woken: Arc::default(),
        }
    }

    fn poll(&mut self) -> Poll<u64> {
        let waker = Waker::from(Arc::clone(&self.woken));
        let answer = Pin::new(&mut self.answer).poll(&mut Context::from_waker(&waker));
        answer.map(|answer| answer.unwrap().0.used())
    }

    fn wakes(&self) -> usize {
        self.woken.0.load(Ordering::SeqCst)
    }
}

/// A store that is hot and has two blocks, of which nothing is spent.
fn hot(inner: &Held) -> (Leased, u64) {
    let store = leased(inner);
    let mut spent = 0;
    while inner.used(&user("alice"), &hour()) < spent + 2 * BLOCK {
        assert!(ask(&store).wait().unwrap().0.is_allowed());
        spent += 1;
        assert!(spent < 100, "it never is hot");
    }
    (store, spent)
}

/// A block is spent while the next one is on its way.
#[test]
fn nobody_waits_for_a_block_that_was_asked_for_in_time() {
    let inner = Held::new();
    let (store, mut spent) = hot(&inner);
    for _ in 0..20 {
        // The store is away while a block is spent, but for the last of it.
        for number in 1..=BLOCK {
            inner.answers(number == BLOCK);
            let mut guest = Guest::of(&store);
            // Whoever asks for the next block lets others have a turn, and no more than one.
            let first = guest.poll();
            let told = if first.is_pending() {
                guest.poll()
            } else {
                first
            };
            spent += 1;
            assert_eq!(told, Poll::Ready(spent), "number {number} of a block");
        }
    }
}

/// What is taken and not spent is what others lack: never more than two blocks.
#[test]
fn no_more_than_two_blocks_are_taken() {
    let inner = Held::new();
    let store = leased(&inner);
    let mut most = 0;
    for spent in 1..=500 {
        assert!(ask(&store).wait().unwrap().0.is_allowed());
        most = most.max(inner.used(&user("alice"), &hour()) - spent);
    }
    assert!((BLOCK..=2 * BLOCK).contains(&most), "{most}");
}

/// Who needs most of a lease's time to spend a block takes one at a time.
#[test]
fn what_is_not_hot_is_not_taken_before_it_is_needed() {
    let inner = Counted::default();
    let store = leased(&inner);
    let (alice, hour) = (user("alice"), hour());
    let mut before = 0;
    for number in 1..=200 {
        let now = START + number * 25_000;
        let usage = take(&store, Check::new(&alice, &hour), now);
        assert_eq!(usage.used(), number);
        let calls = inner.decisions();
        if number > 20 && calls > before {
            // It is asked when nothing is left, and so it is told what it has used itself.
            let checks = [Check::new(&alice, &hour)];
            let batch = tollgate::Batch::new(&checks).unwrap();
            let used = inner.peek(&batch, at(now)).wait().unwrap().usages()[0].used();
            assert!(used < number + BLOCK, "{used} at {number}");
        }
        before = calls;
    }
}

/// Twenty-four wait for a block of eight: eight are woken when it comes, and one more, in case that
/// none of the others looks.
#[test]
fn who_waits_is_served_in_turn_and_nobody_is_woken_in_vain() {
    let inner = Held::new();
    let (store, spent) = hot(&inner);
    inner.answers(false);
    for _ in 0..2 * BLOCK {
        let mut guest = Guest::of(&store);
        while guest.poll().is_pending() {}
    }
    let spent = spent + 2 * BLOCK;
    let mut guests: Vec<Guest> = (0..3 * BLOCK).map(|_| Guest::of(&store)).collect();
    for guest in &mut guests {
        assert!(guest.poll().is_pending(), "a block is on its way");
    }
    inner.answers(true);
    let woken: Vec<usize> = guests.iter().map(Guest::wakes).collect();
    assert_eq!(woken[..8], [1; 8], "those who are served");
    assert_eq!(woken[8..23], [0; 15], "those who are not");
    assert_eq!(woken[23], 1, "the last");
    // Whoever looks looks for all, and asks for those who still wait.
    assert_eq!(guests[23].poll(), Poll::Ready(spent + 24));
    for (guest, number) in guests.iter_mut().zip(1..24) {
        assert_eq!(guest.poll(), Poll::Ready(spent + number));
        assert!(guest.wakes() <= 1);
    }
}

/// A permit that lies ready for somebody who does not come for it goes back.
#[tokio::test]
async fn who_leaves_although_he_was_called_is_not_charged() {
    let inner = Held::new();
    let (store, spent) = hot(&inner);
    inner.answers(false);
    for _ in 0..2 * BLOCK {
        ask(&store).await.unwrap();
    }
    let spent = spent + 2 * BLOCK;
    let (mut gone, mut waits) = (Guest::of(&store), Guest::of(&store));
    assert!(gone.poll().is_pending() && waits.poll().is_pending());
    inner.answers(true);
    // Called are both, though but one looks.
    assert_eq!(waits.poll(), Poll::Ready(spent + 2));
    drop(gone);
    store.close().await.unwrap();
    while inner.used(&user("alice"), &hour()) > spent + 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(inner.used(&user("alice"), &hour()), spent + 1);
}

/// The store fails while there is enough: nobody hears of it before it matters.
#[test]
fn a_block_ahead_that_fails_fails_nobody() {
    let inner = Faulty::default();
    let store = leased(&inner);
    for _ in 0..100 {
        assert!(ask(&store).wait().unwrap().0.is_allowed());
    }
    inner.is(Mood::Down);
    let served = (0..100).take_while(|_| ask(&store).wait().is_ok()).count();
    assert!((1..=16).contains(&served), "{served} were there");
    inner.is(Mood::Well);
    assert!(ask(&store).wait().unwrap().0.is_allowed());
}

/// What is on its way when a counter is forgotten may have been charged before: it is not spent on
/// top of a whole new limit.
#[test]
fn a_reset_takes_what_is_on_its_way_with_it() {
    let inner = Held::new();
    let (store, _) = hot(&inner);
    inner.answers(false);
    // Two blocks are there, and as they are spent others are asked for.
    for _ in 0..2 * BLOCK {
        let mut guest = Guest::of(&store);
        while guest.poll().is_pending() {}
    }
    let mut waits = Guest::of(&store);
    assert!(waits.poll().is_pending());
    store.clear().wait().unwrap();
    inner.answers(true);
    assert_eq!(waits.poll(), Poll::Ready(1), "asked about by itself");
    let admitted = (0..2_000).filter(|_| ask(&store).wait().unwrap().0.is_allowed());
    assert_eq!(admitted.count(), 999);
}
