//! Failures, of which only the first in a row is worth a line in the log.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the last lookup failed.
#[derive(Debug, Default)]
pub(super) struct Streak {
    failing: AtomicBool,
}

impl Streak {
    pub(super) fn failed(&self, why: impl Display) {
        if !self.failing.swap(true, Ordering::Relaxed) {
            report(&why);
        }
    }

    pub(super) fn succeeded(&self) {
        // Looked at first: with all going well, nobody writes to the shared line.
        if self.failing.load(Ordering::Relaxed) {
            self.failing.store(false, Ordering::Relaxed);
        }
    }
}

fn report(why: &dyn Display) {
    tracing::warn!(
        target: "tollgate",
        event = "tier_lookup_failed",
        error = %why,
        "a tier could not be looked up: the last known one counts, else the default tier"
    );
}
