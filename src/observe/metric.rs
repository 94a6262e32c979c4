//! Figures for the `metrics` facade. Without that feature, nobody is told.

/// Another policy is in force.
pub(super) fn reloaded(version: u64) {
    #[cfg(feature = "metrics")]
    {
        metrics::counter!("tollgate_policy_reloads_total", "outcome" => "ok").increment(1);
        #[expect(clippy::cast_precision_loss, reason = "nobody reloads that often")]
        metrics::gauge!("tollgate_policy_version").set(version as f64);
    }
    #[cfg(not(feature = "metrics"))]
    let _ = version;
}

/// Another policy was refused.
pub(super) fn reload_failed() {
    #[cfg(feature = "metrics")]
    metrics::counter!("tollgate_policy_reloads_total", "outcome" => "failed").increment(1);
}
