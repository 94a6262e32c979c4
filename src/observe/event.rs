//! Events for `tracing`. Their names and fields are stable API.

use std::cell::LazyCell;

use tracing::Level;
use tracing::field::display;

use super::log_sampler::Suppressed;
use super::pseudonym::CallerNames;
use super::truncate::{MAX_METHOD, MAX_TEXT, truncate};
use super::{Alert, Exceeded, Exempted, Rejected};
use crate::clock::Timestamp;
use crate::error::{ReloadError, StoreError};
use crate::quota::Quota;

pub(super) fn no_peer_address() {
    tracing::warn!(
        target: "tollgate",
        "the peer address of requests is not known, so all anonymous callers share one counter; \
         serve the router with `into_make_service_with_connect_info::<SocketAddr>()`, or put a \
         `tollgate::identity::PeerAddr` into the extensions of each request"
    );
}

pub(super) fn unknown_tier(name: &str) {
    let tier = &*truncate(name, MAX_TEXT);
    tracing::warn!(target: "tollgate", tier, "unknown tier, the default tier is used");
}

/// Returns whether events of denials are enabled.
pub(super) fn logs_denials() -> bool {
    tracing::enabled!(target: "tollgate", Level::WARN)
}

/// Returns whether events of warnings and dry runs are enabled.
pub(super) fn logs_warnings() -> bool {
    tracing::enabled!(target: "tollgate", Level::INFO)
}

/// Returns whether audit events are enabled.
pub(super) fn logs_audit() -> bool {
    tracing::enabled!(target: "tollgate::audit", Level::INFO)
}

/// Returns whether events of allowed requests are enabled.
#[inline]
pub(super) fn logs_allowed() -> bool {
    tracing::enabled!(target: "tollgate", Level::DEBUG)
}

/// Logs a limit that was reached. The fields are computed only if the event is enabled.
macro_rules! log_limit {
    ($level:ident, $event:literal, $exceeded:expr, $caller:expr, $suppressed:expr) => {{
        let exceeded = LazyCell::new($exceeded);
        tracing::$level!(
            target: "tollgate",
            identity = &*$caller.identity,
            ip = $caller.ip.as_deref(),
            endpoint = &*truncate(exceeded.endpoint, MAX_TEXT),
            method = &*truncate(exceeded.head.method().as_str(), MAX_METHOD),
            limit = exceeded.limit,
            actual_requests = exceeded.actual_requests(),
            used = exceeded.used,
            window = exceeded.window.map(display),
            policy = exceeded.policy,
            retry_after = exceeded.retry_after,
            request_id = exceeded.request_id,
            suppressed = $suppressed.same,
            suppressed_others = $suppressed.others,
            $event
        );
    }};
}

/// Logs a denied request.
pub(super) fn exceeded<'a>(
    exceeded: impl FnOnce() -> Exceeded<'a>,
    caller: &CallerNames,
    suppressed: Suppressed,
) {
    log_limit!(warn, "rate_limit_exceeded", exceeded, caller, suppressed);
}

/// Logs why a credential is not accepted.
pub(super) fn token_refused(reason: &'static str) {
    tracing::debug!(target: "tollgate", reason, "rate_limit_token_refused");
}

/// Logs the denial of a dry run.
pub(super) fn would_exceed<'a>(
    exceeded: impl FnOnce() -> Exceeded<'a>,
    caller: &CallerNames,
    suppressed: Suppressed,
) {
    log_limit!(info, "rate_limit_dry_run", exceeded, caller, suppressed);
}

/// Logs a request that is rejected before anything is counted.
#[cold]
pub(super) fn rejected(rejected: &Rejected<'_>, identity: &str, suppressed: Suppressed) {
    tracing::warn!(
        target: "tollgate",
        reason = rejected.reason,
        endpoint = &*truncate(rejected.head.path(), MAX_TEXT),
        method = &*truncate(rejected.head.method().as_str(), MAX_METHOD),
        request_id = rejected.request_id,
        identity,
        suppressed = suppressed.same,
        suppressed_others = suppressed.others,
        "rate_limit_rejected"
    );
}

/// Logs an allowed request that comes close to a limit.
pub(super) fn warned(exceeded: &Exceeded<'_>, identity: &str, suppressed: Suppressed) {
    tracing::info!(
        target: "tollgate",
        identity,
        endpoint = &*truncate(exceeded.endpoint, MAX_TEXT),
        method = &*truncate(exceeded.head.method().as_str(), MAX_METHOD),
        remaining = exceeded.remaining(),
        limit = exceeded.limit,
        percentage_remaining = exceeded.percentage_remaining(),
        used = exceeded.used,
        window = exceeded.window.map(display),
        policy = exceeded.policy,
        request_id = exceeded.request_id,
        suppressed = suppressed.same,
        suppressed_others = suppressed.others,
        "rate_limit_warning"
    );
}

/// Logs an allowed request.
pub(super) fn allowed(exceeded: &Exceeded<'_>, identity: &str) {
    tracing::debug!(
        target: "tollgate",
        identity,
        endpoint = &*truncate(exceeded.endpoint, MAX_TEXT),
        method = &*truncate(exceeded.head.method().as_str(), MAX_METHOD),
        remaining = exceeded.remaining(),
        limit = exceeded.limit,
        used = exceeded.used,
        window = exceeded.window.map(display),
        policy = exceeded.policy,
        "rate_limit_allowed"
    );
}

/// Logs an exempt request. Exemptions of a caller, and maintenance, go to the audit target. `suppressed`
/// is the number of events that were suppressed since the last one.
pub(super) fn exempt(exempted: &Exempted<'_>, identity: &str, suppressed: u64) {
    let (why, request_id) = (exempted.why, exempted.request_id);
    let role = exempted.role.map(|role| truncate(role, MAX_TEXT));
    let role = role.as_deref();
    let endpoint = &*truncate(exempted.head.path(), MAX_TEXT);
    let method = &*truncate(exempted.head.method().as_str(), MAX_METHOD);
    if exempted.is_audited {
        tracing::info!(
            target: "tollgate::audit",
            why, identity, role, endpoint, method, request_id, suppressed,
            "rate_limit_exempt"
        );
    } else {
        tracing::debug!(
            target: "tollgate",
            why, identity, role, endpoint, method, request_id,
            "rate_limit_exempt"
        );
    }
}

/// Logs an override, or the removal of the overrides of a rule, without the subject.
pub(super) fn overridden(rule: &str, quota: Option<&Quota>, until: Option<Timestamp>) {
    tracing::info!(
        target: "tollgate::audit",
        rule,
        quota = quota.map(display),
        until = until.map(display),
        "rate_limit_override"
    );
}

/// Logs that an operator has switched all limits off until an instant, or on again.
pub(super) fn maintenance(until: Option<Timestamp>) {
    tracing::info!(
        target: "tollgate::audit",
        until = until.map(display),
        "rate_limit_maintenance"
    );
}

pub(super) fn reloaded(version: u64) {
    tracing::info!(target: "tollgate", version, "rate_limit_policy_reloaded");
}

pub(super) fn reload_failed(error: &ReloadError) {
    tracing::error!(
        target: "tollgate",
        error = error as &dyn std::error::Error,
        "rate_limit_policy_not_reloaded"
    );
}

#[cold]
pub(super) fn store_failed(error: &StoreError, suppressed: u64) {
    tracing::error!(
        target: "tollgate",
        error = error as &dyn std::error::Error,
        kind = error.kind().name(),
        suppressed,
        "rate_limit_store_failed"
    );
}

#[cold]
pub(super) fn store_recovered(failing_for: u64, suppressed: u64) {
    tracing::info!(target: "tollgate", failing_for, suppressed, "rate_limit_store_recovered");
}

/// Logs an alert that fires or is resolved.
#[cold]
pub(super) fn alert(alert: &Alert, identity: Option<&str>) {
    let (kind, severity) = (alert.kind.name(), alert.severity().name());
    let (value, threshold) = (alert.value, alert.threshold);
    let description = display(alert);
    let addresses = alert.addresses.map(|addresses| addresses.count);
    if alert.is_firing() {
        tracing::warn!(
            target: "tollgate",
            alert = kind, severity, value, threshold, addresses, identity, description,
            "rate_limit_alert"
        );
    } else {
        tracing::info!(
            target: "tollgate",
            alert = kind, severity, value, threshold, addresses, identity, description,
            "rate_limit_alert_resolved"
        );
    }
}
