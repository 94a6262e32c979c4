//! Deny cache: which requests reach the store.

use std::time::Duration;

use tollgate::store::DenyCache;
use tollgate::{Batch, Check, Outcome, Override, Store as _, Subject, Usage};

use super::held::Held;
use super::{START, at, counter, take, user};
use crate::support::error_paths;
use crate::support::scripted_store::ScriptedStore;
use crate::support::store_ext::StoreExt as _;

const SECOND: u64 = 1_000_000;

type Invalidation<'a> = &'a dyn Fn(&DenyCache);

/// Cached denials have the usages that the store would return.
#[test]
fn repeated_denials_cause_no_store_calls() {
    let inner = ScriptedStore::default();
    let store = DenyCache::new(inner.clone());
    let (alice, hour) = (user("alice"), counter("rule", "3/hour"));
    let check = Check::new(&alice, &hour);
    for _ in 0..3 {
        assert!(take(&store, check, START).is_allowed());
    }
    let first = take(&store, check, START + 1);
    assert_eq!(inner.decisions(), 4);
    for step in 0..1_000 {
        let now = at(START + 2 + step);
        let (usage, when) = store.decide_one(&check, now).wait().unwrap();
        assert_eq!((usage, when), (first, now));
        assert_eq!((usage.outcome(), usage.remaining()), (Outcome::Denied, 0));
    }
    assert_eq!((inner.decisions(), store.hits()), (4, 1_000));
}

/// The denial expires because another process may have refunded.
#[test]
fn a_denial_expires_after_a_second() {
    let inner = ScriptedStore::default();
    let store = DenyCache::new(inner.clone());
    let (alice, hour) = (user("alice"), counter("rule", "1/hour"));
    let check = Check::new(&alice, &hour);
    take(&store, check, START);
    take(&store, check, START);
    // Refunds of another process do not change this cache.
    let refund = inner.refund(&Batch::new(&[check]).unwrap(), at(START), at(START));
    refund.wait().unwrap();
    assert!(!take(&store, check, START + SECOND - 1).is_allowed());
    assert_eq!(inner.decisions(), 2);
    assert!(take(&store, check, START + SECOND).is_allowed());
    assert_eq!(inner.decisions(), 3);
}

#[test]
fn a_denial_expires_when_the_request_is_allowed_again() {
    for quota in [
        "1/100ms, fixed-window",
        "1/100ms, sliding-window",
        "1/100ms, sliding-log",
        "1/100ms, sliding-buckets, buckets 4",
        "1/100ms, token-bucket",
    ] {
        let inner = ScriptedStore::default();
        let store = DenyCache::new(inner.clone());
        let (alice, counter) = (user("alice"), counter("rule", quota));
        let check = Check::new(&alice, &counter);
        take(&store, check, START);
        let reset = take(&store, check, START + 7).reset_at().as_micros();
        let before = inner.decisions();
        assert!(!take(&store, check, reset - 1).is_allowed(), "{quota}");
        assert_eq!(inner.decisions(), before, "{quota}");
        assert!(take(&store, check, reset).is_allowed(), "{quota}");
    }
}

#[test]
fn refunds_and_resets_invalidate_denials() {
    let (alice, hour) = (user("alice"), counter("rule", "1/hour"));
    let check = Check::new(&alice, &hour);
    let checks = [check];
    let batch = Batch::new(&checks).unwrap();
    let invalidations: [(&str, Invalidation<'_>); 4] = [
        ("refund", &|store| {
            store.refund(&batch, at(START), at(START)).wait().unwrap();
        }),
        ("reset", &|store| store.reset(&batch).wait().unwrap()),
        ("reset the subject", &|store| {
            store.reset_subject(&alice).wait().unwrap();
        }),
        ("clear", &|store| store.clear().wait().unwrap()),
    ];
    for (name, invalidate) in invalidations {
        let store = DenyCache::new(ScriptedStore::default());
        assert!(take(&store, check, START).is_allowed());
        for _ in 0..3 {
            assert!(!take(&store, check, START).is_allowed());
        }
        assert_eq!(store.hits(), 2);
        invalidate(&store);
        assert!(take(&store, check, START).is_allowed(), "{name}");
    }
}

/// The reset takes effect between the decision of the store and its reply.
#[test]
fn a_denial_that_was_decided_before_a_reset_is_not_cached() {
    let inner = Held::new();
    let store = DenyCache::new(inner.clone());
    let (alice, hour) = (user("alice"), counter("rule", "1/hour"));
    let check = Check::new(&alice, &hour);
    assert!(take(&store, check, START).is_allowed());
    inner.set_replying(false);
    let denied = store.decide_one(&check, at(START));
    store.clear().wait().unwrap();
    inner.set_replying(true);
    assert!(!denied.wait().unwrap().0.is_allowed());
    assert!(take(&store, check, START).is_allowed());
    assert_eq!(store.hits(), 0);
}

/// A denial is valid for one subject, counter, limit and cost.
#[test]
fn other_requests_reach_the_store() {
    let inner = ScriptedStore::default();
    let store = DenyCache::new(inner.clone());
    let (alice, hour) = (user("alice"), counter("rule", "5/hour"));
    let check = Check::new(&alice, &hour);
    take(&store, check.with_cost(4), START);
    for _ in 0..2 {
        assert!(!take(&store, check.with_cost(2), START).is_allowed());
    }
    assert_eq!(inner.decisions(), 2);
    // A smaller cost is allowed, and lengthens the wait of larger costs.
    assert!(take(&store, check, START).is_allowed());
    let denied = take(&store, check.with_cost(2), START);
    assert_eq!((denied.used(), inner.decisions()), (5, 4));
    // Another amount, as for another tier, after an override or a reload.
    let larger = hour.quota().with_amount(50).unwrap();
    assert!(take(&store, check.with_cost(2).with_quota(&larger), START).is_allowed());
    // A cost larger than the limit.
    let never = take(&store, check.with_cost(6), START);
    assert_eq!(never.outcome(), Outcome::ExceedsCapacity);
    // Another subject, another rule.
    let (bob, other) = (user("bob"), counter("other", "5/hour"));
    assert!(take(&store, Check::new(&bob, &hour), START).is_allowed());
    assert!(take(&store, Check::new(&alice, &other), START).is_allowed());
}

#[test]
fn a_changed_override_invalidates_all_denials() {
    let inner = ScriptedStore::default();
    let store = DenyCache::new(inner.clone());
    let (alice, hour) = (user("alice"), counter("rule", "1/hour"));
    let check = Check::new(&alice, &hour);
    take(&store, check, START);
    for _ in 0..3 {
        take(&store, check, START);
    }
    assert_eq!(inner.decisions(), 2);
    let new = Override::new([("tenant", "acme")], "rule", "9/hour").unwrap();
    store.set_override(new).wait().unwrap();
    take(&store, check, START);
    assert_eq!(inner.decisions(), 3);
    let acme = Subject::from([("tenant", "acme")]);
    assert!(store.remove_override(&acme, "rule").wait().unwrap());
    take(&store, check, START);
    assert_eq!(inner.decisions(), 4);
}

/// A denial is cached for the whole batch, because another check can have a longer wait.
#[test]
fn a_denial_is_cached_for_the_whole_batch() {
    let inner = ScriptedStore::default();
    let store = DenyCache::new(inner.clone());
    let (alice, bob, acme) = (
        user("alice"),
        user("bob"),
        Subject::from([("tenant", "acme")]),
    );
    let (mine, ours) = (counter("mine", "5/minute"), counter("ours", "1/hour"));
    let of_alice = [Check::new(&alice, &mine), Check::new(&acme, &ours)];
    let of_bob = [Check::new(&bob, &mine), Check::new(&acme, &ours)];
    let [of_alice, of_bob] = [&of_alice, &of_bob].map(|checks| Batch::new(checks).unwrap());
    assert!(
        store
            .decide(&of_alice, at(START))
            .wait()
            .unwrap()
            .is_allowed()
    );
    for (batch, decisions) in [(&of_alice, 2), (&of_alice, 2), (&of_bob, 3), (&of_bob, 3)] {
        let denied = store.decide(batch, at(START + 5)).wait().unwrap();
        let used: Vec<u64> = denied.usages().iter().map(Usage::used).collect();
        let own = u64::from(decisions == 2);
        assert_eq!((used, denied.is_allowed()), (vec![own, 1], false));
        assert_eq!(inner.decisions(), decisions);
    }
    // A charge to a check that is not exhausted invalidates nothing. A reset of the denied check does.
    take(&store, Check::new(&alice, &mine), START + 6);
    let _ = store.decide(&of_alice, at(START + 7)).wait().unwrap();
    assert_eq!(inner.decisions(), 4);
    store.reset_subject(&acme).wait().unwrap();
    assert!(
        store
            .decide(&of_bob, at(START + 8))
            .wait()
            .unwrap()
            .is_allowed()
    );
}

/// `used` of a counter that is over its limit decreases while it denies.
#[test]
fn a_denial_with_decreasing_usage_expires_after_10_ms() {
    let inner = ScriptedStore::default();
    let store = DenyCache::new(inner.clone());
    let (alice, minute) = (user("alice"), counter("rule", "60/minute, token-bucket"));
    let check = Check::new(&alice, &minute);
    let debt = [check.with_cost(80)];
    let debt = Batch::new(&debt).unwrap();
    let _ = store.record(&debt, at(START)).wait().unwrap();
    let denied = take(&store, check, START);
    assert_eq!((denied.used(), denied.remaining()), (80, 0));
    for now in [START, START + 5_000, START + 9_999] {
        assert_eq!(take(&store, check, now).reset_at(), denied.reset_at());
    }
    assert_eq!(inner.decisions(), 1);
    take(&store, check, START + 10_000);
    assert_eq!(inner.decisions(), 2);
    assert_eq!(take(&store, check, START + 2 * SECOND).used(), 78);
}

#[test]
fn no_more_denials_than_the_capacity_are_cached() {
    let inner = ScriptedStore::default();
    let store = DenyCache::builder(inner.clone())
        .capacity(100)
        .build()
        .unwrap();
    let hour = counter("rule", "1/hour");
    for round in 0..2 {
        for number in 0..10_000_u64 {
            let subject = Subject::from(number);
            let allowed = take(&store, Check::new(&subject, &hour), START).is_allowed();
            assert_eq!(allowed, round == 0);
        }
    }
    let shown = format!("{store:?}");
    let kept = shown.split("denials: ").nth(1).unwrap();
    let kept: usize = kept.split(',').next().unwrap().parse().unwrap();
    assert!((1..=128).contains(&kept), "{shown}");
}

#[test]
fn invalid_settings_are_rejected() {
    let new = || DenyCache::builder(ScriptedStore::default());
    for wrong in [Duration::ZERO, Duration::from_secs(61)] {
        let errors = new().capacity(0).max_ttl(wrong).build().unwrap_err();
        assert_eq!(error_paths(&errors), ["capacity", "max_ttl"]);
    }
}
