//! Reservations that are committed, cancelled or dropped in any order. Finally the counters are as if
//! only the committed ones had been made.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Limiter, ManualClock, Reservation, Usage};

use crate::properties::config;

/// Quotas whose refunds are exact.
const EXACT: [&str; 4] = [
    "12/minute, fixed-window",
    "15/2m, sliding-window",
    "14/3m, sliding-buckets",
    "13/4m, sliding-log",
];
const BUCKET: [&str; 1] = ["10/minute, token-bucket, burst 6"];

#[derive(Clone, Copy, Debug)]
enum Fate {
    Committed,
    CommittedAs(u64),
    Cancelled,
    Dropped,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    /// Time since the previous step.
    after: Duration,
    cost: u64,
    fate: Fate,
    /// Number of steps until it is settled.
    settled_after: usize,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fate = prop_oneof![
        3 => Just(Fate::Committed),
        1 => (0..=4_u64).prop_map(Fate::CommittedAs),
        2 => Just(Fate::Cancelled),
        3 => Just(Fate::Dropped),
    ];
    // Often at the same instant, sometimes in the next window, sometimes after everything has expired.
    let after = prop_oneof![
        4 => Just(0),
        4 => 0..20_000_000_u64,
        2 => 0..150_000_000_u64,
        1 => 200_000_000..600_000_000_u64,
    ];
    let step =
        (after, 1..=4_u64, fate, 0..6_usize).prop_map(|(micros, cost, fate, settled_after)| Step {
            after: Duration::from_micros(micros),
            cost,
            fate,
            settled_after,
        });
    prop::collection::vec(step, 1..40)
}

fn limiter(quotas: &[&str], clock: &ManualClock) -> Limiter {
    let builder = Limiter::builder().clock(clock.clone());
    let builder = quotas
        .iter()
        .fold(builder, |builder, quota| builder.quota(*quota));
    builder.build().unwrap()
}

fn used(limiter: &Limiter) -> Vec<u64> {
    let usages = limiter.usages("all").wait().unwrap();
    usages.usages().iter().map(Usage::used).collect()
}

fn charge(limiter: &Limiter, cost: u64) {
    let recorded = limiter.record("all").cost(cost).wait().unwrap();
    assert_eq!(recorded.charged(), cost);
}

/// Settles a reservation, and charges the twin the difference if the final cost is higher.
fn settle(room: Reservation, step: Step, twin: &Limiter) {
    match step.fate {
        Fate::Committed => room.commit(),
        Fate::CommittedAs(cost) => {
            room.commit_cost(cost).wait().unwrap();
            if cost > step.cost {
                charge(twin, cost - step.cost);
            }
        }
        Fate::Cancelled => room.cancel().wait().unwrap(),
        Fate::Dropped => drop(room),
    }
}

/// Runs the steps with reservations. Charges a twin the final costs at the same instants. Returns both
/// after every reservation is settled.
fn run(quotas: &[&str], steps: &[Step]) -> (Limiter, Limiter, ManualClock) {
    let clock = ManualClock::new();
    let (real, twin) = (limiter(quotas, &clock), limiter(quotas, &clock));
    let mut held: Vec<(usize, Reservation, Step)> = Vec::new();
    for (index, &step) in steps.iter().enumerate() {
        clock.advance(step.after);
        let room = real.reserve("all").cost(step.cost).wait().unwrap();
        if room.is_allowed() {
            let happens = match step.fate {
                Fate::Committed => step.cost,
                Fate::CommittedAs(cost) => cost.min(step.cost),
                Fate::Cancelled | Fate::Dropped => 0,
            };
            charge(&twin, happens);
            held.push((index + step.settled_after, room, step));
        }
        let (due, later) = held.into_iter().partition(|(when, ..)| *when <= index);
        held = later;
        let due: Vec<(usize, Reservation, Step)> = due;
        for (_, room, step) in due {
            settle(room, step, &twin);
        }
    }
    for (_, room, step) in held {
        settle(room, step, &twin);
    }
    (real, twin, clock)
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn uncommitted_reservations_leave_no_charge(steps in steps(), later in 0..300_000_000_u64) {
        let (real, twin, clock) = run(&EXACT, &steps);
        prop_assert_eq!(used(&real), used(&twin));
        clock.advance(Duration::from_micros(later));
        prop_assert_eq!(used(&real), used(&twin));
    }

    /// A token bucket does not refund what has been refilled since the charge: it never holds
    /// more than if the charge had not been made.
    #[test]
    fn bucket_never_refunds_more_than_was_charged(steps in steps()) {
        let (real, twin, _clock) = run(&BUCKET, &steps);
        prop_assert!(used(&real) >= used(&twin), "{:?} {:?}", used(&real), used(&twin));
        let at_once: Vec<Step> = steps.iter().map(|step| Step { after: Duration::ZERO, ..*step }).collect();
        let (real, twin, _clock) = run(&BUCKET, &at_once);
        prop_assert_eq!(used(&real), used(&twin));
    }
}
