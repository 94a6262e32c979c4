//! Events for `tracing`.
//!
//! They name the host, and neither path, query nor key: those may hold secrets.

use std::time::Duration;

/// A request is held back, because little is left or the server said so.
pub(super) fn wait(host: &str, wait: Duration) {
    tracing::debug!(target: "tollgate", host, wait = wait.as_secs_f64(), "client_rate_limit_wait");
}

/// A request that was turned away will be sent again.
pub(super) fn retry(host: &str, status: u16, attempt: u32, wait: Duration) {
    tracing::info!(
        target: "tollgate",
        host,
        status,
        attempt,
        wait = wait.as_secs_f64(),
        "client_rate_limit_retry"
    );
}

/// A request that was turned away will not be sent again.
pub(super) fn gave_up(host: &str, status: u16, attempt: u32, why: &'static str) {
    tracing::warn!(target: "tollgate", host, status, attempt, why, "client_rate_limit_gave_up");
}
