//! Reservations: charged when made, refunded unless committed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate::{Limiter, Override, Quota};

use super::limiter;

/// Returns what is used of each quota.
fn used(limiter: &Limiter, key: &str) -> Vec<u64> {
    let usages = limiter.usages(key).wait().unwrap();
    let usages = usages.usages().iter();
    usages.map(tollgate::Usage::used).collect()
}

#[test]
fn dropped_reservation_is_refunded_and_committed_one_stays() {
    let (limiter, _clock) = limiter(&["5/minute", "9/hour, sliding-log"]);
    let [committed, cancelled, dropped] =
        [1, 2, 1].map(|cost| limiter.reserve("alice").cost(cost).wait().unwrap());
    assert_eq!(used(&limiter, "alice"), [4, 4]);
    assert_eq!(dropped.decision().remaining(), 1);
    drop(dropped);
    assert_eq!(used(&limiter, "alice"), [3, 3]);
    cancelled.cancel().wait().unwrap();
    assert_eq!(used(&limiter, "alice"), [1, 1]);
    committed.commit();
    assert_eq!(used(&limiter, "alice"), [1, 1]);
}

#[test]
fn reservation_checks_and_charges_atomically() {
    let (limiter, _clock) = limiter(&["1/minute", "9/hour"]);
    let first = limiter.reserve("alice").wait().unwrap();
    let second = limiter.reserve("alice").wait().unwrap();
    assert!(first.is_allowed() && second.is_denied());
    assert!(second.decision().retry_after().is_some());
    // A denied reservation holds nothing, however it is settled.
    drop(second);
    assert_eq!(used(&limiter, "alice"), [1, 1]);
    limiter.reserve("alice").wait().unwrap().commit();
    assert_eq!(used(&limiter, "alice"), [1, 1]);
    let third = limiter.reserve("alice").wait().unwrap();
    third.cancel().wait().unwrap();
    assert_eq!(used(&limiter, "alice"), [1, 1]);
    drop(first);
    assert!(limiter.reserve("alice").wait().unwrap().is_allowed());
}

#[test]
fn panic_refunds_the_reservation() {
    let (limiter, _clock) = limiter(&["5/minute"]);
    let sent = catch_unwind(AssertUnwindSafe(|| {
        let room = limiter.reserve("alice").wait().unwrap();
        assert!(room.is_denied(), "the provider has gone mad");
        room.commit();
    }));
    assert!(sent.is_err());
    assert_eq!(used(&limiter, "alice"), [0]);
}

#[test]
fn refund_does_not_change_another_window() {
    for algorithm in [
        "fixed-window",
        "sliding-window",
        "sliding-buckets",
        "sliding-log",
        "token-bucket",
    ] {
        let quota = format!("5/minute, {algorithm}");
        let (limiter, clock) = limiter(&[&quota]);
        let late = limiter.reserve("alice").cost(2).wait().unwrap();
        // By then the charge has expired in all of them.
        clock.advance(Duration::from_mins(2));
        limiter.reserve("alice").cost(3).wait().unwrap().commit();
        drop(late);
        assert_eq!(used(&limiter, "alice"), [3], "{algorithm}");
    }
}

/// A charge under `unlimited` counts nothing, so there is nothing to take out of the counter; a
/// bucket that refills ten times as fast has less to refund.
#[test]
fn refund_uses_the_quotas_of_the_charge() {
    let (limiter, clock) = limiter(&["60/minute, token-bucket", "1000/hour"]);
    let check = limiter.check("alice").cost(30).wait().unwrap();
    assert_eq!(check.charged(), 30);
    let unlimited = [Quota::unlimited(), Quota::unlimited()];
    let free = limiter.reserve("alice").cost(20).quotas(&unlimited);
    drop(free.wait().unwrap());
    assert_eq!(used(&limiter, "alice"), [30, 30]);

    let bob = |cost| limiter.reserve("bob").cost(cost).limit(600).wait().unwrap();
    bob(100).commit();
    let fast = bob(20);
    clock.advance(Duration::from_secs(3));
    // Thirty have been refilled by now, those twenty among them: nothing is left to refund.
    drop(fast);
    let usage = limiter.peek("bob").limit(600).wait().unwrap();
    assert_eq!(usage.used(), 90);
    assert_eq!(used(&limiter, "bob")[1], 100);
}

/// Also if the override has been removed before the refund.
#[test]
fn override_change_does_not_affect_the_refund() {
    let (limiter, _clock) = limiter(&["10/minute"]);
    limiter.reserve("alice").cost(4).wait().unwrap().commit();
    let unlimited = Override::new("alice", "default", "unlimited").unwrap();
    limiter.set_override(unlimited).wait().unwrap();
    let free = limiter.reserve("alice").cost(3).wait().unwrap();
    assert_eq!(free.decision().limit(), u64::MAX);
    assert!(limiter.remove_override("alice").wait().unwrap());
    drop(free);
    assert_eq!(used(&limiter, "alice"), [4]);

    let counted = limiter.reserve("alice").cost(3).wait().unwrap();
    let blocked = Override::new("alice", "default", "blocked").unwrap();
    limiter.set_override(blocked).wait().unwrap();
    drop(counted);
    assert!(limiter.remove_override("alice").wait().unwrap());
    assert_eq!(used(&limiter, "alice"), [4]);
}

#[test]
fn reservation_can_be_settled_at_the_actual_cost() {
    let (limiter, _clock) = limiter(&["10/minute", "100/hour, sliding-log"]);
    for (reserved, cost, in_all) in [(5, 2, 2), (3, 3, 5), (2, 9, 14)] {
        let room = limiter.reserve("alice").cost(reserved).wait().unwrap();
        assert!(room.is_allowed());
        room.commit_cost(cost).wait().unwrap();
        assert_eq!(used(&limiter, "alice"), [in_all, in_all]);
    }
    let denied = limiter.reserve("alice").wait().unwrap();
    assert!(denied.is_denied());
    denied.commit_cost(1).wait().unwrap();
    assert_eq!(used(&limiter, "alice"), [15, 15]);
}

#[test]
fn wrong_limits_are_errors_and_hold_nothing() {
    let (limiter, _clock) = limiter(&["10/minute"]);
    let two = [Quota::per_minute(5).unwrap(), Quota::per_hour(5).unwrap()];
    for (reserve, expected) in [
        (limiter.reserve("alice").limit(0), "quota limit"),
        (limiter.reserve("alice").quotas(&two), "number of quotas"),
    ] {
        let error = reserve.wait().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(used(&limiter, "alice"), [0]);
}

#[tokio::test]
async fn a_reservation_waits_for_its_turn() {
    let (limiter, clock) = limiter(&["1/10s, fixed-window"]);
    let first = limiter.reserve("alice").await.unwrap();
    let waiter = tokio::spawn({
        let limiter = limiter.clone();
        async move {
            let minute = Duration::from_mins(1);
            let room = limiter.reserve("alice").until_ready(minute).await.unwrap();
            let allowed = room.is_allowed();
            room.commit();
            allowed
        }
    });
    while clock.sleeping() < 1 {
        tokio::task::yield_now().await;
    }
    // The window is over: a refund frees nothing now, and the waiter is admitted nevertheless.
    clock.advance(Duration::from_secs(10));
    drop(first);
    assert!(waiter.await.unwrap());
    let short = Duration::from_secs(9);
    let in_vain = limiter.reserve("alice").until_ready(short).await.unwrap();
    assert!(in_vain.is_denied());
    drop(in_vain);
    assert_eq!(used(&limiter, "alice"), [1]);
    clock.advance(Duration::from_secs(10));
    let room = limiter.reserve("alice").wait_until_ready(short).unwrap();
    assert!(room.is_allowed());
}

/// Eight threads reserve; some commit, some drop. Held and committed amounts together never exceed
/// the limit, and finally only committed amounts are counted.
#[test]
fn concurrent_reservations_never_exceed_the_limit() {
    const LIMIT: u64 = 100;
    let (limiter, _clock) = limiter(&["100/minute, sliding-buckets", "100/hour, sliding-log"]);
    let (taken, committed, most) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let start = Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let (limiter, start) = (&limiter, &start);
            let (taken, committed, most) = (&taken, &committed, &most);
            scope.spawn(move || {
                start.wait();
                for number in 0..2_000_u64 {
                    let room = limiter.reserve("all").wait().unwrap();
                    if room.is_denied() {
                        continue;
                    }
                    let now = taken.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    if (number + thread).is_multiple_of(50) {
                        committed.fetch_add(1, Ordering::SeqCst);
                        room.commit();
                    } else {
                        // Before the refund, so that no other reservation is counted twice.
                        taken.fetch_sub(1, Ordering::SeqCst);
                        drop(room);
                    }
                }
            });
        }
    });
    let (most, committed) = (most.into_inner(), committed.into_inner());
    assert!(most <= LIMIT, "{most} at once");
    assert_eq!(committed, LIMIT, "as many wanted to be");
    assert_eq!(used(&limiter, "all"), [LIMIT, LIMIT]);
}

#[test]
fn debug_output_does_not_contain_the_subject() {
    let (limiter, _clock) = limiter(&["5/minute"]);
    let reserve = limiter.reserve([("user", "alice@example.com")]);
    let printed = format!("{reserve:?} {:?}", reserve.wait().unwrap());
    assert!(!printed.contains("alice"), "{printed}");
    assert!(printed.contains("user"), "{printed}");
}
