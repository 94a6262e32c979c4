//! Properties of one counter.

use futures_util::future::join_all;

use super::harness::{
    FIVE_A_MINUTE, Harness, MINUTE, SECOND, START, batch, counter, five_a_minute_in_turn, quota,
    user,
};
use crate::batch::Check;
use crate::usage::Outcome;

pub(super) async fn admits_exactly_the_limit(harness: &Harness) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let counter = counter("limit", text);
        for left in (0..5).rev() {
            let usage = harness.take(Check::new(&alice, &counter), START).await;
            harness.same(text, (usage.is_allowed(), usage.remaining()), (true, left));
            harness.same(text, (usage.limit(), usage.used()), (5, 5 - left));
        }
        for _ in 0..3 {
            let usage = harness.take(Check::new(&alice, &counter), START).await;
            harness.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 5));
        }
    }
}

pub(super) async fn retry_after_is_exact_to_the_microsecond(harness: &Harness) {
    let alice = user("alice");
    for (text, start) in five_a_minute_in_turn() {
        let counter = counter("retry", text);
        let check = Check::new(&alice, &counter);
        // Spread over time, so that the algorithms free capacity at different instants.
        for step in 0..5 {
            harness.take(check, start + step * SECOND + 3).await;
        }
        let denied = harness.take(check.with_cost(2), start + 6 * SECOND).await;
        harness.same(text, denied.outcome(), Outcome::Denied);
        let free = denied.reset_at().as_micros();
        let early = harness.take(check.with_cost(2), free - 1).await;
        harness.same(
            text,
            (early.outcome(), early.reset_at()),
            (Outcome::Denied, denied.reset_at()),
        );
        let usage = harness.take(check.with_cost(2), free).await;
        harness.same(text, usage.outcome(), Outcome::Allowed);
    }
}

pub(super) async fn reports_a_cost_that_exceeds_the_capacity(harness: &Harness) {
    let alice = user("alice");
    for (text, start) in five_a_minute_in_turn() {
        let counter = counter("never", text);
        let check = Check::new(&alice, &counter);
        let usage = harness.take(check.with_cost(6), start).await;
        harness.same(
            text,
            (usage.outcome(), usage.used()),
            (Outcome::ExceedsCapacity, 0),
        );
        let usage = harness.take(check.with_cost(5), start).await;
        harness.same(text, (usage.outcome(), usage.used()), (Outcome::Allowed, 5));
        let blocked = quota("blocked");
        let usage = harness
            .take(check.with_quota(&blocked), start + 10 * MINUTE)
            .await;
        harness.same(
            text,
            (usage.outcome(), usage.limit()),
            (Outcome::ExceedsCapacity, 0),
        );
    }
}

pub(super) async fn charges_the_cost(harness: &Harness) {
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
            let usage = harness.take(check.with_cost(cost), START).await;
            harness.same(text, (usage.outcome(), usage.used()), (outcome, used));
        }
    }
}

pub(super) async fn keeps_usage_when_the_limit_changes(harness: &Harness) {
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
        harness.take(check.with_cost(4), START).await;
        // A lower limit applies at once, a higher one keeps the usage.
        let usage = harness.take(check.with_quota(&smaller), START).await;
        harness.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 4));
        let usage = harness.take(check.with_quota(&larger), START).await;
        harness.same(text, (usage.outcome(), usage.used()), (Outcome::Allowed, 5));
        let usage = harness.take(check, START).await;
        harness.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 5));
    }
    // Also for a limit so large that the token bucket uses another tick.
    for text in FIVE_A_MINUTE {
        let counter = counter("scale", &text.replace("5/minute", "100000/hour"));
        let check = Check::new(&alice, &counter);
        let smaller = counter.quota().with_amount(100).expect("small amounts fit");
        harness.take(check.with_cost(100_000), START).await;
        let lowered = [check.with_quota(&smaller)];
        let _ = harness.record(&batch(&lowered), START).await;
        let usage = harness.see(check, START).await;
        harness.same(
            text,
            (usage.outcome(), usage.used() > 99_999),
            (Outcome::Denied, true),
        );
    }
}

pub(super) async fn time_never_goes_back(harness: &Harness) {
    let alice = user("alice");
    for (text, start) in five_a_minute_in_turn() {
        let counter = counter("back", text);
        let check = Check::new(&alice, &counter);
        harness.take(check.with_cost(5), start + 30 * MINUTE).await;
        for earlier in [1, SECOND, MINUTE, 29 * MINUTE] {
            let usage = harness.take(check, start + 30 * MINUTE - earlier).await;
            harness.same(text, (usage.outcome(), usage.used()), (Outcome::Denied, 5));
        }
    }
}

pub(super) async fn admits_exactly_the_limit_to_concurrent_callers(harness: &Harness) {
    let alice = user("alice");
    for text in FIVE_A_MINUTE {
        let counter = counter("concurrent", text);
        let checks = [Check::new(&alice, &counter)];
        let batch = batch(&checks);
        let all_usages = join_all((0..64).map(|_| harness.decide(&batch, START))).await;
        let admitted = all_usages
            .iter()
            .filter(|usages| usages.is_allowed())
            .count();
        harness.same(text, admitted, 5);
    }
}
