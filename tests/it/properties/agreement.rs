//! The state of each algorithm returns what the model computes from the whole history.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tollgate::{Algorithm, Outcome, Quota, Timestamp};

use super::config;
use super::counters::{Deed, Op, Plain};
use super::quotas::{large_quotas, quotas, tiers};
use super::traces::{Step, Walk, starts, traces};
use crate::reference::{ModelUsage, Reference};

proptest! {
    #![proptest_config(config(20_000))]

    #[test]
    fn state_agrees_with_its_history(
        quota in quotas(),
        start in starts(),
        trace in traces(40),
    ) {
        let mut walk = Walk::new(start, tiers(&quota));
        let (mut state, mut reference) = (Plain::new(&quota), Reference::default());
        for step in &trace {
            let deed = walk.deed(step);
            let expected = deed.apply(&mut reference);
            prop_assert_eq!(deed.apply(&mut state), expected, "{:?}", deed);
            walk.note(&deed, expected);
        }
    }

    /// Denied: `reset_at` is exact to the microsecond on both sides. Allowed: it is the instant at
    /// which nothing is used any more, or the end of the window.
    #[test]
    fn reset_at_is_correct(quota in quotas(), start in starts(), trace in traces(30)) {
        verify_trace(tiers(&quota), start, &trace)?;
    }

    /// Also between amounts so far apart that they are counted in other ticks.
    #[test]
    fn reset_at_is_correct_in_any_tick(
        quota in large_quotas(),
        start in starts(),
        factor in prop::sample::select(vec![10, 100, 1_000]),
        trace in traces(30),
    ) {
        let mut quotas = vec![quota];
        quotas.extend(quota.with_amount(quota.amount() / factor).ok());
        verify_trace(quotas, start, &trace)?;
    }

    #[test]
    fn remaining_changes_only_by_charges_and_refunds(
        quota in quotas(),
        start in starts(),
        trace in traces(30),
    ) {
        let mut walk = Walk::new(start, vec![quota]);
        let mut state = Plain::new(&quota);
        for step in &trace {
            let deed = walk.deed(step);
            let before = state.assess(&quota, deed.at, 0);
            let result = deed.apply(&mut state);
            let after = state.assess(&quota, deed.at, 0);
            prop_assert_eq!(after.remaining(), quota.burst().saturating_sub(after.used()));
            match (deed.op, result.map(|result| result.outcome)) {
                (Op::Refund(_), _) => prop_assert!(after.remaining() >= before.remaining()),
                (Op::Decide, Some(Outcome::Allowed)) => {
                    prop_assert_eq!(after.remaining() + deed.cost, before.remaining());
                }
                (Op::Record, _) => {
                    prop_assert_eq!(after.remaining(), before.remaining().saturating_sub(deed.cost));
                }
                _ => prop_assert_eq!(after, before),
            }
            walk.note(&deed, result);
        }
    }

    /// A state does not record the instants of checks that charged nothing. An instant before the
    /// last charge never has more room than the instant of that charge.
    #[test]
    fn a_clock_that_goes_back_frees_nothing(
        quota in quotas(),
        start in starts(),
        trace in traces(20),
        back in 0..u64::MAX,
    ) {
        let mut walk = Walk::new(start, vec![quota]);
        let mut state = Plain::new(&quota);
        for step in &trace {
            let deed = walk.deed(step);
            let result = deed.apply(&mut state);
            walk.note(&deed, result);
            if deed.op == Op::Record {
                let earlier = deed.at - back % (deed.at + 1);
                let (then, now) = (state.assess(&quota, earlier, 0), state.assess(&quota, deed.at, 0));
                prop_assert!(then.used() >= now.used(), "{:?}: {:?} at {}", deed, then, earlier);
                prop_assert!(!then.is_allowed() || now.is_allowed());
            }
        }
    }
}

/// Runs a trace under these quotas and verifies every result. The state is created for the first
/// quota.
fn verify_trace(quotas: Vec<Quota>, start: u64, trace: &[Step]) -> TestCaseResult {
    let mut state = Plain::new(&quotas[0]);
    let mut walk = Walk::new(start, quotas);
    for step in trace {
        let deed = walk.deed(step);
        let result = deed.apply(&mut state);
        if let Some(result) = result {
            verify_result(&state, &deed, result)?;
        }
        walk.note(&deed, result);
    }
    Ok(())
}

fn verify_result(state: &Plain, deed: &Deed, result: ModelUsage) -> TestCaseResult {
    let Deed { quota, at, .. } = *deed;
    // Debts of centuries are cut off where instants end.
    if result.reset_at > Timestamp::MAX.as_micros() {
        return Ok(());
    }
    // A recorded cost needs no room.
    let cost = if deed.op == Op::Record { 0 } else { deed.cost };
    let assess = |at, cost| state.assess(&quota, at, cost);
    let resets_at_window_end = matches!(
        quota.algorithm(),
        Algorithm::FixedWindow | Algorithm::SlidingWindow
    );
    match result.outcome {
        Outcome::Denied => {
            prop_assert!(result.reset_at > at);
            prop_assert!(
                assess(result.reset_at, cost).is_allowed(),
                "{:?}: too early",
                deed
            );
            for just_before in [result.reset_at - 1, at + (result.reset_at - at) / 2] {
                let still = assess(just_before, cost);
                prop_assert_eq!(still.outcome(), Outcome::Denied, "{:?}: too late", deed);
                prop_assert_eq!(still.reset_at().as_micros(), result.reset_at);
            }
        }
        Outcome::Allowed if resets_at_window_end => {
            prop_assert!(result.reset_at > at);
            let last = assess(result.reset_at - 1, 0);
            prop_assert_eq!(
                last.reset_at().as_micros(),
                result.reset_at.max(last.reset_at().as_micros())
            );
            prop_assert!(assess(result.reset_at, 0).reset_at().as_micros() > result.reset_at);
        }
        Outcome::Allowed => {
            prop_assert_eq!(
                assess(result.reset_at, 0).used(),
                0,
                "{:?}: not whole",
                deed
            );
            if result.reset_at > at {
                prop_assert!(
                    assess(result.reset_at - 1, 0).used() > 0,
                    "{:?}: whole before",
                    deed
                );
            }
        }
        _ => {
            prop_assert!(cost > quota.burst());
            let much_later = result.reset_at + (1 << 49);
            prop_assert_eq!(assess(much_later, cost).outcome(), Outcome::ExceedsCapacity);
        }
    }
    Ok(())
}
