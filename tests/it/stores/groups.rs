//! Decorators and batches with dry runs.

use tollgate::store::{DenyCache, Leased};
use tollgate::{Batch, Check, Group, MemoryStore, Store, Usage, Usages};

use super::{START, at, counter, user};

const DRY_RUN: Group = Group::DryRun(0);

fn decide(store: &dyn Store, checks: &[Check<'_>]) -> Usages {
    let batch = Batch::new(checks).unwrap();
    store.decide(&batch, at(START)).wait().unwrap()
}

fn used(store: &dyn Store, check: Check<'_>) -> u64 {
    let checks = [check];
    let batch = Batch::new(&checks).unwrap();
    let usages = store.peek(&batch, at(START)).wait().unwrap();
    usages.usages()[0].used()
}

#[test]
fn a_cached_denial_applies_to_the_whole_batch() {
    let store = DenyCache::new(MemoryStore::new());
    let alice = user("alice");
    let [live, dry_run] = ["live", "dry-run"].map(|rule| counter(rule, "2/hour"));
    let checks = [
        Check::new(&alice, &live).with_cost(2),
        Check::new(&alice, &dry_run).with_group(DRY_RUN),
    ];
    assert!(decide(&store, &checks).is_allowed());
    let denied = decide(&store, &checks);
    assert!(!denied.is_allowed());
    let counts: Vec<u64> = denied.usages().iter().map(Usage::used).collect();
    assert_eq!((counts, store.hits()), (vec![2, 1], 0));
    for hits in 1..=3 {
        assert_eq!(decide(&store, &checks), denied);
        assert_eq!(store.hits(), hits);
    }
    assert_eq!(used(&store, Check::new(&alice, &dry_run)), 1);
}

#[test]
fn an_allowed_request_with_a_denied_dry_run_is_not_cached() {
    let store = DenyCache::new(MemoryStore::new());
    let alice = user("alice");
    let (live, dry_run) = (counter("live", "5/hour"), counter("dry-run", "1/hour"));
    let checks = [
        Check::new(&alice, &live),
        Check::new(&alice, &dry_run).with_group(DRY_RUN),
    ];
    for number in 1..=5 {
        let usages = decide(&store, &checks);
        assert!(usages.is_allowed());
        assert_eq!(usages.usages()[0].used(), number);
        assert_eq!(usages.usages()[1].is_allowed(), number == 1);
    }
    assert_eq!(store.hits(), 0);
}

#[test]
fn requests_with_different_groups_are_cached_separately() {
    let store = DenyCache::new(MemoryStore::new());
    let alice = user("alice");
    let [one, other] = ["one", "other"].map(|rule| counter(rule, "1/hour"));
    let [of_one, of_other] = [&one, &other].map(|counter| Check::new(&alice, counter));
    assert!(decide(&store, &[of_one, of_other]).is_allowed());
    for group in [Group::Live, DRY_RUN, Group::DryRun(1)] {
        let checks = [of_one, of_other.with_group(group)];
        let hits = store.hits();
        assert!(!decide(&store, &checks).is_allowed());
        assert_eq!(store.hits(), hits, "{group:?}");
        assert!(!decide(&store, &checks).is_allowed());
        assert_eq!(store.hits(), hits + 1, "{group:?}");
    }
}

/// A charge to a dry run invalidates a denial of the same counter.
#[test]
fn a_charged_dry_run_invalidates_denials_of_its_subject() {
    let store = DenyCache::new(MemoryStore::new());
    let alice = user("alice");
    let (live, shared) = (counter("live", "9/hour"), counter("shared", "3/hour"));
    let large = [Check::new(&alice, &shared).with_cost(3)];
    assert!(decide(&store, &[Check::new(&alice, &shared)]).is_allowed());
    assert!(!decide(&store, &large).is_allowed());
    let both = [
        Check::new(&alice, &live),
        Check::new(&alice, &shared).with_group(DRY_RUN),
    ];
    assert!(decide(&store, &both).is_allowed());
    let denied = decide(&store, &large);
    assert_eq!((denied.usages()[0].used(), store.hits()), (2, 0));
}

#[test]
fn a_batch_with_a_dry_run_is_not_leased() {
    let leased = Leased::builder(MemoryStore::new()).block_size(64);
    let store = leased.build().unwrap();
    let alice = user("alice");
    let [live, dry_run] = ["live", "dry-run"].map(|rule| counter(rule, "1000/hour"));
    let checks = [
        Check::new(&alice, &live),
        Check::new(&alice, &dry_run).with_group(DRY_RUN),
    ];
    for number in 1..=100 {
        assert!(decide(&store, &checks).is_allowed());
        assert_eq!(used(&store, Check::new(&alice, &live)), number);
    }
}
