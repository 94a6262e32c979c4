//! How the five algorithms differ: what each of them admits of the same requests, over time. The
//! pictures in the guide to algorithms are what this prints.
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
/// Every picture is four minutes long, in columns of five seconds. All times are milliseconds.
const COLUMNS: u64 = 48;
const COLUMN: u64 = 5_000;
const MINUTE: u64 = 60_000;

fn main() -> Result<(), tollgate::Error> {
    let steadily: Vec<u64> = (0..480).map(|i| i * 500).collect();
    picture("Two requests a second, twice the limit", &steadily)?;

    let at_once = |second: u64| (0..60).map(move |i| second * 1_000 + i);
    let bursts: Vec<u64> = [57, 61, 117, 121, 175]
        .into_iter()
        .flat_map(at_once)
        .collect();
    picture("Sixty at once, around the full minute", &bursts)
}

/// What each algorithm admits of requests that come at these moments.
fn picture(title: &str, requests: &[u64]) -> Result<(), tollgate::Error> {
    println!("{title}\n");
    println!("{:50}most in", "");
    println!(
        "{:38}admitted  any minute  0:00        1:00        2:00        3:00",
        ""
    );
    let highest = columns(requests).max().unwrap_or(0);
    line("asked for", requests, highest);
    for quota in QUOTAS {
        let clock = ManualClock::new();
        let start = clock.now();
        let limiter = Limiter::builder()
            .quota(quota)
            .clock(clock.clone())
            .build()?;
        let mut admitted = Vec::new();
        for &moment in requests {
            clock.set(start.saturating_add(Duration::from_millis(moment)));
            if limiter.check("somebody").wait()?.is_allowed() {
                admitted.push(moment);
            }
        }
        line(quota, &admitted, highest);
    }
    println!();
    Ok(())
}

fn line(name: &str, moments: &[u64], highest: usize) {
    let (all, most) = (moments.len(), most_in_any_minute(moments));
    let drawn: String = columns(moments)
        .map(|count| block(count, highest))
        .collect();
    println!("{name:38}{all:>8}  {most:>10}  {}", drawn.trim_end());
}

/// The most that any stretch of a minute holds. One of those that hold the most begins with a
/// request.
fn most_in_any_minute(moments: &[u64]) -> usize {
    let from = |first: u64| {
        moments
            .iter()
            .filter(move |&&at| at >= first && at < first + MINUTE)
    };
    moments
        .iter()
        .map(|&first| from(first).count())
        .max()
        .unwrap_or(0)
}

/// How many there are in each five seconds.
fn columns(moments: &[u64]) -> impl Iterator<Item = usize> {
    (0..COLUMNS).map(|number| {
        let column = number * COLUMN..(number + 1) * COLUMN;
        moments.iter().filter(|at| column.contains(at)).count()
    })
}

/// A block for as many as `highest`, and as many eighths of it as it takes for fewer.
fn block(count: usize, highest: usize) -> char {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    EIGHTHS[(count * 8).div_ceil(highest.max(1))]
}
