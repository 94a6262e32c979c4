//! Properties of reset, clear, len and sweep.

use super::harness::{
    FIVE_A_MINUTE, Harness, MINUTE, START, batch, counter, five_a_minute_in_turn, user,
};
use crate::algorithm::State;
use crate::batch::Check;
use crate::clock::Timestamp;

pub(super) async fn resets_the_named_counters_only(harness: &Harness) {
    let (alice, bob) = (user("alice"), user("bob"));
    let [one, two] = ["one", "two"].map(|rule| counter(rule, "5/minute"));
    let pairs = [(&alice, &one), (&alice, &two), (&bob, &one)];
    for (subject, counter) in pairs {
        harness
            .take(Check::new(subject, counter).with_cost(5), START)
            .await;
    }
    harness
        .admin()
        .reset(&batch(&[Check::new(&alice, &one)]))
        .await
        .expect("reset must not fail");
    for ((subject, counter), used) in pairs.into_iter().zip([0, 5, 5]) {
        let usage = harness.see(Check::new(subject, counter), START).await;
        harness.same("used after the reset", usage.used(), used);
    }
}

pub(super) async fn resets_a_whole_subject_and_no_other(harness: &Harness) {
    let (alice, bob) = (user("alice"), user("bob"));
    let counters = FIVE_A_MINUTE.map(|text| counter("whole", text));
    for counter in &counters {
        harness.take(Check::new(&alice, counter), START).await;
        harness.take(Check::new(&bob, counter), START).await;
    }
    harness
        .admin()
        .reset_subject(&alice)
        .await
        .expect("reset_subject must not fail");
    for counter in &counters {
        let seen = harness.see(Check::new(&alice, counter), START).await;
        harness.same("the subject is fresh", seen.used(), 0);
        let seen = harness.see(Check::new(&bob, counter), START).await;
        harness.same("another is not", seen.used(), 1);
    }
}

pub(super) async fn clears_everything(harness: &Harness) {
    let names: Vec<String> = (0..100).map(|number| format!("user-{number}")).collect();
    let counters = FIVE_A_MINUTE.map(|text| counter("clear", text));
    for name in &names {
        let subject = user(name);
        let checks: Vec<_> = counters
            .iter()
            .map(|counter| Check::new(&subject, counter))
            .collect();
        let _ = harness.decide(&batch(&checks), START).await;
    }
    harness.admin().clear().await.expect("clear must not fail");
    harness.same("counters left", harness.len().await, 0);
    for name in &names {
        let seen = harness
            .see(Check::new(&user(name), &counters[0]), START)
            .await;
        harness.same("used after clearing", seen.used(), 0);
    }
}

pub(super) async fn len_counts_the_counters(harness: &Harness) {
    let counter = counter("len", "5/minute");
    harness.same("an empty store", harness.len().await, 0);
    for name in ["alice", "bob", "alice", "carol"] {
        harness.take(Check::new(&user(name), &counter), START).await;
    }
    // Neither a peek nor a denial creates a counter.
    harness
        .see(Check::new(&user("dave"), &counter), START)
        .await;
    harness
        .take(Check::new(&user("erin"), &counter).with_cost(6), START)
        .await;
    harness.same("three subjects", harness.len().await, 3);
}

pub(super) async fn sweeping_changes_no_decision(harness: &Harness) {
    let alice = user("alice");
    for (text, start) in five_a_minute_in_turn() {
        let counter = counter("sweep", text);
        // This counter is never swept, for comparison.
        let mut alone = State::fresh(counter.quota());
        for at in (0..60).map(|number| start + number * (MINUTE / 7 + 13)) {
            let cost = 1 + at % 3;
            harness.sweep(at).await;
            let usage = harness
                .take(Check::new(&alice, &counter).with_cost(cost), at)
                .await;
            let wanted = alone.assess(counter.quota(), Timestamp::from_micros(at), cost);
            if wanted.is_allowed() {
                alone.charge(counter.quota(), Timestamp::from_micros(at), cost);
            }
            harness.same(text, usage, wanted);
        }
    }
    harness.sweep(START + 600 * MINUTE).await;
    harness.same(
        "counters left when all have expired",
        harness.len().await,
        0,
    );
}

pub(super) async fn shutdown_leaves_what_was_admitted(harness: &Harness) {
    let alice = user("alice");
    let counters = FIVE_A_MINUTE.map(|text| counter("shutdown", text));
    for counter in &counters {
        harness.take(Check::new(&alice, counter), START).await;
    }
    // The second shutdown finds nothing to do.
    for used in [1, 2] {
        harness
            .store
            .shutdown()
            .await
            .expect("shutdown must not fail");
        for counter in &counters {
            let seen = harness.see(Check::new(&alice, counter), START).await;
            harness.same("used after the shutdown", seen.used(), used);
            let taken = harness.take(Check::new(&alice, counter), START).await;
            harness.same("a later request is counted", taken.used(), used + 1);
        }
    }
}
