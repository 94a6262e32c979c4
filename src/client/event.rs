//! Events for `tracing`. Without that feature, nobody is told.
//!
//! They name the host, and neither path, query nor key: those may hold secrets.

use std::time::Duration;

/// A request is held back, because little is left or the server said so.
pub(super) fn wait(host: &str, wait: Duration) {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: "tollgate", host, wait = wait.as_secs_f64(), "client_rate_limit_wait");
    #[cfg(not(feature = "tracing"))]
    let _ = (host, wait);
}

/// A request that was turned away will be sent again.
pub(super) fn retry(host: &str, status: u16, attempt: u32, wait: Duration) {
    #[cfg(feature = "tracing")]
    tracing::info!(
        target: "tollgate",
        host,
        status,
        attempt,
        wait = wait.as_secs_f64(),
        "client_rate_limit_retry"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (host, status, attempt, wait);
}

/// A request that was turned away will not be sent again.
pub(super) fn gave_up(host: &str, status: u16, attempt: u32, why: &'static str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "tollgate", host, status, attempt, why, "client_rate_limit_gave_up");
    #[cfg(not(feature = "tracing"))]
    let _ = (host, status, attempt, why);
}
