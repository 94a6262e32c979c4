//! Events for `tracing`.

pub(super) use told::*;

mod told {
    use std::cell::LazyCell;

    use tracing::Level;

    use crate::observe::log_sampler::Suppressed;
    use crate::observe::truncate::{MAX_METHOD, MAX_TEXT, truncate};
    use crate::observe::{
        Alert, Exceeded, Quota, Rejected, ReloadError, RequestHead, StoreError, Timestamp,
    };

    pub(in crate::observe) fn no_peer_address() {
        tracing::warn!(
            target: "tollgate",
            "the peer address of requests is not known, so all anonymous callers share one counter; \
             serve the router with `into_make_service_with_connect_info::<SocketAddr>()`, or put a \
             `tollgate::identity::PeerAddr` into the extensions of each request"
        );
    }

    pub(in crate::observe) fn unknown_tier(name: &str) {
        let tier = &*truncate(name, MAX_TEXT);
        tracing::warn!(target: "tollgate", tier, "unknown tier, taken for the default one");
    }

    /// Whether anybody listens to what is told of denials, so that it is worth thinning.
    pub(in crate::observe) fn logs_denials() -> bool {
        tracing::enabled!(target: "tollgate", Level::WARN)
    }

    /// Whether anybody listens to warnings, and to what rules would do that are tried out.
    pub(in crate::observe) fn logs_warnings() -> bool {
        tracing::enabled!(target: "tollgate", Level::INFO)
    }

    /// Returns whether anything listens to audit events.
    pub(in crate::observe) fn logs_audit() -> bool {
        tracing::enabled!(target: "tollgate::audit", Level::INFO)
    }

    /// Whether anybody listens to what is told of every request.
    #[inline]
    pub(in crate::observe) fn logs_allowed() -> bool {
        tracing::enabled!(target: "tollgate", Level::DEBUG)
    }

    /// Tells of a limit that was reached. What is told is worked out only if somebody listens.
    macro_rules! tell_of_limit {
        ($level:ident, $event:literal, $exceeded:expr, $identity:expr, $untold:expr) => {{
            let exceeded = LazyCell::new($exceeded);
            tracing::$level!(
                target: "tollgate",
                policy = exceeded.policy,
                endpoint = &*truncate(exceeded.endpoint, MAX_TEXT),
                method = &*truncate(exceeded.head.method().as_str(), MAX_METHOD),
                limit = exceeded.limit,
                used = exceeded.used,
                window = exceeded.window,
                retry_after = exceeded.retry_after,
                request_id = exceeded.request_id,
                identity = $identity,
                untold = $untold.same,
                untold_others = $untold.others,
                $event
            );
        }};
    }

    /// A request was turned away.
    pub(in crate::observe) fn exceeded<'a>(
        exceeded: impl FnOnce() -> Exceeded<'a>,
        identity: &str,
        untold: Suppressed,
    ) {
        tell_of_limit!(warn, "rate_limit_exceeded", exceeded, identity, untold);
    }

    /// Reports why a credential is not accepted.
    pub(in crate::observe) fn token_refused(reason: &'static str) {
        tracing::debug!(target: "tollgate", reason, "rate_limit_token_refused");
    }

    /// A rule that is only tried out would have turned a request away.
    pub(in crate::observe) fn would_exceed<'a>(
        exceeded: impl FnOnce() -> Exceeded<'a>,
        identity: &str,
        untold: Suppressed,
    ) {
        tell_of_limit!(info, "rate_limit_dry_run", exceeded, identity, untold);
    }

    /// Reports a request that is rejected before anything is counted.
    #[cold]
    pub(in crate::observe) fn rejected(
        rejected: &Rejected<'_>,
        identity: &str,
        untold: Suppressed,
    ) {
        tracing::warn!(
            target: "tollgate",
            reason = rejected.reason,
            endpoint = &*truncate(rejected.head.path(), MAX_TEXT),
            method = &*truncate(rejected.head.method().as_str(), MAX_METHOD),
            request_id = rejected.request_id,
            identity,
            untold = untold.same,
            untold_others = untold.others,
            "rate_limit_rejected"
        );
    }

    /// A request was let through that comes close to a limit.
    pub(in crate::observe) fn warned(exceeded: &Exceeded<'_>, identity: &str, untold: Suppressed) {
        tracing::info!(
            target: "tollgate",
            policy = exceeded.policy,
            endpoint = &*truncate(exceeded.endpoint, MAX_TEXT),
            method = &*truncate(exceeded.head.method().as_str(), MAX_METHOD),
            limit = exceeded.limit,
            used = exceeded.used,
            remaining = exceeded.limit.saturating_sub(exceeded.used),
            window = exceeded.window,
            identity,
            untold = untold.same,
            untold_others = untold.others,
            "rate_limit_warning"
        );
    }

    /// A request was let through.
    pub(in crate::observe) fn allowed(exceeded: &Exceeded<'_>, identity: &str) {
        tracing::debug!(
            target: "tollgate",
            policy = exceeded.policy,
            endpoint = &*truncate(exceeded.endpoint, MAX_TEXT),
            method = &*truncate(exceeded.head.method().as_str(), MAX_METHOD),
            limit = exceeded.limit,
            used = exceeded.used,
            remaining = exceeded.limit.saturating_sub(exceeded.used),
            window = exceeded.window,
            identity,
            "rate_limit_allowed"
        );
    }

    /// Emits that a request was not counted. Exemptions of a caller, and maintenance, go to the audit
    /// target. `untold` is the number of events of this kind that were left out since the last one.
    pub(in crate::observe) fn exempt(
        why: &'static str,
        is_audited: bool,
        untold: u64,
        head: &RequestHead<'_>,
    ) {
        let endpoint = LazyCell::new(|| truncate(head.path(), MAX_TEXT));
        let method = LazyCell::new(|| truncate(head.method().as_str(), MAX_METHOD));
        if is_audited {
            tracing::info!(
                target: "tollgate::audit",
                why,
                endpoint = &**endpoint,
                method = &**method,
                untold,
                "rate_limit_exempt"
            );
        } else {
            tracing::debug!(
                target: "tollgate",
                why,
                endpoint = &**endpoint,
                method = &**method,
                "rate_limit_exempt"
            );
        }
    }

    /// A limit was set at run time, or those for a rule were removed. For whom is nobody's
    /// business who reads logs.
    pub(in crate::observe) fn overridden(
        rule: &str,
        quota: Option<&Quota>,
        until: Option<Timestamp>,
    ) {
        tracing::info!(
            target: "tollgate::audit",
            rule,
            quota = quota.map(tracing::field::display),
            until = until.map(tracing::field::display),
            "rate_limit_override"
        );
    }

    /// All limits are off until then, or on again, because an operator says so.
    pub(in crate::observe) fn maintenance(until: Option<Timestamp>) {
        tracing::info!(
            target: "tollgate::audit",
            until = until.map(tracing::field::display),
            "rate_limit_maintenance"
        );
    }

    pub(in crate::observe) fn reloaded(version: u64) {
        tracing::info!(target: "tollgate", version, "rate_limit_policy_reloaded");
    }

    pub(in crate::observe) fn reload_failed(error: &ReloadError) {
        tracing::error!(
            target: "tollgate",
            error = error as &dyn std::error::Error,
            "rate_limit_policy_not_reloaded"
        );
    }

    #[cold]
    pub(in crate::observe) fn store_failed(error: &StoreError, untold: u64) {
        tracing::error!(
            target: "tollgate",
            error = error as &dyn std::error::Error,
            kind = error.kind().name(),
            untold,
            "rate_limit_store_failed"
        );
    }

    #[cold]
    pub(in crate::observe) fn store_recovered(failing_for: u64, untold: u64) {
        tracing::info!(target: "tollgate", failing_for, untold, "rate_limit_store_recovered");
    }

    /// An alert begins, or is over.
    #[cold]
    pub(in crate::observe) fn alert(alert: &Alert, identity: Option<&str>) {
        let (kind, severity) = (alert.kind().name(), alert.severity().name());
        let (value, threshold) = (alert.value(), alert.threshold());
        let says = tracing::field::display(alert);
        if alert.is_firing() {
            tracing::warn!(
                target: "tollgate",
                alert = kind, severity, value, threshold, identity, says,
                "rate_limit_alert"
            );
        } else {
            tracing::info!(
                target: "tollgate",
                alert = kind, severity, value, threshold, identity, says,
                "rate_limit_alert_resolved"
            );
        }
    }
}
