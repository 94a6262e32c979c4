//! Rows of the report.

mod added;
mod denied;
mod jwt;
pub mod sides;

use std::io;

use tollgate_bench::{Args, Duel, Report, Row, Target};

use crate::loopback;

/// Rounds per row. A row is their median.
pub const ROUNDS: usize = 11;

/// Requests per round.
pub const REQUESTS: usize = 20_000;

/// Measures the selected rows.
pub fn all(args: &Args, report: &mut Report) -> io::Result<()> {
    added::all(args, report)?;
    denied::all(args, report)?;
    jwt::all(args, report)?;
    loopback::all(args, report)
}

/// Creates a row of costs with its target.
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
