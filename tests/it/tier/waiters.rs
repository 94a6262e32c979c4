//! Several tasks that wait for one look-up.

use std::future::poll_fn;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use tollgate::tier::TierResolver;
use tollgate::{Clock, ManualClock};

use super::{DEADLINE, HOUR, Task, just_before, stage, team, user};
use crate::support::waker::WakeCounter;

#[test]
fn callers_at_once_share_a_lookup() {
    let stage = stage();
    let mut tasks: Vec<Task> = (0..10).map(|_| stage.request("alice")).collect();
    assert!(tasks.iter_mut().all(Task::is_pending));
    assert_eq!(stage.database.calls(), 1);
    stage.database.reply("alice", team());
    for task in &mut tasks {
        assert!(task.was_woken());
        assert_eq!(task.tier().as_deref(), Some("team"));
    }
    assert_eq!(stage.database.calls(), 1);
    assert_eq!(stage.known("alice").as_deref(), Some("team"));
}

#[test]
fn unpolled_future_starts_no_lookup() {
    let stage = stage();
    drop(stage.request("alice"));
    assert_eq!(stage.database.calls(), 0);
    assert_eq!(stage.look_up("alice", team()).as_deref(), Some("team"));
}

#[test]
fn dropped_waiter_does_not_cancel_the_lookup() {
    let stage = stage();
    let (mut first, mut second) = (stage.request("alice"), stage.request("alice"));
    assert!(second.is_pending() && first.is_pending());
    drop(first);
    // The first had polled the look-up last.
    assert!(second.was_woken());
    assert!(second.is_pending());
    stage.database.reply("alice", team());
    assert!(second.was_woken());
    assert_eq!(second.tier().as_deref(), Some("team"));
    assert_eq!(stage.database.calls(), 1);
}

#[test]
fn dropping_thousands_of_waiters_wakes_no_others() {
    const WAITING: usize = 4_000;
    for backwards in [false, true] {
        let stage = stage();
        let woken = Arc::new(WakeCounter::default());
        let mut tasks: Vec<Task> = (0..WAITING)
            .map(|_| Task {
                answer: stage.tiers.tier(&user("alice"), stage.clock.now()),
                woken: Arc::clone(&woken),
            })
            .collect();
        assert!(tasks.iter_mut().all(Task::is_pending));
        if backwards {
            while tasks.pop().is_some() {}
        } else {
            drop(tasks);
        }
        let wakes = woken.count();
        assert!(wakes <= WAITING, "{wakes} wakes");
    }
}

/// All orders of the numbers below `count`.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let Some(last) = count.checked_sub(1) else {
        return vec![Vec::new()];
    };
    let mut all = Vec::new();
    for order in orders(last) {
        for place in 0..=last {
            let mut longer = order.clone();
            longer.insert(place, last);
            all.push(longer);
        }
    }
    all
}

/// The look-up makes progress while one task polls it, and all others are polled meanwhile. Then
/// waiters are dropped in every order; the others are polled only when woken.
#[test]
fn last_waiter_gets_the_result_in_every_order_of_drops() {
    const WAITING: usize = 5;
    for order in orders(WAITING) {
        for driver in 0..WAITING {
            let clock = ManualClock::new();
            let others: Arc<Mutex<Vec<Option<Task>>>> = Arc::default();
            let seen = Arc::clone(&others);
            let tiers = TierResolver::builder(move |_| {
                let (others, mut polls) = (Arc::clone(&seen), 0);
                poll_fn(move |cx| {
                    polls += 1;
                    if polls > 1 {
                        return Poll::Ready(team());
                    }
                    cx.waker().wake_by_ref();
                    for other in others.lock().unwrap().iter_mut().flatten() {
                        assert!(other.is_pending());
                    }
                    Poll::Pending
                })
            })
            .clock(clock.clone())
            .build()
            .unwrap();
            let resolve = || Task {
                answer: tiers.tier(&user("alice"), clock.now()),
                woken: Arc::default(),
            };
            let mut tasks: Vec<Option<Task>> = (0..WAITING).map(|_| Some(resolve())).collect();
            let mut driving = tasks[driver].take().unwrap();
            *others.lock().unwrap() = tasks;
            assert!(driving.is_pending());
            let mut tasks = mem::take(&mut *others.lock().unwrap());
            tasks[driver] = Some(driving);

            let (last, dropped) = order.split_last().unwrap();
            for index in dropped {
                tasks[*index] = None;
            }
            let mut last = tasks[*last].take().unwrap();
            assert!(last.was_woken(), "{order:?}, driven by {driver}");
            assert_eq!(last.tier().as_deref(), Some("team"));
        }
    }
}

#[test]
fn abandoned_lookup_continues_with_the_next_waiter() {
    let stage = stage();
    let mut first = stage.request("alice");
    assert!(first.is_pending());
    drop(first);
    assert!(stage.database.reply("alice", team()));
    stage.clock.advance(just_before(DEADLINE));
    assert_eq!(stage.request("alice").tier().as_deref(), Some("team"));
    assert_eq!(stage.database.calls(), 1);
}

#[test]
fn abandoned_lookup_restarts_after_its_deadline() {
    let stage = stage();
    let mut first = stage.request("alice");
    assert!(first.is_pending());
    drop(first);
    stage.clock.advance(DEADLINE);
    assert_eq!(stage.look_up("alice", team()).as_deref(), Some("team"));
    assert_eq!(stage.database.calls(), 2);
}

#[test]
fn late_waiter_gets_the_tier_of_the_lookup() {
    let stage = stage();
    let (mut first, mut late) = (stage.request("alice"), stage.request("alice"));
    assert!(first.is_pending());
    stage.database.reply("alice", team());
    assert_eq!(first.tier().as_deref(), Some("team"));
    assert_eq!(late.tier().as_deref(), Some("team"));
    // It was noted once: an hour from the first.
    assert_eq!(stage.database.calls(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_on_many_threads_share_one_lookup_per_round() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let clock = ManualClock::new();
    let tiers = TierResolver::builder(move |_| {
        let counted = Arc::clone(&counted);
        async move {
            counted.fetch_add(1, Ordering::SeqCst);
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            team()
        }
    })
    .clock(clock.clone())
    .build()
    .unwrap();
    for round in 1..=100 {
        let now = clock.now();
        let tasks: Vec<_> = (0..16)
            .map(|index| {
                let tiers = tiers.clone();
                tokio::spawn(async move {
                    let answer = tiers.tier(&user("alice"), now);
                    // Some leave before they have an answer.
                    if index % 4 == 0 {
                        let _ = futures_util::future::poll_immediate(answer).await;
                        return;
                    }
                    assert_eq!(answer.await.as_deref(), Some("team"));
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(calls.load(Ordering::SeqCst), round);
        clock.advance(HOUR);
    }
}
