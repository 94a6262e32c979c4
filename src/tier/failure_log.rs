//! Logs the first of several failures in a row.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the last look-up failed.
#[derive(Debug, Default)]
pub(super) struct FailureLog {
    is_failing: AtomicBool,
}

impl FailureLog {
    pub(super) fn failed(&self, error: impl Display) {
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            log_failure(&error);
        }
    }

    pub(super) fn succeeded(&self) {
        // Read first: as long as no look-up fails, the shared cache line is not written.
        if self.is_failing.load(Ordering::Relaxed) {
            self.is_failing.store(false, Ordering::Relaxed);
        }
    }
}

fn log_failure(error: &dyn Display) {
    tracing::warn!(
        target: "tollgate",
        event = "tier_lookup_failed",
        error = %error,
        "tier look-up failed, using the last known tier or the default tier"
    );
}
