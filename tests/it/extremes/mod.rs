//! Quotas, costs and instants at the limits of the counters and beyond: results are exact, or the
//! quota is rejected when built. Nothing panics or wraps, with or without overflow checks.

mod invalid_values;

use std::time::Duration;

use tollgate::{Algorithm, Outcome, Quota, Timestamp, Usage, Window};

use crate::properties::counters::{Counts, Plain, Stored};
use crate::reference::{ModelUsage, Reference};

const NEW_YEAR: u64 = 1_735_689_600_000_000;
const MAX: u64 = Timestamp::MAX.as_micros();
/// Largest integer that a double represents exactly. No instant in a reply is later.
const LAST: u64 = (1 << 53) - 1;

/// The largest and the smallest quotas of each kind, and some around powers of two.
const EXTREMES: [&str; 33] = [
    "1/1us",
    "1/1us, fixed-window",
    "1/1us, sliding-buckets",
    "1/1us, sliding-log",
    "1/1us, token-bucket",
    "1/3653d",
    "1/3653d, fixed-window",
    "1/3653d, sliding-buckets, buckets 3600",
    "1/3653d, sliding-log",
    "1/3653d, token-bucket",
    "1/120mo",
    "1/120mo, fixed-window",
    "4294967295/1us",
    "4294967295/1s",
    "4294967295/1d",
    "22295457/3653d",
    "4294967294/1mo",
    "70368673/1000001us",
    "9007199254740991/1us, fixed-window",
    "9007199254740991/3653d, fixed-window",
    "9007199254740991/120mo, fixed-window",
    "4294967297/1h, fixed-window",
    "9007199254740991/1us, sliding-buckets",
    "9007199254740991/3653d, sliding-buckets, buckets 3600",
    "70368744177664/7us, sliding-buckets, buckets 3",
    "100000/1us, sliding-log",
    "100000/3653d, sliding-log",
    "70368744177664/1us, token-bucket",
    "1/1us, token-bucket, burst 70368744177664",
    "4294967296/1s, token-bucket, burst 1",
    "4294967297/1h, token-bucket",
    "22295457/3653d, token-bucket",
    "70368673/1000001us, token-bucket, burst 3",
];

/// Instants just before a counter is free, at that instant, and far in the future.
pub(crate) fn instants(free: u64) -> [u64; 6] {
    [
        free - 1,
        free,
        free + 1,
        free + free / 100,
        NEW_YEAR * 2,
        free,
    ]
}

pub(crate) fn extremes() -> impl Iterator<Item = Quota> {
    EXTREMES.iter().map(|text| {
        let quota = text.parse::<Quota>();
        quota.unwrap_or_else(|refused| panic!("{text}: {refused}"))
    })
}

/// The last permit and the one after it, compared with the model.
#[test]
fn extreme_quotas_are_exact() {
    for quota in extremes() {
        let (mut state, mut stored) = (Plain::new(&quota), Stored::new(&quota));
        let mut reference = Reference::default();
        let limit = quota.burst();
        let mut now = NEW_YEAR;
        for round in 0..6 {
            let mut result = None;
            for cost in [limit, limit - 1, 2, 1, 1, 0, limit] {
                let expected = reference.decide(&quota, now, cost);
                assert_eq!(
                    state.decide(&quota, now, cost),
                    expected,
                    "{quota}, round {round}"
                );
                assert_eq!(
                    stored.decide(&quota, now, cost),
                    expected,
                    "{quota}, round {round}"
                );
                result = Some(expected);
            }
            let free = result.map_or(now, |result| result.reset_at);
            now = instants(free)[round];
        }
    }
}

#[test]
fn extreme_debts_and_refunds_agree_with_the_model() {
    for quota in extremes() {
        let (mut state, mut stored) = (Plain::new(&quota), Stored::new(&quota));
        let mut reference = Reference::default();
        let limit = quota.burst();
        let now = NEW_YEAR + 1;
        // The counters of a sliding window end at 32 bits: no debts beside that.
        let debt = if limit >= u64::from(u32::MAX) / 2 {
            limit
        } else {
            2 * limit
        };
        for cost in [debt, 0] {
            let expected = reference.record(&quota, now, cost);
            assert_eq!(state.record(&quota, now, cost), expected, "{quota}");
            assert_eq!(stored.record(&quota, now, cost), expected, "{quota}");
        }
        for (at, cost) in [(now, 1), (now + 1, limit), (now + 2, u64::MAX)] {
            reference.refund(&quota, now, at, cost);
            state.refund(&quota, now, at, cost);
            stored.refund(&quota, now, at, cost);
            let expected = reference.peek(&quota, at, 1);
            assert_eq!(state.peek(&quota, at, 1), expected, "{quota}");
            assert_eq!(stored.peek(&quota, at, 1), expected, "{quota}");
        }
    }
}

/// Every cost at every instant, in every order of two.
#[test]
fn nothing_wraps() {
    let instants = [0, 1, NEW_YEAR, MAX - 1, MAX, u64::MAX];
    let costs = [
        0,
        1,
        2,
        1 << 32,
        1 << 46,
        LAST,
        LAST + 1,
        u64::MAX - 1,
        u64::MAX,
    ];
    for quota in extremes() {
        for first in costs {
            for second in costs {
                let (mut state, mut stored) = (Plain::new(&quota), Stored::new(&quota));
                for at in instants {
                    both(&mut state, &mut stored, |counter| {
                        counter.decide(&quota, at, first)
                    });
                    let before = state.assess(&quota, at.min(MAX), 0);
                    both(&mut state, &mut stored, |counter| {
                        counter.record(&quota, at, second)
                    });
                    let after = state.assess(&quota, at.min(MAX), 0);
                    assert!(
                        after.used() >= before.used(),
                        "{quota}: {before:?} to {after:?}"
                    );
                    assert!(
                        after.used() >= second.min(after.limit()),
                        "{quota}: {after:?}"
                    );
                    is_sound(&quota, &after);
                    for cost in costs {
                        let usage = state.assess(&quota, at.min(MAX), cost);
                        is_sound(&quota, &usage);
                        // The reset may lie at an instant that no clock shows. A check at that instant is sound.
                        is_sound(&quota, &state.state.assess(&quota, usage.reset_at(), cost));
                        assert_eq!(
                            usage.outcome() == Outcome::ExceedsCapacity,
                            cost > usage.limit()
                        );
                    }
                }
                for charged_at in instants {
                    state.refund(&quota, charged_at, MAX, first);
                    stored.refund(&quota, charged_at, MAX, first);
                    both(&mut state, &mut stored, |counter| {
                        counter.peek(&quota, MAX, second)
                    });
                }
            }
        }
    }
}

fn both(
    state: &mut Plain,
    stored: &mut Stored,
    mut act: impl FnMut(&mut dyn Counts) -> ModelUsage,
) {
    assert_eq!(act(state), act(stored));
}

fn is_sound(quota: &Quota, usage: &Usage) {
    assert_eq!(usage.limit(), quota.burst());
    assert_eq!(
        usage.remaining(),
        usage.limit().saturating_sub(usage.used())
    );
    assert!(usage.used() <= LAST, "{quota}: {usage:?}");
    assert!(usage.reset_at().as_micros() <= LAST, "{quota}: {usage:?}");
}

/// A debt that saturates the counter is kept at the next instant, and it ends.
#[test]
fn saturated_debt_is_kept_and_ends() {
    for quota in extremes() {
        let mut state = Plain::new(&quota);
        state.record(&quota, NEW_YEAR, u64::MAX);
        let denied = state.assess(&quota, NEW_YEAR, 1);
        assert_eq!(
            (denied.outcome(), denied.remaining()),
            (Outcome::Denied, 0),
            "{quota}"
        );
        let free = denied.reset_at().as_micros();
        assert!(free > NEW_YEAR && free <= LAST);
        let just_before = state.assess(&quota, free - 1, 1);
        assert_eq!(just_before.outcome(), Outcome::Denied, "{quota}");
        // Debts of a thousand years saturate at the last instant.
        if free < MAX {
            assert!(state.assess(&quota, free, 1).is_allowed(), "{quota}");
        }
    }
}

#[test]
fn counters_work_at_the_last_instant() {
    assert_eq!(Timestamp::from_micros(u64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::from_secs(u64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::MAX.saturating_add(Duration::MAX), Timestamp::MAX);
    assert_eq!(
        Timestamp::EPOCH.duration_since(Timestamp::MAX),
        Duration::ZERO
    );
    for quota in extremes() {
        for now in [0, MAX] {
            let mut state = Plain::new(&quota);
            assert_eq!(
                state.decide(&quota, now, quota.burst()).outcome,
                Outcome::Allowed
            );
            let denied = state.assess(&quota, now, 1);
            assert_eq!(denied.outcome(), Outcome::Denied, "{quota}");
            assert!(denied.reset_at().as_micros() > now);
            // Ends may lie past the last instant that a clock can show.
            let then = state.state.assess(&quota, denied.reset_at(), 1);
            assert!(then.is_allowed(), "{quota}");
        }
    }
}

#[test]
fn cost_of_zero_never_exceeds_the_limit() {
    for quota in extremes() {
        let mut stored = Stored::new(&quota);
        for cost in [0, quota.burst(), 0] {
            let result = stored.decide(&quota, NEW_YEAR, cost);
            assert_eq!(result.outcome, Outcome::Allowed, "{quota}");
        }
        assert_eq!(stored.peek(&quota, NEW_YEAR, 0).used, quota.burst());
    }
}

/// They may replace the quota of any counter for one call, and do not change its count.
#[test]
fn unlimited_and_blocked_accept_any_cost_and_count_nothing() {
    for quota in extremes() {
        let mut stored = Stored::new(&quota);
        stored.decide(&quota, NEW_YEAR, 1);
        let before = stored.peek(&quota, NEW_YEAR, 0);
        for cost in [0, 1, LAST, u64::MAX] {
            let unlimited = Quota::unlimited();
            let always = stored.decide(&unlimited, NEW_YEAR, cost);
            assert_eq!(always.outcome, Outcome::Allowed, "{quota}");
            stored.record(&unlimited, NEW_YEAR, cost);
            stored.refund(&unlimited, NEW_YEAR, NEW_YEAR, cost);

            let blocked = Quota::blocked();
            let never = stored.decide(&blocked, NEW_YEAR, cost);
            let found = (never.outcome, never.limit, never.used);
            assert_eq!(found, (Outcome::ExceedsCapacity, 0, 0), "{quota}");
            assert_eq!(stored.record(&blocked, NEW_YEAR, cost), never);
            stored.refund(&blocked, NEW_YEAR, NEW_YEAR, cost);
            assert_eq!(stored.peek(&quota, NEW_YEAR, 0), before, "{quota}");
        }
    }
}

#[test]
fn changed_amount_is_exact_or_rejected() {
    for quota in extremes() {
        assert_eq!(quota.with_amount(0).unwrap_err().field(), "quota limit");
        for amount in [1, 1 << 32, 1 << 46, 1 << 53, u64::MAX] {
            match quota.with_amount(amount) {
                Ok(other) => assert_eq!(other.amount(), amount),
                Err(refused) => assert!(refused.field().starts_with("quota"), "{refused}"),
            }
        }
    }
}

/// A quota is counted exactly, or building it fails.
#[test]
fn quotas_around_powers_of_two_are_exact_or_rejected() {
    let around = |bit: u32| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1];
    let amounts = [31, 32, 46, 50, 53, 63].map(around);
    let amounts = amounts.iter().flatten().chain(&[u64::MAX - 1, u64::MAX]);
    let windows = [
        1,
        2,
        999,
        1_000,
        1_000_000,
        3_600_000_001,
        86_400_000_000,
        315_619_200_000_000,
    ];
    let windows = windows.map(|micros| Window::new(Duration::from_micros(micros)).unwrap());
    let algorithms = extremes().map(|quota| quota.algorithm());
    let mut algorithms: Vec<Algorithm> = algorithms.collect();
    algorithms.dedup();
    let mut built = 0;
    for amount in amounts {
        for window in windows {
            for algorithm in &algorithms {
                let builder = Quota::builder(*amount, window).algorithm(*algorithm);
                let Ok(quota) = builder.build() else { continue };
                built += 1;
                let (mut state, mut reference) = (Plain::new(&quota), Reference::default());
                for cost in [*amount - 1, 2, 1, 1] {
                    let expected = reference.decide(&quota, NEW_YEAR, cost);
                    assert_eq!(state.decide(&quota, NEW_YEAR, cost), expected, "{quota}");
                }
            }
        }
    }
    assert!(built > 100, "only {built} could be built");
}
