//! Steps of the wall clock: what follows them, and what does not.

mod admin;
mod calendar;
mod layer;
mod redis;

use std::time::Duration;

use tollgate::{Clock, ManualClock, Timestamp};

/// 2025-01-01 00:00:00 UTC, where a manual clock starts.
const START: u64 = 1_735_689_600;
const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// Steps of the wall clock, in seconds.
const HOUR_STEP: i64 = HOUR.cast_signed();
const DAY_STEP: i64 = DAY.cast_signed();

/// The steps of every test, in seconds.
const STEPS: [i64; 4] = [2 * HOUR_STEP, DAY_STEP, -2 * HOUR_STEP, -DAY_STEP];

fn step(clock: &ManualClock, seconds: i64) {
    let by = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        clock.step_wall_back(by);
    } else {
        clock.step_wall_forward(by);
    }
}

/// Returns the time of the wall clock.
fn wall(clock: &ManualClock) -> Timestamp {
    clock.now().offset_by(clock.wall_offset())
}

/// Sets the wall clock, as a step.
fn set_wall(clock: &ManualClock, to: u64) {
    let now = i64::try_from(wall(clock).as_micros() / 1_000_000).unwrap();
    step(clock, i64::try_from(to).unwrap() - now);
}
