//! Floods of new keys against a bounded store.

use std::time::Duration;

use tollgate::{
    Batch, Check, Counter, Limiter, ManualClock, MemoryStore, Quota, Store, Subject, Timestamp,
};

use crate::support::store_ext::StoreExt as _;

fn decide(
    store: &MemoryStore,
    subject: &Subject<'_>,
    counter: &Counter,
    cost: u64,
    now: Timestamp,
) -> bool {
    let checks = [Check::new(subject, counter).with_cost(cost)];
    let batch = Batch::new(&checks).unwrap();
    store.decide(&batch, now).wait().unwrap().is_allowed()
}

fn used(store: &MemoryStore, subject: &Subject<'_>, counter: &Counter, now: Timestamp) -> u64 {
    let checks = [Check::new(subject, counter)];
    let batch = Batch::new(&checks).unwrap();
    store.peek(&batch, now).wait().unwrap().usages()[0].used()
}

/// 1,000 blocked callers and 1,000 that have used half keep their counters during a flood of 50 times
/// the capacity.
#[test]
fn flood_resets_neither_blocked_nor_half_used_counters() {
    const CAPACITY: usize = 20_000;
    let store = MemoryStore::builder().capacity(CAPACITY).build().unwrap();
    let counter = Counter::new("flood", Quota::per_hour(10).unwrap()).unwrap();
    let now = Timestamp::from_secs(1_735_689_600);
    let blocked = |number: u64| Subject::from(("blocked", number));
    let halfway = |number: u64| Subject::from(("halfway", number));
    for number in 0..1_000_u64 {
        assert!(decide(&store, &blocked(number), &counter, 10, now));
        for _ in 0..5 {
            assert!(decide(&store, &halfway(number), &counter, 1, now));
        }
    }
    for number in 0..50 * CAPACITY as u64 {
        assert!(decide(
            &store,
            &Subject::from(("flood", number)),
            &counter,
            1,
            now
        ));
        assert!(store.len().wait().unwrap() <= CAPACITY);
    }
    assert!(store.evicted() > 0);
    assert_eq!(store.overflowed(), 0);
    for number in 0..1_000 {
        assert_eq!(used(&store, &blocked(number), &counter, now), 10);
        assert_eq!(used(&store, &halfway(number), &counter, now), 5);
    }
    // Blocked until the reset, and not longer.
    let reset = now.saturating_add(Duration::from_hours(2));
    assert_eq!(used(&store, &blocked(0), &counter, reset), 0);
}

/// All counters of the only shard are blocked: new keys share one overflow counter until the blocks
/// end.
#[test]
fn new_keys_share_an_overflow_counter_if_all_counters_are_blocked() {
    const CAPACITY: u64 = 500;
    let store = MemoryStore::builder().capacity(500).build().unwrap();
    let counter = Counter::new("full", Quota::per_hour(10).unwrap()).unwrap();
    let now = Timestamp::from_secs(1_735_689_600);
    for number in 0..CAPACITY {
        assert!(decide(
            &store,
            &Subject::from(("blocked", number)),
            &counter,
            10,
            now
        ));
    }
    let admitted = (0..500_u64)
        .filter(|number| decide(&store, &Subject::from(("new", *number)), &counter, 1, now))
        .count();
    assert_eq!(admitted, 10);
    assert_eq!(store.overflowed(), 500);
    assert_eq!(store.evicted(), 0);
    for number in 0..CAPACITY {
        assert!(!decide(
            &store,
            &Subject::from(("blocked", number)),
            &counter,
            1,
            now
        ));
    }
    let reset = now.saturating_add(Duration::from_hours(2));
    for number in 0..CAPACITY {
        assert!(decide(
            &store,
            &Subject::from(("new", number)),
            &counter,
            10,
            reset
        ));
    }
    assert_eq!(store.overflowed(), 500);
}

/// Both checks of the batch use overflow counters. Each rule has its own.
#[test]
fn batch_on_overflow_counters_is_all_or_nothing() {
    let store = MemoryStore::builder().capacity(2).build().unwrap();
    let [one, two] =
        ["one", "two"].map(|rule| Counter::new(rule, Quota::per_hour(3).unwrap()).unwrap());
    let now = Timestamp::from_secs(1_735_689_600);
    for number in 0..2_u64 {
        assert!(decide(
            &store,
            &Subject::from(("blocked", number)),
            &one,
            3,
            now
        ));
    }
    let mut admitted = 0;
    for number in 0..10_u64 {
        let subject = Subject::from(number);
        let checks = [Check::new(&subject, &one), Check::new(&subject, &two)];
        let batch = Batch::new(&checks).unwrap();
        admitted += u64::from(store.decide(&batch, now).wait().unwrap().is_allowed());
    }
    assert_eq!(admitted, 3);
}

/// Requests of other callers sweep the counters of a flood.
#[test]
fn store_shrinks_after_a_flood() {
    let clock = ManualClock::new();
    let store = MemoryStore::new();
    let limiter = Limiter::builder()
        .quota("5/second")
        .store(store)
        .clock(clock.clone())
        .build()
        .unwrap();
    for number in 0..100_000_u64 {
        let _ = limiter.check(number).wait().unwrap();
    }
    assert_eq!(limiter.len().wait().unwrap(), 100_000);
    clock.advance(Duration::from_mins(1));
    for round in 0..3_000_000_u64 {
        let _ = limiter.check(round % 200).wait().unwrap();
    }
    assert_eq!(limiter.len().wait().unwrap(), 200);
}

/// A denial protects a counter, also if it is used up only under a lower limit.
#[test]
fn flood_does_not_free_a_caller_that_a_lower_limit_blocks() {
    let store = MemoryStore::builder().capacity(500).build().unwrap();
    let counter = Counter::new("lower", Quota::per_hour(1_000).unwrap()).unwrap();
    let lower = Quota::per_hour(10).unwrap();
    let now = Timestamp::from_secs(1_735_689_600);
    let alice = Subject::from("alice");
    let call = || {
        let check = Check::new(&alice, &counter).with_quota(&lower);
        store.decide_one(&check, now).wait().unwrap().0
    };
    assert!(decide(&store, &alice, &counter, 10, now));
    assert!(!call().is_allowed());
    for number in 0..5_000_u64 {
        assert!(decide(&store, &Subject::from(number), &counter, 16, now));
    }
    assert!(!call().is_allowed());
    assert_eq!(call().used(), 10);
}

const NOW: Timestamp = Timestamp::from_secs(1_735_689_600);

fn counter(rule: &str, limit: u64) -> Counter {
    Counter::new(rule, Quota::per_hour(limit).unwrap()).unwrap()
}

/// Bug: eviction compared shares of the limit across rules. A counter with one request left was evicted
/// for counters of another rule that are used up after one request.
#[test]
fn counter_at_999_of_1000_is_kept_during_a_flood_of_another_rule() {
    let store = MemoryStore::builder().capacity(500).build().unwrap();
    let (large, single) = (counter("large", 1_000), counter("single", 1));
    let alice = Subject::from("alice");
    for _ in 0..999 {
        assert!(decide(&store, &alice, &large, 1, NOW));
    }
    for number in 0..5_000_u64 {
        decide(&store, &Subject::from(number), &single, 1, NOW);
    }
    assert_eq!(used(&store, &alice, &large, NOW), 999);
}

/// Bug: only a counter that was used up was marked by a denial. A caller with too little left for an
/// expensive request was evicted.
#[test]
fn caller_denied_at_8_of_10_with_cost_4_is_kept_during_a_flood() {
    let store = MemoryStore::builder().capacity(500).build().unwrap();
    let counter = counter("expensive", 10);
    let alice = Subject::from("alice");
    assert!(decide(&store, &alice, &counter, 8, NOW));
    assert!(!decide(&store, &alice, &counter, 4, NOW));
    for number in 0..5_000_u64 {
        decide(&store, &Subject::from(number), &counter, 9, NOW);
    }
    assert_eq!(used(&store, &alice, &counter, NOW), 8);
}

/// Bug: one request of a rule with a small limit had a higher rank than several requests of a rule with
/// a large limit.
#[test]
fn counters_with_some_usage_are_kept_during_a_flood_of_keys_seen_once() {
    let store = MemoryStore::builder().capacity(2_000).build().unwrap();
    let (large, small) = (counter("large", 100), counter("small", 5));
    let caller = |number: u64| Subject::from(("caller", number));
    for number in 0..500 {
        for _ in 0..2 {
            assert!(decide(&store, &caller(number), &large, 1, NOW));
        }
    }
    for number in 0..40_000_u64 {
        assert!(decide(&store, &Subject::from(number), &small, 1, NOW));
    }
    assert_eq!(store.overflowed(), 0);
    let kept = (0..500).filter(|number| used(&store, &caller(*number), &large, NOW) == 2);
    assert_eq!(kept.count(), 500);
}

/// A request that costs more than half of what is used does not make a protected counter evictable.
#[test]
fn expensive_request_does_not_end_protection() {
    let store = MemoryStore::builder().capacity(500).build().unwrap();
    let counter = counter("mixed", 1_000);
    let alice = Subject::from("alice");
    for _ in 0..400 {
        assert!(decide(&store, &alice, &counter, 1, NOW));
    }
    assert!(decide(&store, &alice, &counter, 500, NOW));
    for number in 0..5_000_u64 {
        decide(&store, &Subject::from(number), &counter, 1, NOW);
    }
    assert_eq!(used(&store, &alice, &counter, NOW), 900);
}
