//! Which rows there are.

use std::io;
use std::time::Instant;

use stats_alloc::Region;
use tollgate_bench::{Args, Report, Row, Target, duel};

use crate::HEAP;
use crate::policies::{Limited, Wanted};

const MANY: usize = 10_000;
const FEW: usize = 10;

/// Every row is the median of so many rounds, of so many requests each.
const ROUNDS: usize = 11;
const REQUESTS: usize = 20_000;

pub fn all(args: &Args, report: &mut Report) -> io::Result<()> {
    let (many, few) = (Limited::new(MANY), Limited::new(FEW));
    for (wanted, name) in Wanted::ALL {
        // Requests use the same few routes, or all routes alike, which no cache of a
        // processor has room for.
        for (routes, how, at_most) in [(FEW, "some", 1.1), (MANY, "all", 1.5)] {
            let id = format!("resolve/{name}/{how}");
            if args.wants(&id) {
                let duel = duel(
                    ROUNDS,
                    || nanos(&many, wanted, routes),
                    || nanos(&few, wanted, FEW),
                );
                let target = Target {
                    at_most,
                    stretch: None,
                };
                let row = Row::new(&id, "ten endpoints", "ns", duel);
                report.add(row.with_target(Some(target)))?;
            }
        }
        let id = format!("resolve/{name}/allocations");
        if args.wants(&id) {
            let duel = duel(
                1,
                || allocations(&many, wanted, MANY),
                || allocations(&few, wanted, FEW),
            );
            report.add(Row::new(&id, "ten endpoints", "allocations", duel))?;
        }
    }
    Ok(())
}

fn nanos(limited: &Limited, wanted: Wanted, routes: usize) -> f64 {
    let requests = wanted.requests(routes, REQUESTS);
    let started = Instant::now();
    limited.handle(requests);
    started.elapsed().as_secs_f64() * 1e9 / REQUESTS as f64
}

fn allocations(limited: &Limited, wanted: Wanted, endpoints: usize) -> f64 {
    let requests = wanted.requests(endpoints, 1_000);
    let region = Region::new(HEAP);
    limited.handle(requests);
    region.change().allocations as f64 / 1_000.0
}
