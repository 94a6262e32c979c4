//! There are short ways through a limiter for what is asked most. All of them lead to the same
//! place.

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

/// Whom a limiter is asked about.
fn ask(limiter: &Limiter, whom: usize) -> CheckBuilder<'_> {
    let v4 = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));
    match whom {
        0 => limiter.check("alice"),
        1 => limiter.check("a much longer name than those that fit into a few words"),
        2 => limiter.check(""),
        3 => limiter.check(v4),
        // The same address, written otherwise.
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
    fn all_ways_lead_to_the_same_place(
        quota in prop::sample::select(&QUOTAS[..]),
        steps in vec((0..10_usize, 0..4_u64, 0..3_000_000_u64, any::<bool>()), 1..60),
    ) {
        let clock = ManualClock::new();
        let limiter = || Limiter::builder().quota(quota).clock(clock.clone());
        let short = limiter().build().unwrap();
        let awaited = limiter().build().unwrap();
        let long = limiter().store(ScriptedStore::default()).build().unwrap();
        for (whom, cost, micros, stays) in steps {
            if !stays {
                clock.advance(Duration::from_micros(micros));
            }
            let said: Decision = ask(&short, whom).cost(cost).wait().unwrap();
            let answer = ask(&awaited, whom).cost(cost).into_future();
            prop_assert_eq!(&answer.wait().unwrap(), &said, "{} for {}", quota, whom);
            prop_assert_eq!(&ask(&long, whom).cost(cost).wait().unwrap(), &said);
        }
    }
}

/// What is set at run time holds on the short ways, too.
#[test]
fn an_override_holds_on_every_way() {
    for whom in 0..10 {
        let limiter = Limiter::builder().quota("2/hour").name("sends").build();
        let limiter = limiter.unwrap();
        assert!(ask(&limiter, whom).wait().unwrap().is_allowed());
        for (name, value) in [("tenant", "acme"), ("user", "alice")] {
            let blocked = tollgate::Override::new([(name, value)], "sends", "blocked").unwrap();
            limiter.set_override(blocked).wait().unwrap();
        }
        let is_named = matches!(whom, 7 | 9);
        let decision = ask(&limiter, whom).wait().unwrap();
        assert_eq!(decision.is_denied(), is_named, "{whom}");
    }
}

/// A question that costs nothing leaves nothing behind, whatever limit it is put under. On the way
/// for several checks, what was asked about was once written back as the other limit saw it.
#[test]
fn a_question_leaves_no_trace() {
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
            let asked = limiter.check("alice").cost(0).limit(amount).wait().unwrap();
            assert_eq!(asked.limit(), amount.min(asked.limit()));
            assert_eq!(limiter.remaining("alice").wait().unwrap(), 5, "{quotas:?}");
        }
    }
}

/// Also who is blocked stays blocked, and is not for others to push out.
#[test]
fn a_question_makes_nobody_dispensable() {
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
    let asked = limiter.check("victim").cost(0).limit(1_000_000).wait();
    assert!(asked.unwrap().is_allowed());
    for number in 0..5_000_u64 {
        let _ = limiter.check(number).cost(9).wait().unwrap();
    }
    assert!(limiter.check("victim").wait().unwrap().is_denied());
}
