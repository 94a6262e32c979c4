//! Promises about whole batches, and about taking back.

use super::bench::{
    Bench, FIVE_A_MINUTE, MINUTE, SECOND, START, batch, counter, five_a_minute_in_turn, user,
};
use crate::batch::Check;
use crate::key::Subject;
use crate::usage::{Outcome, Usage};

pub(super) async fn allows_an_empty_batch(bench: &Bench) {
    let verdict = bench.decide(&batch(&[]), START).await;
    bench.same(
        "nothing to check",
        (verdict.is_allowed(), verdict.usages().len()),
        (true, 0),
    );
}

pub(super) async fn charges_every_check_of_a_batch(bench: &Bench) {
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
    let verdict = bench.decide(&batch, START).await;
    bench.same("first", verdict.is_allowed(), true);
    let used: Vec<u64> = verdict.usages().iter().map(Usage::used).collect();
    bench.same("in the order of the checks", used, vec![1, 2, 3, 4, 5]);
    let used = bench.peek(&batch, START).await;
    let used: Vec<u64> = used.usages().iter().map(Usage::used).collect();
    bench.same("and kept", used, vec![1, 2, 3, 4, 5]);
}

pub(super) async fn charges_nothing_when_one_check_is_denied(bench: &Bench) {
    let (alice, acme, all) = (
        user("alice"),
        Subject::from([("tenant", "acme")]),
        Subject::all(),
    );
    for full in FIVE_A_MINUTE {
        let spent = counter("spent", full);
        bench
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
                let verdict = bench.decide(&both, START + 1).await;
                let seen = verdict
                    .usages()
                    .iter()
                    .map(|usage| (usage.outcome(), usage.used()));
                let wanted = [
                    (Outcome::Allowed, 0),
                    (Outcome::Denied, 5),
                    (Outcome::Allowed, 0),
                ];
                bench.same(open, seen.collect(), wanted.to_vec());
            }
            let usage = bench.see(Check::new(&alice, &mine), START + 1).await;
            bench.same(open, usage.used(), 0);
        }
    }
}

pub(super) async fn changes_nothing_when_peeked_at(bench: &Bench) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let counter = counter("peek", text);
        let check = Check::new(&alice, &counter);
        bench.take(check.with_cost(4), START).await;
        for cost in [1, 1, 2, 6, 1] {
            let usage = bench.see(check.with_cost(cost), START).await;
            let outcome = match cost {
                0..=1 => Outcome::Allowed,
                2..=5 => Outcome::Denied,
                _ => Outcome::Never,
            };
            bench.same(text, (usage.outcome(), usage.used()), (outcome, 4));
        }
        // Looking ahead is looking, too.
        let ahead = bench.see(check.with_cost(5), START + 10 * MINUTE).await;
        bench.same(text, (ahead.outcome(), ahead.used()), (Outcome::Allowed, 0));
        let usage = bench.take(check.with_cost(2), START).await;
        bench.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 4));
        let usage = bench.take(check, START).await;
        bench.same(text, (usage.outcome(), usage.used()), (Outcome::Allowed, 5));
    }
}

pub(super) async fn records_what_has_happened(bench: &Bench) {
    let alice = user("alice");
    for (text, start) in five_a_minute_in_turn() {
        let counter = counter("record", text);
        let check = Check::new(&alice, &counter);
        let seen = bench
            .record(&batch(&[check.with_cost(4)]), start)
            .await
            .usages()[0];
        bench.same(text, (seen.outcome(), seen.used()), (Outcome::Allowed, 4));
        // Over the limit, because it has happened; then it is as good as denied.
        let seen = bench
            .record(&batch(&[check.with_cost(4)]), start)
            .await
            .usages()[0];
        bench.same(
            text,
            (seen.outcome(), seen.used(), seen.remaining()),
            (Outcome::Denied, 8, 0),
        );
        let usage = bench.take(check, start).await;
        bench.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 8));
        // And the wait is true for a counter that is over its limit as well.
        let free = usage.reset_at().as_micros();
        bench.same(text, bench.see(check, free - 1).await.is_allowed(), false);
        bench.same(text, bench.see(check, free).await.is_allowed(), true);
    }
}

pub(super) async fn gives_back_what_was_charged(bench: &Bench) {
    let (alice, all) = (user("alice"), Subject::all());
    for text in FIVE_A_MINUTE {
        let counter = counter("back", text);
        let one = Check::new(&alice, &counter);
        bench.take(one.with_cost(2), START).await;
        let checks = [one.with_cost(3), Check::new(&all, &counter).with_cost(3)];
        let both = batch(&checks);
        bench.same(
            text,
            bench.decide(&both, START + 5).await.is_allowed(),
            true,
        );
        bench.refund(&both, START + 5, START + 5).await;
        let left = bench.peek(&both, START + 5).await;
        let left: Vec<u64> = left.usages().iter().map(Usage::used).collect();
        bench.same(text, left, vec![2, 0]);
    }
}

pub(super) async fn gives_nothing_back_into_another_window(bench: &Bench) {
    let alice = user("alice");
    for (text, start) in five_a_minute_in_turn() {
        let counter = counter("late", text);
        let check = Check::new(&alice, &counter);
        bench.take(check.with_cost(5), start).await;
        let later = start + 10 * MINUTE;
        bench.take(check.with_cost(5), later).await;
        // The first five are long forgotten: there is nothing of them to give back.
        bench
            .refund(&batch(&[check.with_cost(5)]), start, later + SECOND)
            .await;
        let usage = bench.see(check, later + SECOND).await;
        bench.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 5));
    }
}

pub(super) async fn never_gives_back_more_than_is_there(bench: &Bench) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let counter = counter("floor", text);
        let check = Check::new(&alice, &counter);
        // Nothing there at all, then less than is given back.
        bench
            .refund(&batch(&[check.with_cost(5)]), START, START)
            .await;
        bench.take(check, START).await;
        bench
            .refund(&batch(&[check.with_cost(u64::MAX)]), START, START)
            .await;
        let usage = bench.take(check.with_cost(5), START).await;
        bench.same(text, (usage.outcome(), usage.used()), (Outcome::Allowed, 5));
        let usage = bench.take(check, START).await;
        bench.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 5));
    }
}
