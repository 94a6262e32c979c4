//! Random keys by the million against a bounded store.

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

/// A thousand users who are blocked, and a thousand who have used half, live through a flood
/// of keys fifty times the capacity.
#[test]
fn a_flood_frees_nobody_and_resets_nobody() {
    const CAPACITY: usize = 20_000;
    let store = MemoryStore::builder().capacity(CAPACITY).build().unwrap();
    let counter = Counter::new("flood", Quota::per_hour(10).unwrap()).unwrap();
    let now = Timestamp::from_secs(1_735_689_600);
    let blocked = |number: u64| Subject::from(("blocked", number));
    let halfway = |number: u64| Subject::from(("halfway", number));
    for number in 0..1_000_u64 {
        assert!(decide(&store, &blocked(number), &counter, 10, now));
        assert!(decide(&store, &halfway(number), &counter, 5, now));
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
    // Blocked until the reset and not longer, by the usual rules.
    let reset = now.saturating_add(Duration::from_hours(2));
    assert_eq!(used(&store, &blocked(0), &counter, reset), 0);
}

/// Everything in the store is blocked: newcomers share one counter, so ten of them get in and
/// not ten each; nobody who is blocked is freed; when the blocks end, all is as before.
#[test]
fn full_of_blocked_keys_newcomers_share_a_counter() {
    const CAPACITY: u64 = 2_000;
    let store = MemoryStore::builder().capacity(2_000).build().unwrap();
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

/// A batch whose newcomers find no place must not leave half of itself behind.
#[test]
fn a_batch_without_room_is_still_all_or_nothing() {
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
    // Both checks fall on their shared counters; each name has its own.
    let mut admitted = 0;
    for number in 0..10_u64 {
        let subject = Subject::from(number);
        let checks = [Check::new(&subject, &one), Check::new(&subject, &two)];
        let batch = Batch::new(&checks).unwrap();
        admitted += u64::from(store.decide(&batch, now).wait().unwrap().is_allowed());
    }
    assert_eq!(admitted, 3);
}

/// Memory that a flood has taken is given back once it has passed, by nothing but the calls
/// of others.
#[test]
fn a_store_that_was_flooded_shrinks_by_itself() {
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

/// Whoever is blocked only because the limit was lowered is as safe from a flood as others.
#[test]
fn a_flood_does_not_free_those_who_a_lower_limit_blocks() {
    let store = MemoryStore::builder().capacity(500).build().unwrap();
    let counter = Counter::new("lower", Quota::per_hour(1_000).unwrap()).unwrap();
    let lower = Quota::per_hour(10).unwrap();
    let now = Timestamp::from_secs(1_735_689_600);
    let alice = Subject::from("alice");
    let ask = || {
        let check = Check::new(&alice, &counter).with_quota(&lower);
        store.decide_one(&check, now).wait().unwrap().0
    };
    assert!(decide(&store, &alice, &counter, 10, now));
    assert!(!ask().is_allowed());
    for number in 0..5_000_u64 {
        assert!(decide(&store, &Subject::from(number), &counter, 16, now));
    }
    assert!(!ask().is_allowed());
    assert_eq!(ask().used(), 10);
}
