//! Promises about limits that are set at run time. A store may keep none.

use super::bench::{Bench, FIVE_A_MINUTE, MINUTE, START, counter, user};
use crate::batch::Check;
use crate::clock::Timestamp;
use crate::key::Subject;
use crate::store::Override;

/// Sets one. Says whether the store keeps them at all.
async fn set(bench: &Bench, new: &Override) -> bool {
    let Some(overrides) = bench.store.overrides() else {
        return false;
    };
    let set = overrides.set(new.clone()).await;
    set.expect("OverrideStore::set must not fail");
    true
}

async fn remove(bench: &Bench, subject: &Subject<'_>, rule: &str) -> bool {
    let Some(overrides) = bench.store.overrides() else {
        return false;
    };
    let removed = overrides.remove(subject, rule).await;
    removed.expect("OverrideStore::remove must not fail")
}

/// Fails the suite if others apply than these.
#[track_caller]
fn applying(bench: &Bench, what: &str, at: u64, wanted: &[&Override]) {
    let known = bench.store.overrides();
    let found = known.map(|known| known.table().list(Timestamp::from_micros(at)));
    let found = found.unwrap_or_default();
    bench.same(what, found.len(), wanted.len());
    for one in wanted {
        bench.same(what, found.contains(one), true);
    }
}

fn new(name: &str, rule: &str, quota: &str) -> Override {
    Override::new(user(name), rule, quota).expect("the suite's overrides are right")
}

pub(super) async fn keeps_the_overrides_that_were_set(bench: &Bench) {
    let all = [
        new("alice", "one", "7/minute"),
        new("alice", "two", "blocked"),
        new("bob", "one", "unlimited"),
        new("bob", "two", "50/minute, token-bucket, burst 20"),
        Override::new(
            [("group", "a b"), ("user", "ü=:%")],
            "one",
            "9/month, fixed-window",
        )
        .expect("the suite's overrides are right")
        .until(Timestamp::from_micros(START + MINUTE)),
    ];
    applying(bench, "a new store", START, &[]);
    for one in &all {
        if !set(bench, one).await {
            return;
        }
    }
    let all: Vec<&Override> = all.iter().collect();
    applying(bench, "as they were set", START, &all);
}

pub(super) async fn replaces_an_override_by_one_for_the_same(bench: &Bench) {
    let (before, after) = (
        new("alice", "one", "7/minute"),
        new("alice", "one", "70/minute"),
    );
    let another_window = new("alice", "one", "700/hour");
    for one in [&before, &another_window, &after] {
        if !set(bench, one).await {
            return;
        }
    }
    applying(bench, "one per window", START, &[&after, &another_window]);
    let blocked = new("alice", "one", "blocked");
    set(bench, &blocked).await;
    applying(bench, "`blocked` is for all of them", START, &[&blocked]);
    set(bench, &before).await;
    applying(bench, "and is replaced by any", START, &[&before]);
}

pub(super) async fn forgets_an_override_when_it_is_over(bench: &Bench) {
    let ends = START + 10 * MINUTE;
    let for_a_while = new("alice", "one", "7/minute").until(Timestamp::from_micros(ends));
    let for_good = new("bob", "one", "7/minute");
    for one in [&for_a_while, &for_good] {
        if !set(bench, one).await {
            return;
        }
    }
    applying(bench, "before", ends - 1, &[&for_a_while, &for_good]);
    applying(bench, "from then on", ends, &[&for_good]);
}

pub(super) async fn removes_the_overrides_of_a_subject_under_a_rule(bench: &Bench) {
    let (minute, hour) = (
        new("alice", "one", "7/minute"),
        new("alice", "one", "70/hour"),
    );
    let others = [
        new("alice", "two", "7/minute"),
        new("bob", "one", "7/minute"),
    ];
    let [other_rule, other_subject] = &others;
    for one in [&minute, &hour, other_rule, other_subject] {
        if !set(bench, one).await {
            let removed = remove(bench, &user("alice"), "one").await;
            bench.same("a store that keeps none", removed, false);
            return;
        }
    }
    let alice = user("alice");
    bench.same("there", remove(bench, &alice, "one").await, true);
    bench.same("gone", remove(bench, &alice, "one").await, false);
    bench.same(
        "never there",
        remove(bench, &user("carol"), "one").await,
        false,
    );
    applying(bench, "the others", START, &[other_rule, other_subject]);
}

pub(super) async fn keeps_overrides_when_counters_are_forgotten(bench: &Bench) {
    let one = new("alice", "keep", "7/minute");
    if !set(bench, &one).await {
        return;
    }
    let alice = user("alice");
    let counters = FIVE_A_MINUTE.map(|text| counter("keep", text));
    for counter in &counters {
        bench.take(Check::new(&alice, counter), START).await;
    }
    let reset = bench.admin().reset_subject(&alice).await;
    reset.expect("reset_subject must not fail");
    applying(bench, "after a reset", START, &[&one]);
    bench.admin().clear().await.expect("clear must not fail");
    applying(bench, "after clearing", START, &[&one]);
    bench.same("they are no counters", bench.len().await, 0);
}
