//! Allowed requests: time and allocations beyond those of the bare router.

use std::io;

use tollgate_bench::{Args, Report, median, turns};

use super::sides::{self, BARE, BARE_BEFORE, NO_OVERRIDE, NOTHING, TOLLGATE};
use super::{REQUESTS, ROUNDS, row};
use crate::drive::{Handled, Side};
use crate::theirs::{axum_gcra, axum_governor, tower_governor};

/// Row: id, work, and the peers to compare with (name, work, target).
struct Added {
    id: &'static str,
    work: &'static str,
    peers: &'static [(&'static str, &'static str, Option<f64>)],
}

const ROWS: &[Added] = &[
    Added {
        id: "allow/plain",
        work: "plain",
        peers: &[
            (tower_governor::NAME, "plain", None),
            (axum_gcra::NAME, "plain", None),
            (NOTHING, "plain", None),
        ],
    },
    Added {
        id: "allow/plain/sliding-window",
        work: "sliding",
        peers: &[(tower_governor::NAME, "plain", None)],
    },
    Added {
        id: "allow/headers",
        work: "headers",
        peers: &[
            (tower_governor::NAME, "headers", Some(0.87)),
            (axum_governor::NAME, "headers", None),
        ],
    },
    Added {
        id: "allow/headers/both",
        work: "both",
        peers: &[
            (tower_governor::NAME, "headers", None),
            (axum_governor::NAME, "headers", None),
        ],
    },
    Added {
        id: "allow/headers/override",
        work: "override",
        peers: &[(NO_OVERRIDE, "headers", Some(1.1))],
    },
    Added {
        id: "allow/outside-router/new",
        work: "new-outside",
        peers: &[
            (tower_governor::NAME, "new", None),
            (tower_governor::NAME, "new-outside", None),
        ],
    },
    Added {
        id: "allow/outside-router",
        work: "outside",
        peers: &[
            (tower_governor::NAME, "plain", Some(0.65)),
            (tower_governor::NAME, "outside", None),
        ],
    },
    Added {
        id: "allow/jwt-three-quotas-headers",
        work: "token",
        peers: &[(tower_governor::NAME, "token", Some(0.64))],
    },
    Added {
        id: "allow/jwt-three-quotas-headers/both",
        work: "token-both",
        peers: &[(tower_governor::NAME, "token", None)],
    },
];

pub fn all(args: &Args, report: &mut Report) -> io::Result<()> {
    for added in ROWS.iter().filter(|added| args.wants(added.id)) {
        added.measure(report)?;
    }
    Ok(())
}

impl Added {
    fn measure(&self, report: &mut Report) -> io::Result<()> {
        let bare = match self.work {
            token if token.starts_with("token") => "token",
            new if new.starts_with("new") => "new",
            _ => "plain",
        };
        let mut all = vec![side(BARE, bare), side(TOLLGATE, self.work)];
        all.extend(self.peers.iter().map(|(peer, work, _)| side(peer, work)));
        all.extend(self.is_with_before().then(|| side(BARE_BEFORE, "plain")));
        let results = measured(&all, 1.0);

        let ours = beyond(&results[1], &results[0]);
        for ((peer, work, at_most), result) in self.peers.iter().zip(&results[2..]) {
            let bare = match *peer {
                axum_gcra::NAME => results.last(),
                _ => results.first(),
            };
            let theirs = beyond(result, bare.expect("measured"));
            let id = match *work {
                "outside" | "new-outside" => format!("{}/both-outside", self.id),
                _ => self.id.to_owned(),
            };
            let times = (ours.nanos, theirs.nanos);
            report.add(row(&id, peer, "ns", times, *at_most))?;
            let counts = (ours.allocations, theirs.allocations);
            // Outside the router a request that is let through costs no memory at all.
            let none = (self.work == "outside" && *work == "plain").then_some(0.0);
            report.add(row(&id, peer, "allocs", counts, none))?;
            for (name, note) in NOTES {
                if name == *peer {
                    report.note(note);
                }
            }
        }
        Ok(())
    }

    fn is_with_before(&self) -> bool {
        self.peers.iter().any(|(peer, ..)| *peer == axum_gcra::NAME)
    }
}

const NOTES: [(&str, &str); 4] = [
    (
        NOTHING,
        "nothing: a layer that calls the service within and does nothing else.",
    ),
    (tower_governor::NAME, tower_governor::NOTE),
    (axum_governor::NAME, axum_governor::NOTE),
    (axum_gcra::NAME, axum_gcra::NOTE),
];

pub(super) fn side(name: &str, work: &str) -> Side {
    sides::named(name, work).expect("a side that there is")
}

/// All sides in turns, once sure that each did what it was meant to.
pub(super) fn measured(sides: &[Side], allowed: f64) -> Vec<Vec<Handled>> {
    let mut turn: Vec<Box<dyn FnMut() -> Handled>> = Vec::new();
    for side in sides {
        turn.push(Box::new(move || {
            let handled = side.handle(REQUESTS);
            let expected = if side.name.starts_with(BARE) {
                1.0
            } else {
                allowed
            };
            let off = (handled.allowed - expected).abs();
            assert!(off < 0.01, "{}: {} allowed", side.name, handled.allowed);
            handled
        }));
    }
    turns(ROUNDS, &mut turn)
}

/// What a side costs beyond another, in the middle of all rounds.
fn beyond(side: &[Handled], bare: &[Handled]) -> Handled {
    let middle = |of: fn(&Handled) -> f64| {
        let pairs = side.iter().zip(bare);
        median(pairs.map(|(side, bare)| of(side) - of(bare)).collect())
    };
    Handled {
        nanos: middle(|handled| handled.nanos),
        allocations: middle(|handled| handled.allocations),
        allowed: 1.0,
    }
}
