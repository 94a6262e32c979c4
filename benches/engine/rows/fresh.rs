//! Rows for work that a known key with an ordinary quota does not have: new keys, an override for
//! another subject, a log of timestamps.

use std::io;

use tollgate::Algorithm::{self, SlidingLog, TokenBucket};
use tollgate_bench::Order::Uniform;
use tollgate_bench::{Report, Row, Target, duel};

use super::{GOVERNOR, Size, allowed};
use crate::ours::One;
use crate::theirs::Governor;
use crate::work::{Allowance, Key as _};

/// How many keys are new in each pass.
const NEW: usize = 300_000;

const ROUNDS: usize = 11;

const fn target(at_most: f64) -> Option<Target> {
    Some(Target {
        at_most,
        stretch: None,
    })
}

/// Each key once, against a limiter without counters. Both sides grow while they are measured.
pub(super) fn new_keys(
    id: &str,
    algorithm: Algorithm,
    at_most: f64,
    report: &mut Report,
) -> io::Result<()> {
    let keys = String::all(NEW);
    let known: &[String] = &[];
    let duel = duel(
        ROUNDS,
        || {
            let ours = One::new(known, Allowance::USER, algorithm);
            allowed(&keys, 1, |key| ours.decide(key))
        },
        || {
            let theirs = Governor::new(known, Allowance::USER);
            allowed(&keys, 1, |key| theirs.decide(key))
        },
    );
    report.add(Row::new(id, GOVERNOR, "ns", duel).with_target(target(at_most)))
}

/// A limiter with an override for a subject that sends no requests, next to one without.
pub(super) fn with_override(id: &str, size: Size, report: &mut Report) -> io::Result<()> {
    let keys = String::all(size.keys());
    let requests = Uniform.requests(&keys, size.decisions());
    let with = One::new(&keys, Allowance::USER, TokenBucket);
    with.set_override("unrelated");
    let without = One::new(&keys, Allowance::USER, TokenBucket);
    let duel = duel(
        size.rounds(),
        || allowed(&requests, 1, |key| with.decide(key)),
        || allowed(&requests, 1, |key| without.decide(key)),
    );
    report.add(Row::new(id, "no override", "ns", duel).with_target(target(1.1)))
}

/// A log of timestamps next to a token bucket, both ours.
pub(super) fn sliding_log(id: &str, size: Size, report: &mut Report) -> io::Result<()> {
    let keys = String::all(size.keys());
    let requests = Uniform.requests(&keys, size.decisions());
    let log = One::new(&keys, Allowance::USER, SlidingLog);
    let bucket = One::new(&keys, Allowance::USER, TokenBucket);
    let duel = duel(
        size.rounds(),
        || allowed(&requests, 1, |key| log.decide(key)),
        || allowed(&requests, 1, |key| bucket.decide(key)),
    );
    report.add(Row::new(id, "token-bucket", "ns", duel).with_target(target(2.0)))
}
