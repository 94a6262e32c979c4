//! Which rows there are.

mod added;
mod denied;
mod jwt;
pub mod sides;

use std::io;

use tollgate_bench::{Args, Duel, Report, Row, Target};

use crate::loopback;

/// Every row is the median of so many rounds.
pub const ROUNDS: usize = 11;

/// So many requests in each.
pub const REQUESTS: usize = 20_000;

/// Returns the selected rows.
pub fn all(args: &Args, report: &mut Report) -> io::Result<()> {
    added::all(args, report)?;
    denied::all(args, report)?;
    jwt::all(args, report)?;
    loopback::all(args, report)
}

/// A row of costs, and what is meant to come of it.
pub fn row(
    id: &str,
    peer: &'static str,
    unit: &'static str,
    (ours, theirs): (f64, f64),
    at_most: Option<f64>,
) -> Row {
    let target = at_most.map(|at_most| Target {
        at_most,
        stretch: None,
    });
    Row::new(id, peer, unit, Duel { ours, theirs }).with_target(target)
}
