//! Promises about groups: each is charged whole or not at all, dry runs only if `Live` is admitted.

use super::bench::{Bench, FIVE_A_MINUTE, START, batch, counter, user};
use crate::batch::{Check, Group, MAX_CHECKS};
use crate::key::Counter;
use crate::usage::Usage;

const TRIAL: Group = Group::DryRun(0);
const OTHER: Group = Group::DryRun(1);

async fn used(bench: &Bench, name: &str, counter: &Counter) -> u64 {
    bench
        .see(Check::new(&user(name), counter), START)
        .await
        .used()
}

pub(super) async fn charges_a_dry_run_with_an_admitted_request(bench: &Bench) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let [live, trial] = ["live", "trial"].map(|rule| counter(rule, text));
        let checks = [
            Check::new(&alice, &live),
            Check::new(&alice, &trial).with_cost(2).with_group(TRIAL),
        ];
        let usages = bench.decide(&batch(&checks), START).await;
        bench.same("allowed", usages.is_allowed(), true);
        let found: Vec<u64> = usages.usages().iter().map(Usage::used).collect();
        bench.same("used", found, vec![1, 2]);
        bench.same("live", used(bench, "alice", &live).await, 1);
        bench.same("dry run", used(bench, "alice", &trial).await, 2);
    }
}

pub(super) async fn never_denies_by_a_dry_run(bench: &Bench) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let [live, trial, other] = ["live", "trial", "other"].map(|rule| counter(rule, text));
        let checks = [
            Check::new(&alice, &live),
            Check::new(&alice, &trial).with_cost(6).with_group(TRIAL),
            Check::new(&alice, &other).with_group(OTHER),
        ];
        let usages = bench.decide(&batch(&checks), START).await;
        bench.same("allowed", usages.is_allowed(), true);
        let allowed: Vec<bool> = usages.usages().iter().map(Usage::is_allowed).collect();
        bench.same("each check", allowed, vec![true, false, true]);
        bench.same("live", used(bench, "alice", &live).await, 1);
        bench.same(
            "dry run that would deny",
            used(bench, "alice", &trial).await,
            0,
        );
        bench.same("another dry run", used(bench, "alice", &other).await, 1);
    }
}

pub(super) async fn charges_no_dry_run_with_a_denied_request(bench: &Bench) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let [live, trial] = ["live", "trial"].map(|rule| counter(rule, text));
        bench
            .take(Check::new(&alice, &live).with_cost(5), START)
            .await;
        let checks = [
            Check::new(&alice, &live),
            Check::new(&alice, &trial).with_group(TRIAL),
        ];
        let usages = bench.decide(&batch(&checks), START).await;
        bench.same("allowed", usages.is_allowed(), false);
        bench.same("answers", usages.usages().len(), 2);
        bench.same("dry run", used(bench, "alice", &trial).await, 0);
    }
}

pub(super) async fn charges_each_dry_run_whole_or_not_at_all(bench: &Bench) {
    let (alice, bob) = (user("alice"), user("bob"));
    let [live, trial] = ["live", "trial"].map(|rule| counter(rule, "5/minute"));
    bench
        .take(Check::new(&bob, &trial).with_cost(5), START)
        .await;
    let checks = [
        Check::new(&alice, &live),
        Check::new(&alice, &trial).with_group(TRIAL),
        Check::new(&bob, &trial).with_group(TRIAL),
    ];
    let usages = bench.decide(&batch(&checks), START).await;
    bench.same("allowed", usages.is_allowed(), true);
    bench.same("dry run of alice", used(bench, "alice", &trial).await, 0);
    bench.same("dry run of bob", used(bench, "bob", &trial).await, 5);
}

pub(super) async fn takes_a_batch_of_three_full_groups(bench: &Bench) {
    let alice = user("alice");
    let rules = ["live", "trial", "other"].map(|group| {
        (0..MAX_CHECKS)
            .map(|number| counter(&format!("{group}-{number}"), "5/minute"))
            .collect::<Vec<_>>()
    });
    let groups = [Group::Live, TRIAL, OTHER];
    let checks: Vec<Check<'_>> = rules
        .iter()
        .zip(groups)
        .flat_map(|(counters, group)| {
            let alice = &alice;
            counters
                .iter()
                .map(move |counter| Check::new(alice, counter).with_group(group))
        })
        .collect();
    for used in 1..=5 {
        let usages = bench.decide(&batch(&checks), START).await;
        bench.same("allowed", usages.is_allowed(), true);
        bench.same("answers", usages.usages().len(), 3 * MAX_CHECKS);
        let all_same = usages.usages().iter().all(|usage| usage.used() == used);
        bench.same("used by each", all_same, true);
    }
    let denied = bench.decide(&batch(&checks), START).await;
    bench.same("allowed", denied.is_allowed(), false);
}

pub(super) async fn peeks_records_and_refunds_all_groups(bench: &Bench) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let [live, trial] = ["live", "trial"].map(|rule| counter(rule, text));
        let checks = [
            Check::new(&alice, &live),
            Check::new(&alice, &trial).with_group(TRIAL),
        ];
        let _ = bench.peek(&batch(&checks), START).await;
        bench.same("peek", used(bench, "alice", &trial).await, 0);
        let recorded = bench.record(&batch(&checks), START).await;
        bench.same("record", recorded.usages()[1].used(), 1);
        bench.refund(&batch(&checks), START, START).await;
        for counter in [&live, &trial] {
            bench.same("refund", used(bench, "alice", counter).await, 0);
        }
    }
}
