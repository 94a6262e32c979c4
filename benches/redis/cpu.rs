//! CPU time in microseconds, from `/proc`.

use std::fs;

/// By all threads of this process that still are.
pub fn of_this_process() -> f64 {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return f64::NAN;
    };
    let nanoseconds = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e3
}

/// By all children that have ended, and were waited for. In steps of a hundredth of a second.
pub fn of_children() -> f64 {
    const MICROS_PER_TICK: f64 = 1e4;
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which is in brackets and may be anything.
    let (_, fields) = text.rsplit_once(')').unwrap_or_default();
    let ticks = fields.split_whitespace().skip(13).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        * MICROS_PER_TICK
}
