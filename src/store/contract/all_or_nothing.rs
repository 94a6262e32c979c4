//! Properties of batches and refunds.

use super::harness::{
    FIVE_A_MINUTE, Harness, MINUTE, SECOND, START, batch, counter, five_a_minute_in_turn, user,
};
use crate::batch::Check;
use crate::key::Subject;
use crate::usage::{Outcome, Usage};

pub(super) async fn allows_an_empty_batch(harness: &Harness) {
    let usages = harness.decide(&batch(&[]), START).await;
    harness.same(
        "nothing to check",
        (usages.is_allowed(), usages.usages().len()),
        (true, 0),
    );
}

pub(super) async fn charges_every_check_of_a_batch(harness: &Harness) {
    let (alice, acme, all) = (
        user("alice"),
        Subject::from([("tenant", "acme")]),
        Subject::all(),
    );
    let counters = FIVE_A_MINUTE.map(|text| counter("all", text));
    let subjects = [&alice, &alice, &acme, &acme, &all];
    let checks = subjects.iter().zip(&counters).zip(1..);
    let checks: Vec<_> = checks
        .map(|((subject, counter), cost)| Check::new(subject, counter).with_cost(cost))
        .collect();
    let batch = batch(&checks);
    let usages = harness.decide(&batch, START).await;
    harness.same("first", usages.is_allowed(), true);
    let used: Vec<u64> = usages.usages().iter().map(Usage::used).collect();
    harness.same("in the order of the checks", used, vec![1, 2, 3, 4, 5]);
    let used = harness.peek(&batch, START).await;
    let used: Vec<u64> = used.usages().iter().map(Usage::used).collect();
    harness.same("and kept", used, vec![1, 2, 3, 4, 5]);
}

pub(super) async fn charges_nothing_when_one_check_is_denied(harness: &Harness) {
    let (alice, acme, all) = (
        user("alice"),
        Subject::from([("tenant", "acme")]),
        Subject::all(),
    );
    for full in FIVE_A_MINUTE {
        let spent = counter("spent", full);
        harness
            .take(Check::new(&acme, &spent).with_cost(5), START)
            .await;
        for open in FIVE_A_MINUTE {
            let (mine, shared) = (
                counter(
                    &format!("mine-{full}").replace(", ", "-").replace('/', "-"),
                    open,
                ),
                counter("shared", open),
            );
            let checks = [
                Check::new(&alice, &mine),
                Check::new(&acme, &spent),
                Check::new(&all, &shared),
            ];
            let both = batch(&checks);
            for _ in 0..3 {
                let usages = harness.decide(&both, START + 1).await;
                let seen = usages
                    .usages()
                    .iter()
                    .map(|usage| (usage.outcome(), usage.used()));
                let wanted = [
                    (Outcome::Allowed, 0),
                    (Outcome::Denied, 5),
                    (Outcome::Allowed, 0),
                ];
                harness.same(open, seen.collect(), wanted.to_vec());
            }
            let usage = harness.see(Check::new(&alice, &mine), START + 1).await;
            harness.same(open, usage.used(), 0);
        }
    }
}

pub(super) async fn peek_changes_nothing(harness: &Harness) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let counter = counter("peek", text);
        let check = Check::new(&alice, &counter);
        harness.take(check.with_cost(4), START).await;
        for cost in [1, 1, 2, 6, 1] {
            let usage = harness.see(check.with_cost(cost), START).await;
            let outcome = match cost {
                0..=1 => Outcome::Allowed,
                2..=5 => Outcome::Denied,
                _ => Outcome::ExceedsCapacity,
            };
            harness.same(text, (usage.outcome(), usage.used()), (outcome, 4));
        }
        // A peek at a later instant does not advance the counter either.
        let ahead = harness.see(check.with_cost(5), START + 10 * MINUTE).await;
        harness.same(text, (ahead.outcome(), ahead.used()), (Outcome::Allowed, 0));
        let usage = harness.take(check.with_cost(2), START).await;
        harness.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 4));
        let usage = harness.take(check, START).await;
        harness.same(text, (usage.outcome(), usage.used()), (Outcome::Allowed, 5));
    }
}

pub(super) async fn record_charges_beyond_the_limit(harness: &Harness) {
    let alice = user("alice");
    for (text, start) in five_a_minute_in_turn() {
        let counter = counter("record", text);
        let check = Check::new(&alice, &counter);
        let seen = harness
            .record(&batch(&[check.with_cost(4)]), start)
            .await
            .usages()[0];
        harness.same(text, (seen.outcome(), seen.used()), (Outcome::Allowed, 4));
        // `record` charges beyond the limit; its usage is reported as denied.
        let seen = harness
            .record(&batch(&[check.with_cost(4)]), start)
            .await
            .usages()[0];
        harness.same(
            text,
            (seen.outcome(), seen.used(), seen.remaining()),
            (Outcome::Denied, 8, 0),
        );
        let usage = harness.take(check, start).await;
        harness.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 8));
        // The wait is exact for a counter over its limit as well.
        let free = usage.reset_at().as_micros();
        harness.same(text, harness.see(check, free - 1).await.is_allowed(), false);
        harness.same(text, harness.see(check, free).await.is_allowed(), true);
    }
}

pub(super) async fn refund_takes_back_the_charge(harness: &Harness) {
    let (alice, all) = (user("alice"), Subject::all());
    for text in FIVE_A_MINUTE {
        let counter = counter("back", text);
        let one = Check::new(&alice, &counter);
        harness.take(one.with_cost(2), START).await;
        let checks = [one.with_cost(3), Check::new(&all, &counter).with_cost(3)];
        let both = batch(&checks);
        harness.same(
            text,
            harness.decide(&both, START + 5).await.is_allowed(),
            true,
        );
        harness.refund(&both, START + 5, START + 5).await;
        let left = harness.peek(&both, START + 5).await;
        let left: Vec<u64> = left.usages().iter().map(Usage::used).collect();
        harness.same(text, left, vec![2, 0]);
    }
}

pub(super) async fn refund_never_affects_another_window(harness: &Harness) {
    let alice = user("alice");
    for (text, start) in five_a_minute_in_turn() {
        let counter = counter("late", text);
        let check = Check::new(&alice, &counter);
        harness.take(check.with_cost(5), start).await;
        let later = start + 10 * MINUTE;
        harness.take(check.with_cost(5), later).await;
        // The first five have expired: there is nothing to refund.
        harness
            .refund(&batch(&[check.with_cost(5)]), start, later + SECOND)
            .await;
        let usage = harness.see(check, later + SECOND).await;
        harness.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 5));
    }
}

pub(super) async fn refund_never_goes_below_zero(harness: &Harness) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let counter = counter("floor", text);
        let check = Check::new(&alice, &counter);
        // No counter at all, then one with less than the refund.
        harness
            .refund(&batch(&[check.with_cost(5)]), START, START)
            .await;
        harness.take(check, START).await;
        harness
            .refund(&batch(&[check.with_cost(u64::MAX)]), START, START)
            .await;
        let usage = harness.take(check.with_cost(5), START).await;
        harness.same(text, (usage.outcome(), usage.used()), (Outcome::Allowed, 5));
        let usage = harness.take(check, START).await;
        harness.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 5));
    }
}
