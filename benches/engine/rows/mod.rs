//! Which rows there are.

mod fresh;
mod single;
mod timed;

use std::fmt;
use std::io;

use tollgate::Algorithm::{FixedWindow, SlidingLog, SlidingWindow, TokenBucket};
use tollgate_bench::Order::{Uniform, Zipf};
use tollgate_bench::{Args, Report, pass};

use crate::theirs::Governor;

use self::Size::{K1, K100, M1, M10};
use self::fresh::{new_keys, sliding_log, with_override};
use self::single::{bytes, denied, hot};
use self::timed::Kind::{Ip, Text};
use self::timed::Quotas::{One, Three};
use self::timed::Timed;

const GOVERNOR: &str = Governor::<String>::NAME;

/// Not every combination, but every choice in more than one.
const TIMES: &[Timed] = &[
    Timed(TokenBucket, One, Text, K1, Uniform, 1),
    Timed(TokenBucket, One, Text, K100, Uniform, 1),
    Timed(TokenBucket, One, Text, M1, Uniform, 1),
    Timed(TokenBucket, One, Text, K1, Zipf, 1),
    Timed(TokenBucket, One, Text, M1, Zipf, 1),
    Timed(TokenBucket, One, Text, K100, Uniform, 2),
    Timed(TokenBucket, One, Text, M1, Zipf, 2),
    Timed(TokenBucket, One, Ip, K1, Uniform, 1),
    Timed(TokenBucket, One, Ip, K100, Uniform, 1),
    Timed(TokenBucket, One, Ip, M1, Uniform, 1),
    Timed(TokenBucket, One, Ip, K100, Zipf, 2),
    Timed(SlidingWindow, One, Text, K1, Uniform, 1),
    Timed(SlidingWindow, One, Text, K100, Uniform, 1),
    Timed(FixedWindow, One, Text, K100, Uniform, 1),
    Timed(TokenBucket, Three, Text, K1, Uniform, 1),
    Timed(TokenBucket, Three, Text, K100, Uniform, 1),
    Timed(TokenBucket, Three, Text, M1, Uniform, 1),
    Timed(TokenBucket, Three, Text, K100, Zipf, 2),
    Timed(TokenBucket, Three, Ip, K100, Uniform, 1),
    Timed(SlidingWindow, Three, Text, K1, Uniform, 1),
    Timed(SlidingWindow, Three, Text, K100, Uniform, 1),
    Timed(SlidingWindow, Three, Text, M1, Uniform, 1),
    Timed(SlidingWindow, Three, Text, K100, Uniform, 2),
];

/// Those that need gigabytes and minutes.
const TIMES_IN_FULL: &[Timed] = &[
    Timed(TokenBucket, One, Text, M10, Uniform, 1),
    Timed(TokenBucket, One, Text, M10, Zipf, 2),
    Timed(TokenBucket, One, Ip, M10, Uniform, 1),
    Timed(TokenBucket, Three, Text, M10, Uniform, 1),
    Timed(SlidingWindow, Three, Text, M10, Uniform, 1),
];

/// Returns the selected rows.
pub fn all(args: &Args, report: &mut Report) -> io::Result<()> {
    let in_full = TIMES_IN_FULL.iter().filter(|_| args.full);
    for times in TIMES.iter().chain(in_full) {
        let id = times.id();
        if args.wants(&id) {
            times.measure(&id, report)?;
        }
    }
    for size in [K1, K100] {
        let id = format!("{TokenBucket}/denied/string/{size}/uniform/1t");
        if args.wants(&id) {
            denied(&id, size, report)?;
        }
    }
    for algorithm in [TokenBucket, SlidingWindow] {
        let id = format!("{algorithm}/hot/2t");
        if args.wants(&id) {
            hot(&id, algorithm, report)?;
        }
    }
    for (algorithm, at_most) in [(TokenBucket, 1.0), (SlidingLog, 1.3)] {
        let id = format!("{algorithm}/new/string/300k/1t");
        if args.wants(&id) {
            new_keys(&id, algorithm, at_most, report)?;
        }
    }
    let id = format!("{TokenBucket}/override/string/{K1}/1t");
    if args.wants(&id) {
        with_override(&id, K1, report)?;
    }
    let id = format!("{SlidingLog}/one/string/{K1}/uniform/1t");
    if args.wants(&id) {
        sliding_log(&id, K1, report)?;
    }
    for size in [K1, K100, M1] {
        let id = format!("{TokenBucket}/bytes/{size}");
        if args.wants(&id) {
            bytes(&id, size, report)?;
        }
    }
    Ok(())
}

/// How many keys there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    K1,
    K100,
    M1,
    M10,
}

impl Size {
    const fn keys(self) -> usize {
        match self {
            K1 => 1_000,
            K100 => 100_000,
            M1 => 1_000_000,
            M10 => 10_000_000,
        }
    }

    /// How many decisions one pass makes.
    const fn decisions(self) -> usize {
        match self {
            K1 | K100 => 400_000,
            M1 => 1_000_000,
            M10 => 2_000_000,
        }
    }

    const fn rounds(self) -> usize {
        match self {
            K1 | K100 => 11,
            M1 | M10 => 7,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            K1 => "1k",
            K100 => "100k",
            M1 => "1M",
            M10 => "10M",
        })
    }
}

/// The time of a pass in which everything is allowed.
fn allowed<'r, T, F>(requests: &'r [T], threads: usize, decide: F) -> f64
where
    T: Sync,
    F: Fn(&'r T) -> bool + Sync,
{
    timed(requests, threads, 1.0, decide)
}

/// The time of a pass, once sure that it did what it was meant to.
fn timed<'r, T, F>(requests: &'r [T], threads: usize, share: f64, decide: F) -> f64
where
    T: Sync,
    F: Fn(&'r T) -> bool + Sync,
{
    let pass = pass(requests, threads, decide);
    let off = (pass.allowed - share).abs();
    assert!(off < 0.001, "{} allowed instead of {share}", pass.allowed);
    pass.nanos
}
