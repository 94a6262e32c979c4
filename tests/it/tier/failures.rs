//! Look-ups that fail, panic or exceed their deadline.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tollgate::tier::TierResolver;
use tollgate::{Clock, ManualClock};

use super::{DEADLINE, HOUR, PAUSE, Task, failure, just_before, stage, team, user};

#[test]
fn a_deadline_ends_the_wait() {
    let stage = stage();
    let mut tasks = [stage.request("alice"), stage.request("alice")];
    assert!(tasks.iter_mut().all(Task::is_pending));
    stage.clock.advance(just_before(DEADLINE));
    assert!(tasks.iter().all(|task| !task.was_woken()));
    stage.clock.advance(Duration::from_micros(1));
    for task in &mut tasks {
        assert!(task.was_woken());
        assert_eq!(task.tier(), None);
    }
    assert!(
        !stage.database.reply("alice", team()),
        "no look-up is waiting"
    );
    assert_eq!(stage.known("alice"), None);
    stage.clock.advance(PAUSE);
    assert_eq!(stage.look_up("alice", team()).as_deref(), Some("team"));
}

#[test]
fn the_last_known_tier_outlives_failures() {
    let stage = stage();
    stage.look_up("alice", team());
    stage.clock.advance(HOUR);
    assert_eq!(stage.look_up("alice", failure()).as_deref(), Some("team"));
    // Not tried again for a while.
    stage.clock.advance(just_before(PAUSE));
    assert_eq!(stage.known("alice").as_deref(), Some("team"));
    assert_eq!(stage.database.calls(), 2);
    stage.clock.advance(Duration::from_micros(1));

    let mut slow = stage.request("alice");
    assert!(slow.is_pending());
    stage.clock.advance(DEADLINE);
    assert_eq!(slow.tier().as_deref(), Some("team"));

    stage.clock.advance(PAUSE);
    assert_eq!(stage.look_up("alice", Ok(None)), None);
    stage.clock.advance(HOUR);
    assert_eq!(stage.look_up("alice", failure()), None);
}

/// All requests that wait for a look-up receive its failure, also those that do not poll it when it
/// panics.
#[test]
fn a_panic_reaches_all_waiters() {
    let (sender, receiver) = oneshot::channel::<()>();
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let clock = ManualClock::new();
    let tiers = TierResolver::builder(move |_| {
        let receiver = receiver.lock().unwrap().take().unwrap();
        async move {
            receiver.await.expect("a panic on purpose");
            team()
        }
    })
    .clock(clock.clone())
    .build()
    .unwrap();
    let mut waiters: Vec<Task> = (0..3)
        .map(|_| Task {
            answer: tiers.tier(&user("alice"), clock.now()),
            woken: Arc::default(),
        })
        .collect();
    for waiter in &mut waiters {
        assert!(waiter.is_pending());
    }
    drop(sender);
    for waiter in &mut waiters {
        assert!(waiter.was_woken());
        assert_eq!(waiter.tier(), None);
    }
}

#[test]
fn panics_are_failures() {
    // In the closure itself, before any future, and in the future.
    for early in [true, false] {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let clock = ManualClock::new();
        let tiers = TierResolver::builder(move |_| {
            let call = counted.fetch_add(1, Ordering::SeqCst);
            assert!(!(early && call == 1), "a panic on purpose");
            async move {
                assert!(early || call != 1, "a panic on purpose");
                team()
            }
        })
        .clock(clock.clone())
        .build()
        .unwrap();
        let resolve = || {
            let answer = tiers.tier(&user("alice"), clock.now());
            Task {
                answer,
                woken: Arc::default(),
            }
            .tier()
        };
        assert_eq!(resolve().as_deref(), Some("team"));
        clock.advance(HOUR);
        assert_eq!(resolve().as_deref(), Some("team"));
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        clock.advance(PAUSE);
        assert_eq!(resolve().as_deref(), Some("team"));
        assert_eq!(calls.load(Ordering::SeqCst), 3);
    }
}
