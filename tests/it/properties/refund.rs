//! A refund undoes a charge, and never more than that.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Algorithm, Outcome, Quota};

use super::config;
use super::counters::{Counts, Deed, Op, Plain};
use super::quotas::quotas;
use super::traces::{Walk, starts, traces};

proptest! {
    #![proptest_config(config(15_000))]

    #[test]
    fn immediate_refund_restores_the_usage(
        quota in quotas(),
        start in starts(),
        trace in traces(20),
        cost in 1..=40_u64,
    ) {
        let mut walk = Walk::new(start, vec![quota]);
        let mut state = Plain::new(&quota);
        let mut now = start;
        for step in &trace {
            let deed = walk.deed(step);
            let result = deed.apply(&mut state);
            walk.note(&deed, result);
            now = deed.at;
        }
        let before = state.assess(&quota, now, 0);
        // Beyond the limit, a full log merges charges of two instants into one entry.
        let cost = cost.min(before.remaining());
        state.record(&quota, now, cost);
        state.refund(&quota, now, now, cost);
        let after = state.assess(&quota, now, 0);
        let in_mid_tick = !u128::from(now).is_multiple_of(quota.tick().as_micros());
        if quota.algorithm() == Algorithm::TokenBucket && in_mid_tick {
            // The bucket cannot exclude that the current tick has refilled it already.
            prop_assert!((before.used()..=before.used() + cost).contains(&after.used()));
        } else {
            prop_assert_eq!(after, before);
        }
    }

    /// A charge is refunded later, in the same or in another window. From then on there is no more
    /// room than without the charge, and no less than without the refund.
    #[test]
    fn refund_never_makes_more_room_than_the_charge_took(
        quota in quotas(),
        start in starts(),
        trace in traces(30),
        charged in 0..10_usize,
        refunded_after in 1..20_usize,
    ) {
        let mut walk = Walk::new(start, vec![quota]);
        let (mut refunded, mut kept) = (Plain::new(&quota), Plain::new(&quota));
        let mut never = Plain::new(&quota);
        let mut charge: Option<Deed> = None;
        for (index, step) in trace.iter().enumerate() {
            let mut deed = walk.deed(step);
            // Only costs that both counters admit, so that their histories stay equal.
            deed.op = Op::Decide;
            if kept.peek(&quota, deed.at, deed.cost).outcome == Outcome::Allowed {
                let result = deed.apply(&mut kept);
                deed.apply(&mut refunded);
                if index == charged {
                    charge = Some(deed);
                } else {
                    deed.apply(&mut never);
                }
                walk.note(&deed, result);
            }
            if let Some(charge) = charge.filter(|_| index == charged + refunded_after) {
                refunded.refund(&quota, charge.at, deed.at, charge.cost);
            }
            let window = micros(quota.window().duration());
            for later in [0, 1, window / 3, window / 2, window, 2 * window] {
                let used = |state: &Plain| state.assess(&quota, deed.at + later, 0).used();
                let least = used(&never).saturating_sub(rounding(&quota));
                prop_assert!(used(&refunded) >= least, "more room {later} after {deed:?}");
                prop_assert!(used(&refunded) <= used(&kept), "less room {later} after {deed:?}");
            }
        }
    }

    /// A refund of any amount, with any instant of the charge, never increases the usage and never
    /// changes a window that is over.
    #[test]
    fn refund_never_underflows_or_changes_a_past_window(
        quota in quotas(),
        start in starts(),
        trace in traces(20),
        cost in 0..u64::MAX,
    ) {
        let mut walk = Walk::new(start, vec![quota]);
        let mut state = Plain::new(&quota);
        for step in &trace {
            let deed = walk.deed(step);
            let result = deed.apply(&mut state);
            walk.note(&deed, result);
            let before = state.assess(&quota, deed.at, 0);
            let long_over = deed.at.checked_sub(4 * micros(quota.window().duration()));
            if let Some(long_over) = long_over {
                state.refund(&quota, long_over, deed.at, quota.burst());
                prop_assert_eq!(state.assess(&quota, deed.at, 0), before);
            }
            state.refund(&quota, deed.at, deed.at, cost);
            prop_assert!(state.assess(&quota, deed.at, 0).used() <= before.used());
        }
    }
}

/// Where time moves in ticks, a token bucket that is almost whole loses up to a tick's refill
/// when it is taken from. One history may lose it and the other not.
fn rounding(quota: &Quota) -> u64 {
    match (quota.algorithm(), micros(quota.tick())) {
        (Algorithm::TokenBucket, tick @ 2..) => {
            let window = u128::from(micros(quota.window().duration()));
            let refill = u128::from(quota.amount()) * u128::from(tick);
            u64::try_from(refill.div_ceil(window)).expect("less than the amount")
        }
        _ => 0,
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("at most ten years")
}
