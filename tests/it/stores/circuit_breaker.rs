//! A deadline and a breaker, by a clock that is moved by hand.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate::store::{CircuitBreaker, DenyCache, StoreHealth};
use tollgate::{
    Check, Clock as _, ManualClock, Store, StoreErrorKind, StoreFuture, Timestamp, Usage,
};

use super::held::Held;
use super::{counter, user};
use crate::support::scripted_store::{Script, ScriptedStore};
use crate::support::store_ext::StoreExt as _;

const DEADLINE: Duration = Duration::from_millis(50);
/// By then at the latest, somebody is let through to find out.
const PROBE: Duration = Duration::from_millis(500);

struct Bench {
    clock: ManualClock,
    inner: ScriptedStore,
    store: CircuitBreaker,
}

fn bench() -> Bench {
    let (clock, inner) = (ManualClock::new(), ScriptedStore::default());
    let store = CircuitBreaker::builder(inner.clone()).clock(clock.clone());
    Bench {
        store: store.build().unwrap(),
        clock,
        inner,
    }
}

impl Bench {
    fn decide(&self) -> StoreFuture<(Usage, Timestamp)> {
        let (alice, many) = (user("alice"), counter("rule", "1000/hour"));
        self.store
            .decide_one(&Check::new(&alice, &many), self.clock.now())
    }

    /// The words of the error, if there is one.
    fn take(&self) -> Result<u64, String> {
        match self.decide().wait() {
            Ok((usage, _)) => Ok(usage.used()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn open(&self) {
        self.inner.follow(Script::Unavailable);
        for _ in 0..3 {
            assert_eq!(self.take(), Err("it is down".to_owned()));
        }
        assert!(!self.store.health().is_healthy());
    }
}

fn poll<T: Unpin>(answer: &mut StoreFuture<T>) -> Poll<Result<T, tollgate::StoreError>> {
    pin!(answer).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_store_that_says_nothing_is_waited_for_until_the_deadline() {
    let bench = bench();
    bench.inner.follow(Script::NeverReply);
    let mut answer = bench.decide();
    assert!(poll(&mut answer).is_pending());
    bench.clock.advance(Duration::from_micros(49_999));
    assert!(poll(&mut answer).is_pending());
    bench.clock.advance(Duration::from_micros(1));
    let Poll::Ready(Err(late)) = poll(&mut answer) else {
        panic!("the deadline is over");
    };
    assert_eq!(late.to_string(), "the store has not answered within 50ms");
    assert_eq!(late.kind(), StoreErrorKind::Unavailable);
}

/// Three wait; all others are told at once, and the store hears nothing of them.
#[test]
fn after_a_few_failures_the_store_is_left_alone() {
    let bench = bench();
    assert_eq!(bench.take(), Ok(1));
    bench.open();
    assert_eq!(bench.inner.calls(), 4);
    for _ in 0..1_000 {
        assert_eq!(bench.take(), Err("it is down".to_owned()), "it says why");
    }
    assert_eq!(bench.inner.calls(), 4);
    let StoreHealth::Degraded {
        since, why, kind, ..
    } = bench.store.health()
    else {
        panic!("it is open");
    };
    assert_eq!((since, &*why), (bench.clock.now(), "it is down"));
    assert_eq!(kind, StoreErrorKind::Unavailable);
}

/// A success in between shows that it is a bad patch, and not an outage.
#[test]
fn only_failures_in_a_row_count() {
    let bench = bench();
    for round in 1..=10 {
        bench.inner.follow(Script::Unavailable);
        assert!(bench.take().is_err());
        assert!(bench.take().is_err());
        bench.inner.follow(Script::Reply);
        assert_eq!(bench.take(), Ok(round));
    }
    assert!(bench.store.health().is_healthy());
}

#[test]
fn one_at_a_time_finds_out_whether_it_is_back() {
    let bench = bench();
    bench.open();
    bench.inner.follow(Script::NeverReply);
    let before = bench.inner.calls();
    // Never sooner than half the interval, never later than all of it.
    bench.clock.advance(Duration::from_micros(249_999));
    assert!(bench.take().is_err());
    assert_eq!(bench.inner.calls(), before);
    bench.clock.advance(PROBE / 2 + Duration::from_micros(1));
    let mut probe = bench.decide();
    assert!(poll(&mut probe).is_pending());
    assert_eq!(bench.inner.calls(), before + 1);
    bench.clock.advance(DEADLINE / 2);
    for _ in 0..100 {
        assert!(bench.take().is_err(), "all others are told at once");
    }
    assert_eq!(bench.inner.calls(), before + 1);
    bench.clock.advance(DEADLINE / 2);
    assert!(matches!(poll(&mut probe), Poll::Ready(Err(_))));
    drop(probe);
    // The next one comes after another interval, and finds it well again.
    assert!(bench.take().is_err());
    assert_eq!(bench.inner.calls(), before + 1);
    bench.inner.follow(Script::Reply);
    bench.clock.advance(PROBE);
    assert_eq!(bench.take(), Ok(1));
    assert!(bench.store.health().is_healthy());
    // And from then on everybody is let through.
    for used in 2..100 {
        assert_eq!(bench.take(), Ok(used));
    }
}

/// The client of the request that was to find out has gone. Another one does.
#[test]
fn a_probe_that_nobody_waits_for_does_not_keep_it_closed() {
    let bench = bench();
    bench.open();
    bench.inner.follow(Script::NeverReply);
    bench.clock.advance(PROBE);
    let mut probe = bench.decide();
    assert!(poll(&mut probe).is_pending());
    drop(probe);
    bench.inner.follow(Script::Reply);
    bench.clock.advance(PROBE);
    assert_eq!(bench.take(), Ok(1));
}

/// It was let through to find out, and whoever has the answer does not look at it.
#[test]
fn a_probe_that_nobody_looks_at_does_not_keep_it_closed_for_good() {
    let bench = bench();
    bench.open();
    bench.inner.follow(Script::NeverReply);
    bench.clock.advance(PROBE);
    let _kept = bench.decide();
    bench.inner.follow(Script::Reply);
    bench.clock.advance(9 * PROBE);
    assert!(bench.take().is_err(), "it may still be heard of");
    bench.clock.advance(PROBE);
    assert_eq!(bench.take(), Ok(1));
    assert!(bench.store.health().is_healthy());
}

/// Callers that wait for less than the deadline kept a hanging store in use: 0 of 361 requests were
/// served in 6 s, and the store was reported as healthy.
#[test]
fn abandoned_calls_open_the_breaker_of_a_hanging_store() {
    let bench = bench();
    bench.inner.follow(Script::NeverReply);
    for _ in 0..3 {
        let mut call = bench.decide();
        assert!(poll(&mut call).is_pending());
        bench.clock.advance(DEADLINE / 2);
    }
    assert!(!bench.store.health().is_healthy());
    let calls = bench.inner.calls();
    assert_eq!(calls, 3);
    for _ in 0..100 {
        let error = bench.decide().wait().unwrap_err().to_string();
        assert_eq!(error, "the store has not answered within 25ms");
    }
    assert_eq!(bench.inner.calls(), calls, "the breaker is open");
    // A probe that is abandoned keeps it open, one that is answered closes it.
    bench.clock.advance(PROBE);
    let mut probe = bench.decide();
    assert!(poll(&mut probe).is_pending());
    bench.clock.advance(DEADLINE / 2);
    drop(probe);
    assert!(!bench.store.health().is_healthy());
    bench.inner.follow(Script::Reply);
    bench.clock.advance(PROBE);
    assert_eq!(bench.take(), Ok(1));
    assert!(bench.store.health().is_healthy());
}

#[test]
fn calls_abandoned_before_half_of_the_deadline_are_no_failures() {
    let bench = bench();
    bench.inner.follow(Script::NeverReply);
    for _ in 0..100 {
        let mut call = bench.decide();
        assert!(poll(&mut call).is_pending());
        bench
            .clock
            .advance((DEADLINE / 2).saturating_sub(Duration::from_micros(1)));
    }
    assert!(bench.store.health().is_healthy());
}

/// The store works, and one call is slow: that its caller gives up proves nothing.
#[test]
fn abandoned_calls_are_no_failures_if_the_store_answers_others() {
    let (clock, inner) = (ManualClock::new(), Held::new());
    let store = CircuitBreaker::builder(inner.clone()).clock(clock.clone());
    let store = store.build().unwrap();
    let (alice, many) = (user("alice"), counter("rule", "1000/hour"));
    let decide = || store.decide_one(&Check::new(&alice, &many), clock.now());
    for _ in 0..10 {
        let mut slow = decide();
        inner.answers(false);
        assert!(poll(&mut slow).is_pending());
        inner.answers(true);
        assert!(decide().wait().is_ok());
        clock.advance(DEADLINE / 2);
        drop(slow);
    }
    assert!(store.health().is_healthy());
}

/// From the outage to the first shared count: however the chance falls, within two seconds.
#[test]
fn it_recovers_within_two_seconds() {
    for _ in 0..200 {
        let bench = bench();
        bench.open();
        bench.clock.advance(Duration::from_mins(1));
        assert!(
            bench.take().is_err(),
            "this one has found out that it is down"
        );
        bench.inner.follow(Script::Reply);
        let back = bench.clock.now();
        while bench.take().is_err() {
            bench.clock.advance(Duration::from_millis(1));
        }
        assert!(bench.clock.now().duration_since(back) <= PROBE);
    }
}

#[test]
fn what_is_refused_is_told_as_such() {
    let bench = bench();
    bench.inner.follow(Script::Refused);
    for _ in 0..10 {
        let error = bench.decide().wait().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Permanent);
        assert_eq!(error.to_string(), "wrong password; check the URL");
    }
    assert_eq!(bench.inner.calls(), 3);
    let StoreHealth::Degraded { kind, .. } = bench.store.health() else {
        panic!("it is open");
    };
    assert_eq!(kind, StoreErrorKind::Permanent);
}

/// Operators are let through, and neither open nor close it.
#[test]
fn what_operators_do_is_always_tried() {
    let bench = bench();
    bench.open();
    bench.inner.follow(Script::Reply);
    assert_eq!(bench.store.len().wait().unwrap(), 0);
    bench.store.clear().wait().unwrap();
    assert!(!bench.store.health().is_healthy());
}

/// The state of the store is seen through what is around it, and denials that are remembered do
/// not hide it.
#[test]
fn health_is_seen_from_outside() {
    let bench = bench();
    let (alice, one) = (user("alice"), counter("one", "1/hour"));
    let (check, now) = (Check::new(&alice, &one), bench.clock.now());
    let around = DenyCache::new(bench.store);
    for _ in 0..2 {
        around.decide_one(&check, now).wait().unwrap();
    }
    bench.inner.follow(Script::Unavailable);
    let two = counter("two", "1/hour");
    for _ in 0..5 {
        let other = Check::new(&alice, &two);
        assert!(around.decide_one(&other, now).wait().is_err());
        assert!(
            !around
                .decide_one(&check, now)
                .wait()
                .unwrap()
                .0
                .is_allowed()
        );
    }
    assert!(!around.health().is_healthy());
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let new = || CircuitBreaker::builder(ScriptedStore::default());
    let wrong = [
        (new().deadline(Duration::ZERO), "store deadline"),
        (new().deadline(Duration::from_secs(61)), "store deadline"),
        (new().failure_threshold(0), "breaker"),
        (new().probe_interval(Duration::ZERO), "probe interval"),
    ];
    for (builder, field) in wrong {
        assert_eq!(builder.build().unwrap_err().field(), field);
    }
}
