//! Rows of their own kind: denials, one hot key, memory.

use std::io;

use stats_alloc::Region;
use tollgate::Algorithm::{self, TokenBucket};
use tollgate_bench::Order::Uniform;
use tollgate_bench::{Report, Row, Target, duel};

use super::Size::{self, M1};
use super::{GOVERNOR, allowed, timed};
use crate::HEAP;
use crate::ours::One;
use crate::theirs::{AxumGcra, Governor, RateNet};
use crate::work::{Allowance, Key as _};

/// All quotas are used up.
pub(super) fn denied(id: &str, size: Size, report: &mut Report) -> io::Result<()> {
    let keys = String::all(size.keys());
    let requests = Uniform.requests(&keys, size.decisions());
    let ours = One::new(&keys, Allowance::EXHAUSTED, TokenBucket);
    let theirs = Governor::new(&keys, Allowance::EXHAUSTED);
    let duel = duel(
        size.rounds(),
        || timed(&requests, 1, 0.0, |key| ours.decide(key)),
        || timed(&requests, 1, 0.0, |key| theirs.decide(key)),
    );
    report.add(Row::new(id, GOVERNOR, "ns", duel))
}

/// One key, and two threads that want it.
pub(super) fn hot(id: &str, algorithm: Algorithm, report: &mut Report) -> io::Result<()> {
    let target = Target {
        at_most: 0.67,
        stretch: None,
    };
    let keys = String::all(1);
    let requests = Uniform.requests(&keys, 1_000_000);
    let ours = One::new(&keys, Allowance::AMPLE, algorithm);
    let theirs = Governor::new(&keys, Allowance::AMPLE);
    let duel = duel(
        11,
        || allowed(&requests, 2, |key| ours.decide(key)),
        || allowed(&requests, 2, |key| theirs.decide(key)),
    );
    report.add(Row::new(id, GOVERNOR, "ns", duel).with_target(Some(target)))
}

const BYTES: &str = "\
Bytes are those requested; the overhead of the allocator is not counted. Ours keeps \
fingerprints, the others keep the keys.";

/// What is on the heap for each key, once all of them have come.
pub(super) fn bytes(id: &str, size: Size, report: &mut Report) -> io::Result<()> {
    let target = Target {
        at_most: 0.8,
        stretch: Some(0.6),
    };
    let keys = String::all(size.keys());
    let ours = || on_heap(keys.len(), || One::new(&keys, Allowance::USER, TokenBucket));
    let mut against = |peer, target, theirs: &dyn Fn() -> f64| {
        report.add(Row::new(id, peer, "B", duel(5, ours, theirs)).with_target(target))
    };
    let theirs = || on_heap(keys.len(), || Governor::new(&keys, Allowance::USER));
    against(GOVERNOR, Some(target), &theirs)?;
    if size == M1 {
        let theirs = || on_heap(keys.len(), || RateNet::new(&keys, Allowance::USER));
        against(RateNet::NAME, None, &theirs)?;
        let theirs = || {
            on_heap(keys.len(), || {
                AxumGcra::new(keys.iter().cloned(), Allowance::USER)
            })
        };
        against(AxumGcra::<String>::NAME, None, &theirs)?;
        report.note(RateNet::NOTE);
        report.note(AxumGcra::<String>::NOTE);
    }
    report.note(BYTES);
    Ok(())
}

fn on_heap<T>(keys: usize, make: impl Fn() -> T) -> f64 {
    let region = Region::new(HEAP);
    let made = make();
    let change = region.change();
    drop(made);
    (change.bytes_allocated as f64 - change.bytes_deallocated as f64) / keys as f64
}
