//! Promises about forgetting.

use super::bench::{
    Bench, FIVE_A_MINUTE, MINUTE, START, batch, counter, five_a_minute_in_turn, user,
};
use crate::algorithm::State;
use crate::batch::Check;
use crate::clock::Timestamp;

pub(super) async fn resets_the_named_counters_only(bench: &Bench) {
    let (alice, bob) = (user("alice"), user("bob"));
    let [one, two] = ["one", "two"].map(|rule| counter(rule, "5/minute"));
    let pairs = [(&alice, &one), (&alice, &two), (&bob, &one)];
    for (subject, counter) in pairs {
        bench
            .take(Check::new(subject, counter).with_cost(5), START)
            .await;
    }
    bench
        .admin()
        .reset(&batch(&[Check::new(&alice, &one)]))
        .await
        .expect("reset must not fail");
    for ((subject, counter), used) in pairs.into_iter().zip([0, 5, 5]) {
        let usage = bench.see(Check::new(subject, counter), START).await;
        bench.same("used after the reset", usage.used(), used);
    }
}

pub(super) async fn resets_a_whole_subject_and_no_other(bench: &Bench) {
    let (alice, bob) = (user("alice"), user("bob"));
    let counters = FIVE_A_MINUTE.map(|text| counter("whole", text));
    for counter in &counters {
        bench.take(Check::new(&alice, counter), START).await;
        bench.take(Check::new(&bob, counter), START).await;
    }
    bench
        .admin()
        .reset_subject(&alice)
        .await
        .expect("reset_subject must not fail");
    for counter in &counters {
        let seen = bench.see(Check::new(&alice, counter), START).await;
        bench.same("the subject is fresh", seen.used(), 0);
        let seen = bench.see(Check::new(&bob, counter), START).await;
        bench.same("another is not", seen.used(), 1);
    }
}

pub(super) async fn clears_everything(bench: &Bench) {
    let names: Vec<String> = (0..100).map(|number| format!("user-{number}")).collect();
    let counters = FIVE_A_MINUTE.map(|text| counter("clear", text));
    for name in &names {
        let subject = user(name);
        let checks: Vec<_> = counters
            .iter()
            .map(|counter| Check::new(&subject, counter))
            .collect();
        let _ = bench.decide(&batch(&checks), START).await;
    }
    bench.admin().clear().await.expect("clear must not fail");
    bench.same("counters left", bench.len().await, 0);
    for name in &names {
        let seen = bench
            .see(Check::new(&user(name), &counters[0]), START)
            .await;
        bench.same("used after clearing", seen.used(), 0);
    }
}

pub(super) async fn counts_what_it_keeps(bench: &Bench) {
    let counter = counter("len", "5/minute");
    bench.same("an empty store", bench.len().await, 0);
    for name in ["alice", "bob", "alice", "carol"] {
        bench.take(Check::new(&user(name), &counter), START).await;
    }
    // Neither looking nor a denial leaves anything behind.
    bench.see(Check::new(&user("dave"), &counter), START).await;
    bench
        .take(Check::new(&user("erin"), &counter).with_cost(6), START)
        .await;
    bench.same("three subjects", bench.len().await, 3);
}

pub(super) async fn answers_the_same_however_often_it_is_swept(bench: &Bench) {
    let alice = user("alice");
    for (text, start) in five_a_minute_in_turn() {
        let counter = counter("sweep", text);
        // Never swept, because nothing keeps it but this.
        let mut alone = State::fresh(counter.quota());
        for at in (0..60).map(|number| start + number * (MINUTE / 7 + 13)) {
            let cost = 1 + at % 3;
            bench.sweep(at).await;
            let usage = bench
                .take(Check::new(&alice, &counter).with_cost(cost), at)
                .await;
            let wanted = alone.assess(counter.quota(), Timestamp::from_micros(at), cost);
            if wanted.is_allowed() {
                alone.charge(counter.quota(), Timestamp::from_micros(at), cost);
            }
            bench.same(text, usage, wanted);
        }
    }
    bench.sweep(START + 600 * MINUTE).await;
    bench.same("counters left when all have expired", bench.len().await, 0);
}
