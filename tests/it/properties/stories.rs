//! Bugs that the properties have found.

use tollgate::{
    Batch, Check, Counter, Group, MemoryStore, Outcome, Quota, Store, Subject, Timestamp, Usages,
};

use super::counters::{Counts, Plain};
use super::traces::NEW_YEAR;
use crate::reference::Reference;
use crate::support::store_ext::StoreExt as _;

const SECOND: u64 = 1_000_000;

/// A bucket that is almost full is charged just before a tick. The tick then refilled it in full,
/// although a full bucket would have lost almost all of that refill: within a microsecond the burst
/// and another million permits were admitted.
#[test]
fn a_bucket_that_is_almost_full_gains_nothing_from_the_running_tick() {
    let quota: Quota = "4_000_000_000/1h, token-bucket".parse().unwrap();
    assert_eq!(quota.tick().as_secs(), 1);
    let mut bucket = Plain::new(&quota);
    let (before_tick, tick) = (NEW_YEAR + SECOND - 1, NEW_YEAR + SECOND);
    bucket.decide(&quota, NEW_YEAR, 1);
    let burst = bucket.decide(&quota, before_tick, quota.burst() - 1);
    assert_eq!(burst.outcome, Outcome::Allowed);

    // In that microsecond it refills slightly more than one permit; one was missing before.
    assert_eq!(bucket.decide(&quota, tick, 2).outcome, Outcome::Denied);
    // A tick later it has refilled the amount of a whole tick.
    let a_tick = quota.amount() / 3_600;
    let next = bucket.decide(&quota, tick + SECOND, a_tick - 1);
    assert_eq!(next.outcome, Outcome::Allowed);
}

/// A debt under a large amount, evaluated under a small one with finer ticks. It exceeded what those
/// ticks can count, so later charges had no effect and every request was admitted.
#[test]
fn debt_is_kept_under_an_amount_with_other_ticks() {
    let large: Quota = "6255004/90s, token-bucket".parse().unwrap();
    let small = large.with_amount(625_500).unwrap();
    assert!(small.tick() < large.tick());
    let mut bucket = Plain::new(&large);
    bucket.decide(&large, NEW_YEAR, large.burst());
    let denied = bucket.decide(&small, NEW_YEAR, small.burst());
    assert_eq!(denied.outcome, Outcome::Denied);
    assert_eq!(denied.used, large.burst());

    let all = bucket.decide(&small, denied.reset_at, small.burst());
    assert_eq!(all.outcome, Outcome::Allowed);
    let more = bucket.decide(&small, denied.reset_at, 1);
    assert_eq!(more.outcome, Outcome::Denied);
}

/// A bucket that had left the window, but not yet the ring, still used capacity of the counter: the
/// next charges were admitted and not counted.
#[test]
fn expired_bucket_uses_no_capacity() {
    let quota: Quota = "9007199254740991/1us, sliding-buckets".parse().unwrap();
    let mut buckets = Plain::new(&quota);
    for now in [NEW_YEAR, NEW_YEAR + 1, NEW_YEAR + 2] {
        let all = buckets.decide(&quota, now, quota.amount());
        assert_eq!(all.outcome, Outcome::Allowed);
        let more = buckets.decide(&quota, now, 1);
        assert_eq!(more.outcome, Outcome::Denied);
    }
}

/// Two subjects of one batch used the same overflow counter: each was evaluated without the other, and
/// the second overwrote the first.
#[test]
fn two_subjects_of_a_batch_use_two_overflow_counters() {
    let (store, counter) = full_store();
    let [alice, bob] = ["alice", "bob"].map(Subject::from);
    let checks = [
        Check::new(&alice, &counter),
        Check::new(&bob, &counter).with_cost(3),
    ];
    let batch = Batch::new(&checks).unwrap();

    let first = store.decide(&batch, now()).wait().unwrap();
    assert!(first.is_allowed());
    assert_eq!(used(&first), [1, 3]);
    let second = store.decide(&batch, now()).wait().unwrap();
    assert!(!second.is_allowed(), "three and three are more than four");
    assert_eq!(used(&second), [1, 3]);
    assert_eq!(
        store.len().wait().unwrap(),
        3,
        "the first counter and two overflow counters"
    );
}

/// In a full store, a peek returned the usage of a new counter instead of the overflow counter.
#[test]
fn peek_reads_the_overflow_counter() {
    let (store, counter) = full_store();
    let decide = |name| {
        let subject = Subject::from(name);
        let checks = [Check::new(&subject, &counter).with_cost(4)];
        let batch = Batch::new(&checks).unwrap();
        let foretold = store.peek(&batch, now()).wait().unwrap();
        let usages = store.decide(&batch, now()).wait().unwrap();
        assert_eq!(foretold.is_allowed(), usages.is_allowed(), "{name}");
        usages.is_allowed()
    };
    assert!(decide("alice"));
    assert!(!decide("bob"), "alice has used up the overflow counter");
}

fn now() -> Timestamp {
    Timestamp::from_micros(NEW_YEAR)
}

fn used(usages: &Usages) -> Vec<u64> {
    usages.usages().iter().map(tollgate::Usage::used).collect()
}

/// A store with capacity for one counter, which is used up.
fn full_store() -> (MemoryStore, Counter) {
    let store = MemoryStore::builder().capacity(1).build().unwrap();
    let counter = Counter::new("rule", "4/hour, fixed-window".parse().unwrap()).unwrap();
    let first = Subject::from("first");
    let checks = [Check::new(&first, &counter).with_cost(4)];
    let batch = Batch::new(&checks).unwrap();
    assert!(store.decide(&batch, now()).wait().unwrap().is_allowed());
    (store, counter)
}

/// A million permits are recorded under a small amount, on top of a debt that is counted in the
/// ticks of a large one. Their weight did not fit into 64 bits and was cut off before it was turned
/// into those ticks: a little more than half of it was counted.
#[test]
fn a_large_charge_counts_in_full_in_any_ticks() {
    let large: Quota = "22295457/3653d, token-bucket".parse().unwrap();
    let small = large.with_amount(1).unwrap();
    let mut bucket = Plain::new(&large);
    bucket.record(&large, NEW_YEAR, 1_000);
    bucket.record(&small, NEW_YEAR, 1_000_000);
    assert_eq!(bucket.peek(&large, NEW_YEAR, 0).used, 1_001_000);
}

/// A refund of almost the largest count after two centuries. Neither the amount refilled since nor
/// the refund fit into 64 bits: both saturated at the same number, and the refund had no effect.
#[test]
fn late_refund_does_not_saturate() {
    let quota: Quota = "4294967297/1h, token-bucket".parse().unwrap();
    let last = Timestamp::MAX.as_micros();
    let mut bucket = Plain::new(&quota);
    let mut reference = Reference::default();
    for counter in [&mut bucket as &mut dyn Counts, &mut reference] {
        counter.record(&quota, last, 1);
        counter.refund(&quota, NEW_YEAR, last, (1 << 53) - 1);
    }
    let result = bucket.peek(&quota, last, 1);
    assert_eq!(result, reference.peek(&quota, last, 1));
    assert_eq!(result.used, 0);
}

/// If room were reserved for the missing counters only, growing the table would drop the twelve expired
/// ones of the same batch, and the search for a free cell would not end.
#[test]
fn batch_of_expired_and_missing_counters_finds_room() {
    let store = MemoryStore::builder().capacity(600).build().unwrap();
    let counters: Vec<Counter> = (0..24)
        .map(|number| Counter::new(&format!("rule-{number}"), "5/second".parse().unwrap()).unwrap())
        .collect();
    let subject = Subject::from("alice");
    let groups = [Group::Live, Group::DryRun(0), Group::DryRun(1)];
    let checks: Vec<Check<'_>> = counters
        .iter()
        .zip(0..)
        .map(|(counter, index)| Check::new(&subject, counter).with_group(groups[index / 8]))
        .collect();
    for (checks, seconds) in [(&checks[..12], 0), (&checks[..], 10)] {
        let batch = Batch::new(checks).unwrap();
        let at = Timestamp::from_micros(NEW_YEAR + seconds * SECOND);
        let usages = store.decide(&batch, at).wait().unwrap();
        assert!(used(&usages).iter().all(|used| *used == 1));
    }
    assert_eq!(store.len().wait().unwrap(), 24);
}
