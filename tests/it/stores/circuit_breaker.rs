//! Circuit breaker and deadline, with a manual clock.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate::store::{CircuitBreaker, DenyCache, StoreHealth};
use tollgate::{
    Check, Clock as _, ManualClock, Store, StoreErrorKind, StoreFuture, Timestamp, Usage,
};

use super::held::Held;
use super::{counter, user};
use crate::support::error_paths;
use crate::support::scripted_store::{Script, ScriptedStore};
use crate::support::store_ext::StoreExt as _;

const DEADLINE: Duration = Duration::from_millis(50);
/// Probe interval: the longest wait for the next probe.
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

    /// Returns the usage, or the error message.
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
fn store_without_a_reply_fails_at_the_deadline() {
    let bench = bench();
    bench.inner.follow(Script::NeverReply);
    let mut answer = bench.decide();
    assert!(poll(&mut answer).is_pending());
    bench.clock.advance(Duration::from_micros(49_999));
    assert!(poll(&mut answer).is_pending());
    bench.clock.advance(Duration::from_micros(1));
    let Poll::Ready(Err(late)) = poll(&mut answer) else {
        panic!("the call has not failed at its deadline");
    };
    assert_eq!(late.to_string(), "the store has not answered within 50ms");
    assert_eq!(late.kind(), StoreErrorKind::Unavailable);
}

/// The first calls fail. Later ones are rejected at once, without a call to the store.
#[test]
fn open_breaker_does_not_call_the_store() {
    let bench = bench();
    assert_eq!(bench.take(), Ok(1));
    bench.open();
    assert_eq!(bench.inner.calls(), 4);
    for _ in 0..1_000 {
        assert_eq!(
            bench.take(),
            Err("it is down".to_owned()),
            "not the error of the store"
        );
    }
    assert_eq!(bench.inner.calls(), 4);
    let StoreHealth::Degraded {
        since, why, kind, ..
    } = bench.store.health()
    else {
        panic!("the breaker is not open");
    };
    assert_eq!((since, &*why), (bench.clock.now(), "it is down"));
    assert_eq!(kind, StoreErrorKind::Unavailable);
}

/// A success resets the count of failures.
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
fn one_probe_runs_at_a_time() {
    let bench = bench();
    bench.open();
    bench.inner.follow(Script::NeverReply);
    let before = bench.inner.calls();
    // The next probe starts after half of the interval at the earliest, and after all of it at the latest.
    bench.clock.advance(Duration::from_micros(249_999));
    assert!(bench.take().is_err());
    assert_eq!(bench.inner.calls(), before);
    bench.clock.advance(PROBE / 2 + Duration::from_micros(1));
    let mut probe = bench.decide();
    assert!(poll(&mut probe).is_pending());
    assert_eq!(bench.inner.calls(), before + 1);
    bench.clock.advance(DEADLINE / 2);
    for _ in 0..100 {
        assert!(bench.take().is_err(), "all others are rejected at once");
    }
    assert_eq!(bench.inner.calls(), before + 1);
    bench.clock.advance(DEADLINE / 2);
    assert!(matches!(poll(&mut probe), Poll::Ready(Err(_))));
    drop(probe);
    // The next probe starts after another interval, and succeeds.
    assert!(bench.take().is_err());
    assert_eq!(bench.inner.calls(), before + 1);
    bench.inner.follow(Script::Reply);
    bench.clock.advance(PROBE);
    assert_eq!(bench.take(), Ok(1));
    assert!(bench.store.health().is_healthy());
    // The breaker is closed: every call passes.
    for used in 2..100 {
        assert_eq!(bench.take(), Ok(used));
    }
}

/// If the caller of the probe disconnects, another request becomes the probe.
#[test]
fn dropped_probe_does_not_keep_the_breaker_open() {
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

/// The future of the probe is held, but never polled.
#[test]
fn probe_that_is_never_polled_does_not_keep_the_breaker_open() {
    let bench = bench();
    bench.open();
    bench.inner.follow(Script::NeverReply);
    bench.clock.advance(PROBE);
    let _kept = bench.decide();
    bench.inner.follow(Script::Reply);
    bench.clock.advance(9 * PROBE);
    assert!(bench.take().is_err(), "the probe may still complete");
    bench.clock.advance(PROBE);
    assert_eq!(bench.take(), Ok(1));
    assert!(bench.store.health().is_healthy());
}

/// Bug: callers that waited for less than the deadline kept calling a hanging store. In 6 s, 0 of 361
/// requests were served, and the store was reported as healthy.
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
    assert_eq!(bench.inner.calls(), calls, "the breaker is not open");
    // An abandoned probe keeps the breaker open. A probe with a reply closes it.
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

/// The store works, and one call is slow. An abandoned call does not prove an outage.
#[test]
fn abandoned_calls_are_no_failures_if_the_store_answers_others() {
    let (clock, inner) = (ManualClock::new(), Held::new());
    let store = CircuitBreaker::builder(inner.clone()).clock(clock.clone());
    let store = store.build().unwrap();
    let (alice, many) = (user("alice"), counter("rule", "1000/hour"));
    let decide = || store.decide_one(&Check::new(&alice, &many), clock.now());
    for _ in 0..10 {
        let mut slow = decide();
        inner.set_replying(false);
        assert!(poll(&mut slow).is_pending());
        inner.set_replying(true);
        assert!(decide().wait().is_ok());
        clock.advance(DEADLINE / 2);
        drop(slow);
    }
    assert!(store.health().is_healthy());
}

/// Recovery takes at most two seconds, for every random probe delay.
#[test]
fn breaker_recovers_within_two_seconds() {
    for _ in 0..200 {
        let bench = bench();
        bench.open();
        bench.clock.advance(Duration::from_mins(1));
        assert!(
            bench.take().is_err(),
            "the probe succeeded during the outage"
        );
        bench.inner.follow(Script::Reply);
        let recovered_at = bench.clock.now();
        while bench.take().is_err() {
            bench.clock.advance(Duration::from_millis(1));
        }
        assert!(bench.clock.now().duration_since(recovered_at) <= PROBE);
    }
}

#[test]
fn permanent_error_keeps_its_kind() {
    let bench = bench();
    bench.inner.follow(Script::Refused);
    for _ in 0..10 {
        let error = bench.decide().wait().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Permanent);
        assert_eq!(error.to_string(), "wrong password; check the URL");
    }
    assert_eq!(bench.inner.calls(), 3);
    let StoreHealth::Degraded { kind, .. } = bench.store.health() else {
        panic!("the breaker is not open");
    };
    assert_eq!(kind, StoreErrorKind::Permanent);
}

/// Admin calls always reach the store, and neither open nor close the breaker.
#[test]
fn admin_calls_always_reach_the_store() {
    let bench = bench();
    bench.open();
    bench.inner.follow(Script::Reply);
    assert_eq!(bench.store.len().wait().unwrap(), 0);
    bench.store.clear().wait().unwrap();
    assert!(!bench.store.health().is_healthy());
}

/// Decorators report the health of the inner store, even while they serve cached denials.
#[test]
fn decorators_report_the_health_of_the_inner_store() {
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
fn invalid_settings_are_rejected() {
    let new = || CircuitBreaker::builder(ScriptedStore::default());
    let wrong = [
        (new().deadline(Duration::ZERO), "deadline"),
        (new().deadline(Duration::from_secs(61)), "deadline"),
        (new().failure_threshold(0), "failure_threshold"),
        (new().probe_interval(Duration::ZERO), "probe_interval"),
    ];
    for (builder, path) in wrong {
        assert_eq!(error_paths(&builder.build().unwrap_err()), [path]);
    }
}

#[test]
fn all_wrong_settings_are_reported_together() {
    let builder = CircuitBreaker::builder(ScriptedStore::default())
        .deadline(Duration::ZERO)
        .failure_threshold(0)
        .probe_interval(Duration::ZERO);
    assert_eq!(
        error_paths(&builder.build().unwrap_err()),
        ["deadline", "probe_interval", "failure_threshold"]
    );
}
