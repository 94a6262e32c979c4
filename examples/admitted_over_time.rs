//! Prints which of the same requests each algorithm admits, over time. The charts in the guide to
//! algorithms are the output of this program.
//!
//! ```sh
//! cargo run --example admitted_over_time
//! ```

#![expect(clippy::print_stdout, reason = "the example prints its results")]

use std::time::Duration;

use tollgate::{Clock, Limiter, ManualClock};

const QUOTAS: [&str; 6] = [
    "60/minute, sliding-window",
    "60/minute, fixed-window",
    "60/minute, sliding-buckets, buckets 12",
    "60/minute, sliding-log",
    "60/minute, token-bucket",
    "60/minute, token-bucket, burst 10",
];
/// A chart covers four minutes, in columns of five seconds. All times are in milliseconds.
const COLUMNS: u64 = 48;
const COLUMN: u64 = 5_000;
const MINUTE: u64 = 60_000;

fn main() -> Result<(), tollgate::Error> {
    let steadily: Vec<u64> = (0..480).map(|i| i * 500).collect();
    print_chart("Two requests a second, twice the limit", &steadily)?;

    let at_once = |second: u64| (0..60).map(move |i| second * 1_000 + i);
    let bursts: Vec<u64> = [57, 61, 117, 121, 175]
        .into_iter()
        .flat_map(at_once)
        .collect();
    print_chart("Sixty at once, around the full minute", &bursts)
}

/// Prints what each algorithm admits of requests at these times.
fn print_chart(title: &str, requests: &[u64]) -> Result<(), tollgate::Error> {
    println!("{title}\n");
    println!("{:50}most in", "");
    println!(
        "{:38}admitted  any minute  0:00        1:00        2:00        3:00",
        ""
    );
    let highest = columns(requests).max().unwrap_or(0);
    print_row("sent", requests, highest);
    for quota in QUOTAS {
        let clock = ManualClock::new();
        let start = clock.now();
        let limiter = Limiter::builder()
            .quota(quota)
            .clock(clock.clone())
            .build()?;
        let mut admitted = Vec::new();
        for &time in requests {
            clock.set(start.saturating_add(Duration::from_millis(time)));
            if limiter.check("caller").wait()?.is_allowed() {
                admitted.push(time);
            }
        }
        print_row(quota, &admitted, highest);
    }
    println!();
    Ok(())
}

fn print_row(name: &str, times: &[u64], highest: usize) {
    let (all, most) = (times.len(), most_in_any_minute(times));
    let blocks: String = columns(times).map(|count| block(count, highest)).collect();
    println!("{name:38}{all:>8}  {most:>10}  {}", blocks.trim_end());
}

/// Returns the largest number of requests in any minute. One of the minutes with that number begins with
/// a request.
fn most_in_any_minute(times: &[u64]) -> usize {
    let from = |first: u64| {
        times
            .iter()
            .filter(move |&&at| at >= first && at < first + MINUTE)
    };
    times
        .iter()
        .map(|&first| from(first).count())
        .max()
        .unwrap_or(0)
}

/// Returns the number of requests in each column.
fn columns(times: &[u64]) -> impl Iterator<Item = usize> {
    (0..COLUMNS).map(|number| {
        let column = number * COLUMN..(number + 1) * COLUMN;
        times.iter().filter(|at| column.contains(at)).count()
    })
}

/// Returns a full block for `highest`, and the eighths of it for a smaller count, rounded up.
fn block(count: usize, highest: usize) -> char {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    EIGHTHS[(count * 8).div_ceil(highest.max(1))]
}
