//! Promises about one counter.

use super::bench::{
    Bench, FIVE_A_MINUTE, MINUTE, SECOND, START, batch, counter, five_a_minute_in_turn, quota,
    together, user,
};
use crate::batch::Check;
use crate::usage::Outcome;

pub(super) async fn admits_exactly_the_limit(bench: &Bench) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let counter = counter("limit", text);
        for left in (0..5).rev() {
            let usage = bench.take(Check::new(&alice, &counter), START).await;
            bench.same(text, (usage.is_allowed(), usage.remaining()), (true, left));
            bench.same(text, (usage.limit(), usage.used()), (5, 5 - left));
        }
        for _ in 0..3 {
            let usage = bench.take(Check::new(&alice, &counter), START).await;
            bench.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 5));
        }
    }
}

pub(super) async fn tells_when_to_come_back_to_the_microsecond(bench: &Bench) {
    let alice = user("alice");
    for (text, start) in five_a_minute_in_turn() {
        let counter = counter("retry", text);
        let check = Check::new(&alice, &counter);
        // Spread out, so that the algorithms differ in what comes free first.
        for step in 0..5 {
            bench.take(check, start + step * SECOND + 3).await;
        }
        let denied = bench.take(check.with_cost(2), start + 6 * SECOND).await;
        bench.same(text, denied.outcome(), Outcome::Denied);
        let free = denied.reset_at().as_micros();
        let early = bench.take(check.with_cost(2), free - 1).await;
        bench.same(
            text,
            (early.outcome(), early.reset_at()),
            (Outcome::Denied, denied.reset_at()),
        );
        let usage = bench.take(check.with_cost(2), free).await;
        bench.same(text, usage.outcome(), Outcome::Allowed);
    }
}

pub(super) async fn says_never_where_waiting_cannot_help(bench: &Bench) {
    let alice = user("alice");
    for (text, start) in five_a_minute_in_turn() {
        let counter = counter("never", text);
        let check = Check::new(&alice, &counter);
        let usage = bench.take(check.with_cost(6), start).await;
        bench.same(text, (usage.outcome(), usage.used()), (Outcome::Never, 0));
        let usage = bench.take(check.with_cost(5), start).await;
        bench.same(text, (usage.outcome(), usage.used()), (Outcome::Allowed, 5));
        let blocked = quota("blocked");
        let usage = bench
            .take(check.with_quota(&blocked), start + 10 * MINUTE)
            .await;
        bench.same(text, (usage.outcome(), usage.limit()), (Outcome::Never, 0));
    }
}

pub(super) async fn charges_what_it_costs(bench: &Bench) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let counter = counter("cost", text);
        let check = Check::new(&alice, &counter);
        for (cost, outcome, used) in [
            (3, Outcome::Allowed, 3),
            (0, Outcome::Allowed, 3),
            (3, Outcome::Denied, 3),
            (2, Outcome::Allowed, 5),
            (0, Outcome::Allowed, 5),
            (1, Outcome::Denied, 5),
        ] {
            let usage = bench.take(check.with_cost(cost), START).await;
            bench.same(text, (usage.outcome(), usage.used()), (outcome, used));
        }
    }
}

pub(super) async fn keeps_the_count_when_the_amount_changes(bench: &Bench) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let counter = counter("tier", text);
        let check = Check::new(&alice, &counter);
        let amount = |amount| {
            counter
                .quota()
                .with_amount(amount)
                .expect("small amounts fit")
        };
        let (smaller, larger) = (amount(2), amount(50));
        bench.take(check.with_cost(4), START).await;
        // Lowering applies at once, raising does not forget.
        let usage = bench.take(check.with_quota(&smaller), START).await;
        bench.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 4));
        let usage = bench.take(check.with_quota(&larger), START).await;
        bench.same(text, (usage.outcome(), usage.used()), (Outcome::Allowed, 5));
        let usage = bench.take(check, START).await;
        bench.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 5));
    }
    // Also when one of the amounts is so large that it is counted in other units of time.
    for text in FIVE_A_MINUTE {
        let counter = counter("scale", &text.replace("5/minute", "100000/hour"));
        let check = Check::new(&alice, &counter);
        let smaller = counter.quota().with_amount(100).expect("small amounts fit");
        bench.take(check.with_cost(100_000), START).await;
        let lowered = [check.with_quota(&smaller)];
        let _ = bench.record(&batch(&lowered), START).await;
        let usage = bench.see(check, START).await;
        bench.same(
            text,
            (usage.outcome(), usage.used() > 99_999),
            (Outcome::Denied, true),
        );
    }
}

pub(super) async fn stands_still_when_the_clock_goes_back(bench: &Bench) {
    let alice = user("alice");
    for (text, start) in five_a_minute_in_turn() {
        let counter = counter("back", text);
        let check = Check::new(&alice, &counter);
        bench.take(check.with_cost(5), start + 30 * MINUTE).await;
        for earlier in [1, SECOND, MINUTE, 29 * MINUTE] {
            let usage = bench.take(check, start + 30 * MINUTE - earlier).await;
            bench.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 5));
        }
    }
}

pub(super) async fn admits_exactly_the_limit_to_a_crowd(bench: &Bench) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let counter = counter("crowd", text);
        let checks = [Check::new(&alice, &counter)];
        let crowd = batch(&checks);
        let verdicts = together((0..64).map(|_| bench.decide(&crowd, START))).await;
        let admitted = verdicts
            .iter()
            .filter(|verdict| verdict.is_allowed())
            .count();
        bench.same(text, admitted, 5);
    }
}
