//! Properties of overrides. A store may have none.

use super::harness::{FIVE_A_MINUTE, Harness, MINUTE, START, counter, user};
use crate::batch::Check;
use crate::clock::Timestamp;
use crate::key::Subject;
use crate::store::Override;

/// Sets an override. Returns whether the store has overrides.
async fn set(harness: &Harness, new: &Override) -> bool {
    let Some(overrides) = harness.store.overrides() else {
        return false;
    };
    let set = overrides.set(new.clone()).await;
    set.expect("OverrideStore::set must not fail");
    true
}

async fn remove(harness: &Harness, subject: &Subject<'_>, rule: &str) -> bool {
    let Some(overrides) = harness.store.overrides() else {
        return false;
    };
    let removed = overrides.remove(subject, rule).await;
    removed.expect("OverrideStore::remove must not fail")
}

/// Panics if the store has other overrides than these.
#[track_caller]
fn applying(harness: &Harness, what: &str, at: u64, wanted: &[&Override]) {
    let known = harness.store.overrides();
    let found = known.map(|known| known.table().list(Timestamp::from_micros(at)));
    let found = found.unwrap_or_default();
    harness.same(what, found.len(), wanted.len());
    for one in wanted {
        harness.same(what, found.contains(one), true);
    }
}

fn new(name: &str, rule: &str, quota: &str) -> Override {
    Override::new(user(name), rule, quota).expect("the suite's overrides are right")
}

pub(super) async fn keeps_the_overrides_that_were_set(harness: &Harness) {
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
    applying(harness, "a new store", START, &[]);
    for one in &all {
        if !set(harness, one).await {
            return;
        }
    }
    let all: Vec<&Override> = all.iter().collect();
    applying(harness, "as they were set", START, &all);
}

pub(super) async fn replaces_an_override_of_the_same_subject_and_rule(harness: &Harness) {
    let (before, after) = (
        new("alice", "one", "7/minute"),
        new("alice", "one", "70/minute"),
    );
    let another_window = new("alice", "one", "700/hour");
    for one in [&before, &another_window, &after] {
        if !set(harness, one).await {
            return;
        }
    }
    applying(harness, "one per window", START, &[&after, &another_window]);
    let blocked = new("alice", "one", "blocked");
    set(harness, &blocked).await;
    applying(harness, "`blocked` is for all of them", START, &[&blocked]);
    set(harness, &before).await;
    applying(harness, "and is replaced by any", START, &[&before]);
}

pub(super) async fn removes_expired_overrides(harness: &Harness) {
    let ends = START + 10 * MINUTE;
    let for_a_while = new("alice", "one", "7/minute").until(Timestamp::from_micros(ends));
    let for_good = new("bob", "one", "7/minute");
    for one in [&for_a_while, &for_good] {
        if !set(harness, one).await {
            return;
        }
    }
    applying(harness, "before", ends - 1, &[&for_a_while, &for_good]);
    applying(harness, "from then on", ends, &[&for_good]);
}

pub(super) async fn removes_the_overrides_of_a_subject_under_a_rule(harness: &Harness) {
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
        if !set(harness, one).await {
            let removed = remove(harness, &user("alice"), "one").await;
            harness.same("a store that keeps none", removed, false);
            return;
        }
    }
    let alice = user("alice");
    harness.same("there", remove(harness, &alice, "one").await, true);
    harness.same("gone", remove(harness, &alice, "one").await, false);
    harness.same(
        "never there",
        remove(harness, &user("carol"), "one").await,
        false,
    );
    applying(harness, "the others", START, &[other_rule, other_subject]);
}

pub(super) async fn reset_and_clear_keep_overrides(harness: &Harness) {
    let one = new("alice", "keep", "7/minute");
    if !set(harness, &one).await {
        return;
    }
    let alice = user("alice");
    let counters = FIVE_A_MINUTE.map(|text| counter("keep", text));
    for counter in &counters {
        harness.take(Check::new(&alice, counter), START).await;
    }
    let reset = harness.admin().reset_subject(&alice).await;
    reset.expect("reset_subject must not fail");
    applying(harness, "after a reset", START, &[&one]);
    harness.admin().clear().await.expect("clear must not fail");
    applying(harness, "after clearing", START, &[&one]);
    harness.same("they are no counters", harness.len().await, 0);
}
