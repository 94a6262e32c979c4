//! Giving back undoes a charge, and never more than that.

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
    fn at_once_it_is_as_if_nothing_had_been_charged(
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
        // Beyond the limit, a full log holds charges of two instants to be of one.
        let cost = cost.min(before.remaining());
        state.record(&quota, now, cost);
        state.refund(&quota, now, now, cost);
        let after = state.assess(&quota, now, 0);
        let in_mid_tick = !u128::from(now).is_multiple_of(quota.tick().as_micros());
        if quota.algorithm() == Algorithm::TokenBucket && in_mid_tick {
            // The tick that is running may have refilled it already, for all the bucket knows.
            prop_assert!((before.used()..=before.used() + cost).contains(&after.used()));
        } else {
            prop_assert_eq!(after, before);
        }
    }

    /// Somebody charges once and gives it back some time later, in whatever window that is.
    /// From then on there is no more room than if it had never been charged, and no less than
    /// if it had never been given back.
    #[test]
    fn it_never_makes_more_room_than_there_was(
        quota in quotas(),
        start in starts(),
        trace in traces(30),
        charged in 0..10_usize,
        given_back in 1..20_usize,
    ) {
        let mut walk = Walk::new(start, vec![quota]);
        let (mut given, mut kept) = (Plain::new(&quota), Plain::new(&quota));
        let mut never = Plain::new(&quota);
        let mut charge: Option<Deed> = None;
        for (index, step) in trace.iter().enumerate() {
            let mut deed = walk.deed(step);
            // Only what both a full and a less full counter admit, so that they stay alike.
            deed.op = Op::Decide;
            if kept.peek(&quota, deed.at, deed.cost).outcome == Outcome::Allowed {
                let result = deed.apply(&mut kept);
                deed.apply(&mut given);
                if index == charged {
                    charge = Some(deed);
                } else {
                    deed.apply(&mut never);
                }
                walk.note(&deed, result);
            }
            if let Some(charge) = charge.filter(|_| index == charged + given_back) {
                given.refund(&quota, charge.at, deed.at, charge.cost);
            }
            let window = micros(quota.window().duration());
            for later in [0, 1, window / 3, window / 2, window, 2 * window] {
                let used = |state: &Plain| state.assess(&quota, deed.at + later, 0).used();
                let least = used(&never).saturating_sub(rounding(&quota));
                prop_assert!(used(&given) >= least, "more room {later} after {deed:?}");
                prop_assert!(used(&given) <= used(&kept), "less room {later} after {deed:?}");
            }
        }
    }

    /// However much is given back, and whenever it is said to have been charged: nothing is
    /// used up by it, and nothing is taken out of a window that is long over.
    #[test]
    fn it_never_goes_below_nothing_or_into_the_past(
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
