//! Subject, quota, override and store change what a check decides, never the route it takes.

use std::future::IntoFuture as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use crate::support::scripted_store::ScriptedStore;
use proptest::collection::vec;
use proptest::prelude::*;
use tollgate::{CheckBuilder, Decision, Limiter, ManualClock, MemoryStore};

const QUOTAS: [&str; 8] = [
    "10/minute",
    "7/second, token-bucket",
    "10/minute, token-bucket, burst 3",
    "5000000/hour, token-bucket",
    "4/minute, fixed-window",
    "6/second, sliding-buckets",
    "5/minute, sliding-log",
    "unlimited",
];

/// Builds a check of one of ten subjects.
fn check(limiter: &Limiter, subject: usize) -> CheckBuilder<'_> {
    let v4 = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));
    match subject {
        0 => limiter.check("alice"),
        1 => limiter.check("a much longer name than those that fit into a few words"),
        2 => limiter.check(""),
        3 => limiter.check(v4),
        // IPv4-mapped form of the address above.
        4 => limiter.check(Ipv4Addr::new(10, 0, 0, 7).to_ipv6_mapped()),
        5 => limiter.check(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        6 => limiter.check([("ip", v4)]),
        7 => limiter.check([("user", "alice")]),
        8 => limiter.check(7_u64),
        _ => limiter.check([("tenant", "acme"), ("user", "alice")]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn blocking_async_and_custom_stores_decide_equally(
        quota in prop::sample::select(&QUOTAS[..]),
        steps in vec((0..10_usize, 0..4_u64, 0..3_000_000_u64, any::<bool>()), 1..60),
    ) {
        let clock = ManualClock::new();
        let limiter = || Limiter::builder().quota(quota).clock(clock.clone());
        let blocking = limiter().build().unwrap();
        let awaited = limiter().build().unwrap();
        let scripted = limiter().store(ScriptedStore::default()).build().unwrap();
        for (subject, cost, micros, stays) in steps {
            if !stays {
                clock.advance(Duration::from_micros(micros));
            }
            let expected: Decision = check(&blocking, subject).cost(cost).wait().unwrap();
            let answer = check(&awaited, subject).cost(cost).into_future();
            prop_assert_eq!(&answer.wait().unwrap(), &expected, "{} for {}", quota, subject);
            prop_assert_eq!(&check(&scripted, subject).cost(cost).wait().unwrap(), &expected);
        }
    }
}

/// Overrides of named dimensions apply to the subjects that have them.
#[test]
fn override_applies_to_every_subject_and_quota() {
    for subject in 0..10 {
        let limiter = Limiter::builder().quota("2/hour").name("sends").build();
        let limiter = limiter.unwrap();
        assert!(check(&limiter, subject).wait().unwrap().is_allowed());
        for (name, value) in [("tenant", "acme"), ("user", "alice")] {
            let blocked = tollgate::Override::new([(name, value)], "sends", "blocked").unwrap();
            limiter.set_override(blocked).wait().unwrap();
        }
        let is_named = matches!(subject, 7 | 9);
        let decision = check(&limiter, subject).wait().unwrap();
        assert_eq!(decision.is_denied(), is_named, "{subject}");
    }
}

/// A check of cost 0 changes no counter, whatever limit it is evaluated under. The path for several
/// checks once stored the state as converted to the other limit.
#[test]
fn check_of_cost_zero_changes_nothing() {
    for quotas in [
        &["10/hour, token-bucket"][..],
        &["10/hour, token-bucket", "99/day"],
    ] {
        let clock = ManualClock::new();
        let builder = Limiter::builder().clock(clock.clone());
        let builder = quotas
            .iter()
            .fold(builder, |builder, quota| builder.quota(*quota));
        let limiter = builder.build().unwrap();
        assert!(limiter.check("alice").cost(10).wait().unwrap().is_allowed());
        clock.advance(Duration::from_mins(30));
        for amount in [1_000, 1] {
            let free = limiter.check("alice").cost(0).limit(amount).wait().unwrap();
            assert_eq!(free.limit(), amount.min(free.limit()));
            assert_eq!(limiter.remaining("alice").wait().unwrap(), 5, "{quotas:?}");
        }
    }
}

/// A check of cost 0 under a larger limit does not make a denied subject a candidate for eviction.
#[test]
fn check_of_cost_zero_does_not_make_a_counter_evictable() {
    let store = MemoryStore::builder().capacity(512).build().unwrap();
    let limiter = Limiter::builder()
        .quota("10/hour")
        .store(store)
        .build()
        .unwrap();
    assert!(
        limiter
            .check("victim")
            .cost(10)
            .wait()
            .unwrap()
            .is_allowed()
    );
    let free = limiter.check("victim").cost(0).limit(1_000_000).wait();
    assert!(free.unwrap().is_allowed());
    for number in 0..5_000_u64 {
        let _ = limiter.check(number).cost(9).wait().unwrap();
    }
    assert!(limiter.check("victim").wait().unwrap().is_denied());
}
