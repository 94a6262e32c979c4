//! Denied requests: whole costs.

use std::io;

use tollgate_bench::{Args, Report, median};

use super::added::{measured, side};
use super::row;
use super::sides::{BARE, TOLLGATE};
use crate::drive::Handled;
use crate::theirs::{axum_governor, tower_governor};

const ID: &str = "deny/json";

pub fn all(args: &Args, report: &mut Report) -> io::Result<()> {
    if !args.wants(ID) {
        return Ok(());
    }
    let sides = [
        side(TOLLGATE, "denied"),
        side(TOLLGATE, "denied-outside"),
        side(tower_governor::NAME, "denied"),
        side(axum_governor::NAME, "denied"),
        side(BARE, "plain"),
    ];
    let results = measured(&sides, 0.0);
    let [ours, outside, tower, axum, bare] = [0, 1, 2, 3, 4].map(|side| middle(&results[side]));
    for (peer, theirs, at_most) in [
        (tower_governor::NAME, tower, None),
        (axum_governor::NAME, axum, None),
        (BARE, bare, Some(1.97)),
    ] {
        let times = (ours.nanos, theirs.nanos);
        report.add(row(ID, peer, "ns", times, at_most))?;
        let counts = (ours.allocations, theirs.allocations);
        report.add(row(ID, peer, "allocs", counts, at_most.map(|_| 1.5)))?;
    }
    let id = format!("{ID}/outside-router");
    let times = (outside.nanos, bare.nanos);
    report.add(row(&id, BARE, "ns", times, Some(1.4)))
}

fn middle(rounds: &[Handled]) -> Handled {
    let middle = |of: fn(&Handled) -> f64| median(rounds.iter().map(of).collect());
    Handled {
        nanos: middle(|handled| handled.nanos),
        allocations: middle(|handled| handled.allocations),
        allowed: 0.0,
    }
}
