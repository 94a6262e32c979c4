//! Properties of groups: each is charged whole or not at all, dry runs only if `Live` is admitted.

use super::harness::{FIVE_A_MINUTE, Harness, START, batch, counter, user};
use crate::batch::{Check, Group, MAX_CHECKS};
use crate::key::Counter;
use crate::usage::Usage;

const DRY_RUN: Group = Group::DryRun(0);
const OTHER: Group = Group::DryRun(1);

async fn used(harness: &Harness, name: &str, counter: &Counter) -> u64 {
    harness
        .see(Check::new(&user(name), counter), START)
        .await
        .used()
}

pub(super) async fn charges_a_dry_run_with_an_admitted_request(harness: &Harness) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let [live, dry_run] = ["live", "dry-run"].map(|rule| counter(rule, text));
        let checks = [
            Check::new(&alice, &live),
            Check::new(&alice, &dry_run)
                .with_cost(2)
                .with_group(DRY_RUN),
        ];
        let usages = harness.decide(&batch(&checks), START).await;
        harness.same("allowed", usages.is_allowed(), true);
        let found: Vec<u64> = usages.usages().iter().map(Usage::used).collect();
        harness.same("used", found, vec![1, 2]);
        harness.same("live", used(harness, "alice", &live).await, 1);
        harness.same("dry run", used(harness, "alice", &dry_run).await, 2);
    }
}

pub(super) async fn never_denies_by_a_dry_run(harness: &Harness) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let [live, dry_run, other] = ["live", "dry-run", "other"].map(|rule| counter(rule, text));
        let checks = [
            Check::new(&alice, &live),
            Check::new(&alice, &dry_run)
                .with_cost(6)
                .with_group(DRY_RUN),
            Check::new(&alice, &other).with_group(OTHER),
        ];
        let usages = harness.decide(&batch(&checks), START).await;
        harness.same("allowed", usages.is_allowed(), true);
        let allowed: Vec<bool> = usages.usages().iter().map(Usage::is_allowed).collect();
        harness.same("each check", allowed, vec![true, false, true]);
        harness.same("live", used(harness, "alice", &live).await, 1);
        harness.same(
            "dry run that would deny",
            used(harness, "alice", &dry_run).await,
            0,
        );
        harness.same("another dry run", used(harness, "alice", &other).await, 1);
    }
}

pub(super) async fn charges_no_dry_run_with_a_denied_request(harness: &Harness) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let [live, dry_run] = ["live", "dry-run"].map(|rule| counter(rule, text));
        harness
            .take(Check::new(&alice, &live).with_cost(5), START)
            .await;
        let checks = [
            Check::new(&alice, &live),
            Check::new(&alice, &dry_run).with_group(DRY_RUN),
        ];
        let usages = harness.decide(&batch(&checks), START).await;
        harness.same("allowed", usages.is_allowed(), false);
        harness.same("answers", usages.usages().len(), 2);
        harness.same("dry run", used(harness, "alice", &dry_run).await, 0);
    }
}

pub(super) async fn charges_each_dry_run_whole_or_not_at_all(harness: &Harness) {
    let (alice, bob) = (user("alice"), user("bob"));
    let [live, dry_run] = ["live", "dry-run"].map(|rule| counter(rule, "5/minute"));
    harness
        .take(Check::new(&bob, &dry_run).with_cost(5), START)
        .await;
    let checks = [
        Check::new(&alice, &live),
        Check::new(&alice, &dry_run).with_group(DRY_RUN),
        Check::new(&bob, &dry_run).with_group(DRY_RUN),
    ];
    let usages = harness.decide(&batch(&checks), START).await;
    harness.same("allowed", usages.is_allowed(), true);
    harness.same(
        "dry run of alice",
        used(harness, "alice", &dry_run).await,
        0,
    );
    harness.same("dry run of bob", used(harness, "bob", &dry_run).await, 5);
}

pub(super) async fn takes_a_batch_of_three_full_groups(harness: &Harness) {
    let alice = user("alice");
    let rules = ["live", "dry-run", "other"].map(|group| {
        (0..MAX_CHECKS)
            .map(|number| counter(&format!("{group}-{number}"), "5/minute"))
            .collect::<Vec<_>>()
    });
    let groups = [Group::Live, DRY_RUN, OTHER];
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
        let usages = harness.decide(&batch(&checks), START).await;
        harness.same("allowed", usages.is_allowed(), true);
        harness.same("answers", usages.usages().len(), 3 * MAX_CHECKS);
        let all_same = usages.usages().iter().all(|usage| usage.used() == used);
        harness.same("used by each", all_same, true);
    }
    let denied = harness.decide(&batch(&checks), START).await;
    harness.same("allowed", denied.is_allowed(), false);
}

pub(super) async fn peeks_records_and_refunds_all_groups(harness: &Harness) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let [live, dry_run] = ["live", "dry-run"].map(|rule| counter(rule, text));
        let checks = [
            Check::new(&alice, &live),
            Check::new(&alice, &dry_run).with_group(DRY_RUN),
        ];
        let _ = harness.peek(&batch(&checks), START).await;
        harness.same("peek", used(harness, "alice", &dry_run).await, 0);
        let recorded = harness.record(&batch(&checks), START).await;
        harness.same("record", recorded.usages()[1].used(), 1);
        harness.refund(&batch(&checks), START, START).await;
        for counter in [&live, &dry_run] {
            harness.same("refund", used(harness, "alice", counter).await, 0);
        }
    }
}
