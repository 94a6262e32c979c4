//! Public API of the limiter.

mod one_route;
mod overrides;
mod pending;
mod reserve;
mod reserve_properties;
mod responder;

use std::net::Ipv4Addr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate::{
    Batch, Check, Clock, Counter, Error, Limiter, ManualClock, MemoryStore, Quota, Store,
    StoreError, StoreFuture, Subject, SystemClock, Timestamp, Usages,
};

fn limiter(quotas: &[&str]) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    let builder = Limiter::builder().clock(clock.clone());
    let builder = quotas
        .iter()
        .fold(builder, |builder, quota| builder.quota(*quota));
    (builder.build().unwrap(), clock)
}

#[test]
fn the_longest_wait_is_reported() {
    let (limiter, _clock) = limiter(&["2/minute, fixed-window", "2/hour, fixed-window"]);
    for _ in 0..2 {
        assert!(limiter.check("alice").wait().unwrap().is_allowed());
    }
    let denied = limiter.check("alice").wait().unwrap();
    assert_eq!(denied.retry_after(), Some(Duration::from_hours(1)));
    assert_eq!(denied.binding(), Some(1));
}

#[test]
fn the_least_remaining_is_reported_and_the_longer_window_of_equals() {
    let (limiter, _clock) = limiter(&["5/minute", "5/hour", "9/second"]);
    let decision = limiter.check("alice").wait().unwrap();
    assert_eq!((decision.binding(), decision.remaining()), (Some(1), 4));
}

#[test]
fn cost_above_the_limit_can_never_succeed() {
    let (limiter, _clock) = limiter(&["5/minute"]);
    let decision = limiter.check("alice").cost(6).wait().unwrap();
    assert!(decision.is_denied() && decision.can_never_succeed());
    assert_eq!(decision.retry_after(), None);
    assert_eq!(limiter.remaining("alice").wait().unwrap(), 5);
}

#[test]
fn unlimited_and_blocked_are_quotas_too() {
    let unlimited = Limiter::new("unlimited").unwrap();
    let decision = unlimited.check("alice").cost(u64::MAX).wait().unwrap();
    assert!(decision.is_allowed());
    assert_eq!(
        (decision.limit(), decision.remaining()),
        (u64::MAX, u64::MAX)
    );
    let blocked = Limiter::new("blocked").unwrap();
    assert!(
        blocked
            .check("alice")
            .cost(0)
            .wait()
            .unwrap()
            .can_never_succeed()
    );
}

#[test]
fn a_per_call_limit_wins_and_keeps_the_count() {
    let (limiter, _clock) = limiter(&["10/minute", "100/hour"]);
    for _ in 0..3 {
        assert!(limiter.check("alice").limit(3).wait().unwrap().is_allowed());
    }
    assert!(limiter.check("alice").limit(3).wait().unwrap().is_denied());
    assert!(limiter.check("alice").wait().unwrap().is_allowed());
    let lower = [Quota::per_minute(10).unwrap(), Quota::per_hour(4).unwrap()];
    assert!(
        limiter
            .check("alice")
            .quotas(&lower)
            .wait()
            .unwrap()
            .is_denied()
    );
    assert_eq!(limiter.peek("alice").wait().unwrap().used(), 4);
}

#[test]
fn a_wrong_per_call_limit_is_an_error_and_not_a_denial() {
    let (limiter, _clock) = limiter(&["10/minute"]);
    let two = [Quota::per_minute(5).unwrap(), Quota::per_hour(5).unwrap()];
    for (check, expected) in [
        (limiter.check("alice").limit(0), "quota limit: found `0`"),
        (
            limiter.check("alice").quotas(&two),
            "number of quotas: found `2`, expected 1",
        ),
        (
            limiter.check("alice").quotas(&two[1..]),
            "the window and algorithm of its counter",
        ),
        (limiter.check("alice").limit(u64::MAX), "at most"),
    ] {
        let error = check.wait().unwrap_err();
        assert!(matches!(error, Error::Invalid(_)));
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(limiter.remaining("alice").wait().unwrap(), 10);
}

#[test]
fn invalid_settings_are_rejected_when_built() {
    let nine = (1..=9).fold(Limiter::builder(), |builder, n| {
        builder.quota(format!("5/{n}m").as_str())
    });
    for (builder, expected) in [
        (
            Limiter::builder(),
            "number of quotas: found `0`, expected 1 to 8",
        ),
        (nine, "number of quotas: found `9`, expected 1 to 8"),
        (
            Limiter::builder().quota("5/minute").quota("7/60s"),
            "another window than `5/1m`",
        ),
        (
            Limiter::builder().quota("5/minute").name(""),
            "rule name: found ``",
        ),
        (
            Limiter::builder().quota("5/minute").name("two words"),
            "visible ASCII characters",
        ),
        (
            Limiter::builder().quota("5/minute").name("line\nbreak"),
            "found `line\\nbreak`",
        ),
        (
            Limiter::builder().quota("5 a minute"),
            "expected a quota such as `500/hour`",
        ),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = MemoryStore::builder()
        .capacity(0)
        .build()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("store capacity: found `0`, expected 1 to"),
        "{error}"
    );
}

#[test]
fn resetting_one_limiter_leaves_others_alone() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let named = |name: &str| {
        Limiter::builder()
            .name(name)
            .quota("5/hour")
            .store(Arc::clone(&store))
            .build()
            .unwrap()
    };
    let (mail, chat) = (named("mail"), named("chat"));
    for limiter in [&mail, &chat] {
        assert!(limiter.check("alice").wait().unwrap().is_allowed());
    }
    mail.reset("alice").wait().unwrap();
    assert_eq!(mail.remaining("alice").wait().unwrap(), 5);
    assert_eq!(chat.remaining("alice").wait().unwrap(), 4);
    // Limiters with one name and one store share their counters.
    assert_eq!(named("chat").remaining("alice").wait().unwrap(), 4);
    chat.clear().wait().unwrap();
    assert_eq!(chat.len().wait().unwrap(), 0);
}

#[test]
fn refund_goes_to_the_window_of_the_charge() {
    let (limiter, clock) = limiter(&["5/minute, fixed-window", "9/hour, sliding-log"]);
    let charged = limiter.check("alice").cost(3).wait().unwrap();
    let denied = limiter.check("alice").cost(3).wait().unwrap();
    limiter.refund("alice", denied).wait().unwrap();
    assert_eq!(limiter.remaining("alice").wait().unwrap(), 2);
    // A minute later the first window is over; only the hour still counts the charge.
    clock.advance(Duration::from_mins(1));
    assert!(limiter.check("alice").wait().unwrap().is_allowed());
    limiter.refund("alice", charged).wait().unwrap();
    let usages = limiter.usages("alice").wait().unwrap();
    let left: Vec<u64> = usages.usages().iter().map(tollgate::Usage::used).collect();
    assert_eq!(left, [1, 1]);
}

/// Polls a future once.
fn poll_once(future: Pin<&mut impl Future<Output = ()>>) -> Poll<()> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn sweep_at_an_interval_drops_expired_counters_without_requests() {
    let clock = ManualClock::new();
    let limiter = Limiter::builder().quota("10/minute").clock(clock.clone());
    let limiter = limiter.build().unwrap();
    let mut sweeping = pin!(limiter.sweep_every(Duration::from_mins(5)));
    for key in ["a", "b"] {
        assert!(limiter.check(key).wait().unwrap().is_allowed());
    }
    assert!(poll_once(sweeping.as_mut()).is_pending());
    clock.advance(Duration::from_secs(299));
    assert!(poll_once(sweeping.as_mut()).is_pending());
    assert_eq!(limiter.len().wait().unwrap(), 2);
    clock.advance(Duration::from_secs(1));
    assert!(poll_once(sweeping.as_mut()).is_pending());
    assert_eq!(limiter.len().wait().unwrap(), 0);

    drop(limiter);
    clock.advance(Duration::from_mins(5));
    assert!(poll_once(sweeping.as_mut()).is_ready());
}

#[test]
fn sweep_returns_the_number_of_dropped_counters() {
    let (limiter, clock) = limiter(&["5/minute, sliding-log"]);
    for number in 0..10_u64 {
        assert!(limiter.check(number).wait().unwrap().is_allowed());
    }
    clock.advance(Duration::from_micros(59_999_999));
    assert_eq!(limiter.sweep().wait().unwrap(), 0);
    clock.advance(Duration::from_micros(1));
    assert_eq!(limiter.sweep().wait().unwrap(), 10);
    assert_eq!(limiter.len().wait().unwrap(), 0);
}

/// Three waiters, and room for one every ten seconds of a manual clock.
#[tokio::test]
async fn waiters_get_their_turn_when_there_is_room() {
    let (limiter, clock) = limiter(&["1/10s, fixed-window"]);
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let decision = limiter
                    .check("alice")
                    .until_ready(Duration::from_mins(1))
                    .await
                    .unwrap();
                (decision.is_allowed(), decision.at())
            })
        })
        .collect();
    for still in [2, 1] {
        while clock.sleeping() < still {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_secs(10));
    }
    let mut turns = Vec::new();
    for waiter in waiters {
        turns.push(waiter.await.unwrap());
    }
    turns.sort();
    let start = ManualClock::new().now();
    let at = |seconds| (true, start.saturating_add(Duration::from_secs(seconds)));
    assert_eq!(turns, [at(0), at(10), at(20)]);
}

#[tokio::test]
async fn a_wait_that_cannot_succeed_in_time_returns_at_once() {
    let (limiter, clock) = limiter(&["1/minute, fixed-window"]);
    assert!(limiter.check("alice").await.unwrap().is_allowed());
    let short = limiter
        .check("alice")
        .until_ready(Duration::from_micros(59_999_999))
        .await
        .unwrap();
    assert!(short.is_denied());
    let hopeless = limiter
        .check("alice")
        .cost(2)
        .until_ready(Duration::MAX)
        .await
        .unwrap();
    assert!(hopeless.can_never_succeed());
    assert_eq!(clock.sleeping(), 0);
}

/// On the machine's clock, and without a runtime: this thread is parked in between.
#[test]
fn waiting_needs_no_runtime() {
    let limiter = Limiter::new("1/20ms, fixed-window").unwrap();
    let clock = SystemClock::new();
    let started = clock.now();
    for _ in 0..3 {
        let turn = limiter
            .check("alice")
            .wait_until_ready(Duration::from_mins(1))
            .unwrap();
        assert!(turn.is_allowed());
    }
    assert!(clock.now().duration_since(started) >= Duration::from_millis(20));
}

/// `record` and `peek` do not wait. A wait on them once charged repeatedly.
#[tokio::test]
async fn only_a_check_waits_for_its_turn() {
    let (limiter, clock) = limiter(&["10/minute, fixed-window"]);
    let day = Duration::from_hours(24);
    let recorded = limiter
        .record("alice")
        .cost(15)
        .until_ready(day)
        .await
        .unwrap();
    assert_eq!((recorded.used(), recorded.charged()), (15, 15));
    assert!(
        limiter
            .peek("alice")
            .until_ready(day)
            .await
            .unwrap()
            .is_denied()
    );
    assert_eq!(clock.sleeping(), 0);
}

/// A decision stores what it charged. A peek refunds nothing. A charge that was recorded over the
/// limit can be refunded although its decision is a denial.
#[test]
fn only_charged_amounts_are_refunded() {
    let (limiter, _clock) = limiter(&["10/minute, fixed-window"]);
    assert_eq!(limiter.check("alice").cost(5).wait().unwrap().charged(), 5);
    let looked = limiter.peek("alice").cost(5).wait().unwrap();
    let denied = limiter.check("alice").cost(6).wait().unwrap();
    for nothing in [looked, denied] {
        assert_eq!(nothing.charged(), 0);
        limiter.refund("alice", nothing).wait().unwrap();
    }
    assert_eq!(limiter.peek("alice").wait().unwrap().used(), 5);
    let recorded = limiter.record("alice").cost(12).wait().unwrap();
    assert!(recorded.is_denied());
    limiter.refund("alice", recorded).wait().unwrap();
    assert_eq!(limiter.peek("alice").wait().unwrap().used(), 5);
}

/// An address and its mapped form are one subject, so they cannot be two checks of a batch.
#[test]
fn a_mapped_address_is_no_second_subject() {
    let v4 = Ipv4Addr::new(1, 2, 3, 4);
    let (plain, mapped) = (Subject::from(v4), Subject::from(v4.to_ipv6_mapped()));
    assert_eq!(plain, mapped);
    let counter = Counter::new("twice", Quota::per_hour(3).unwrap()).unwrap();
    let checks = [Check::new(&plain, &counter), Check::new(&mapped, &counter)];
    let refused = Batch::new(&checks).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("each counter of a subject once"),
        "{refused}"
    );
}

#[test]
fn common_types_are_accepted_as_keys() {
    let (limiter, _clock) = limiter(&["1/minute"]);
    let owned = String::from("alice");
    assert!(limiter.check(&owned).wait().unwrap().is_allowed());
    assert!(limiter.check("alice").wait().unwrap().is_denied());
    assert!(limiter.check(7).wait().unwrap().is_allowed());
    assert!(limiter.check(7_u8).wait().unwrap().is_denied());
    assert!(limiter.check(-7_i64).wait().unwrap().is_allowed());
    assert!(Limiter::new(format!("{}/hour", 5)).is_ok());
    // Nothing that is counted, beside what is counted in the shortest window.
    assert!(
        Limiter::builder()
            .quota("unlimited")
            .quota("5/second, fixed-window")
            .build()
            .is_ok()
    );
}

/// A reply with fewer usages than checks must not admit a request.
#[test]
fn a_reply_with_too_few_usages_is_an_error() {
    #[derive(Debug)]
    struct Silent;

    impl Store for Silent {
        fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
            StoreFuture::ready(Ok(Usages::new(batch, now)))
        }
        fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
            self.decide(batch, now)
        }
        fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
            self.decide(batch, now)
        }
        fn refund(&self, _: &Batch<'_>, _: Timestamp, _: Timestamp) -> StoreFuture<()> {
            StoreFuture::ready(Ok(()))
        }
    }

    for quotas in [&["5/minute"][..], &["5/minute", "blocked"][..]] {
        let builder = Limiter::builder().store(Silent);
        let builder = quotas
            .iter()
            .fold(builder, |builder, quota| builder.quota(*quota));
        let error = builder.build().unwrap().check("alice").wait().unwrap_err();
        assert!(matches!(error, Error::Store(_)), "{error}");
    }
}

/// A store that fails is an error, never a denial and never a panic.
#[test]
fn a_failing_store_is_an_error() {
    #[derive(Debug)]
    struct Broken;

    fn fail<T: Send + 'static>() -> StoreFuture<T> {
        StoreFuture::pending(async { Err(StoreError::new("unplugged").with_source("no cable")) })
    }

    impl Store for Broken {
        fn decide(&self, _: &Batch<'_>, _: Timestamp) -> StoreFuture<Usages> {
            fail()
        }
        fn peek(&self, _: &Batch<'_>, _: Timestamp) -> StoreFuture<Usages> {
            fail()
        }
        fn record(&self, _: &Batch<'_>, _: Timestamp) -> StoreFuture<Usages> {
            fail()
        }
        fn refund(&self, _: &Batch<'_>, _: Timestamp, _: Timestamp) -> StoreFuture<()> {
            fail()
        }
    }

    let limiter = Limiter::builder()
        .quota("5/minute")
        .store(Broken)
        .build()
        .unwrap();
    let error = limiter.check("alice").wait().unwrap_err();
    assert_eq!(error.to_string(), "the rate limit store failed: unplugged");
    let source = std::error::Error::source(&error).and_then(std::error::Error::source);
    assert_eq!(source.unwrap().to_string(), "no cable");
    assert!(limiter.remaining("alice").wait().is_err());
    assert!(limiter.reset("alice").wait().is_err());
    assert!(
        limiter.sweep().wait().is_err(),
        "a store without StoreAdmin"
    );
}

#[test]
fn debug_output_does_not_contain_the_subject() {
    let limiter = Limiter::new("5/minute").unwrap();
    let check = limiter.check([("user", "alice@example.com"), ("group", "secret")]);
    let printed = format!("{check:?} {limiter:?} {:?}", check.wait().unwrap());
    assert!(
        !printed.contains("alice") && !printed.contains("secret"),
        "{printed}"
    );
    assert!(
        printed.contains("user") && printed.contains("5/1m"),
        "{printed}"
    );
}
