//! Events for `tracing`.
//!
//! They contain the host, and neither path, query nor key, which may be secrets.

use std::time::Duration;

/// Logs a request that is delayed.
pub(super) fn wait(host: &str, wait: Duration) {
    tracing::debug!(target: "tollgate", host, wait = wait.as_secs_f64(), "client_rate_limit_wait");
}

/// Logs a retry of a refused request.
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

/// Logs a refused request that is not retried.
pub(super) fn gave_up(host: &str, status: u16, attempt: u32, why: &'static str) {
    tracing::warn!(target: "tollgate", host, status, attempt, why, "client_rate_limit_gave_up");
}
