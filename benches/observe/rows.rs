//! Which rows there are.

use std::io;
use std::thread;
use std::time::Instant;

use stats_alloc::Region;
use tollgate::headers::HeaderSet;
use tollgate_bench::{Args, Report, Row, Target, duel};

use crate::HEAP;
use crate::watched::{By, Watched, in_turn, requests};

/// Every row is the median of so many rounds, of so many requests each. Many short ones: what is
/// compared differs by less than whatever else runs takes away from a long one.
const ROUNDS: usize = 1_001;
const REQUESTS: u32 = 1_000;

/// A limit that is never reached.
const AMPLE: &str = "1_000_000_000/30d, token-bucket";

const PEER: &str = "not watched";

pub fn all(args: &Args, report: &mut Report) -> io::Result<()> {
    let watched = [(By::Statistics, "statistics"), (By::Metrics, "metrics")];
    for (by, name) in watched {
        for (what, quota, headers, at_most) in [
            ("allowed", AMPLE, HeaderSet::None, 1.1),
            ("allowed/headers", AMPLE, HeaderSet::Legacy, 1.05),
            ("denied", "blocked", HeaderSet::Legacy, 1.5),
        ] {
            let id = format!("{what}/{name}");
            if args.wants(&id) {
                let with = Watched::new(by, quota, headers);
                let without = Watched::new(By::Nothing, quota, headers);
                let duel = duel(ROUNDS, || nanos(&with), || nanos(&without));
                let target = Target {
                    at_most,
                    stretch: None,
                };
                report.add(Row::new(&id, PEER, "ns", duel).with_target(Some(target)))?;
            }
        }
        let id = format!("allowed/two-threads/{name}");
        if args.wants(&id) {
            let with = Watched::new(by, AMPLE, HeaderSet::None);
            let without = Watched::new(By::Nothing, AMPLE, HeaderSet::None);
            let duel = duel(ROUNDS, || nanos_of_two(&with), || nanos_of_two(&without));
            report.add(Row::new(&id, PEER, "ns", duel))?;
        }
    }
    for (id, quota) in [("memory/allowed", AMPLE), ("memory/denied", "blocked")] {
        if args.wants(id) {
            let duel = duel(
                1,
                || kilobytes(By::Statistics, quota),
                || kilobytes(By::Nothing, quota),
            );
            report.add(Row::new(id, PEER, "KiB for 10 M callers", duel))?;
        }
    }
    Ok(())
}

fn nanos(watched: &Watched) -> f64 {
    let requests = in_turn(REQUESTS);
    let started = Instant::now();
    watched.handle(requests);
    started.elapsed().as_secs_f64() * 1e9 / f64::from(REQUESTS)
}

/// Per request of one thread, while another does the same.
fn nanos_of_two(watched: &Watched) -> f64 {
    thread::scope(|scope| {
        let other = scope.spawn(|| nanos(watched));
        let own = nanos(watched);
        let other = other.join().expect("it does not panic");
        f64::midpoint(own, other)
    })
}

/// What is in use after ten million callers that was not before.
fn kilobytes(by: By, quota: &str) -> f64 {
    const CALLERS: u32 = 10_000_000;
    const AT_ONCE: u32 = 10_000;
    let region = Region::new(HEAP);
    let watched = Watched::new(by, quota, HeaderSet::None);
    for first in (0..CALLERS).step_by(AT_ONCE as usize) {
        watched.handle(requests(first..first + AT_ONCE));
    }
    let change = region.change();
    (change.bytes_allocated - change.bytes_deallocated) as f64 / 1_024.0
}
