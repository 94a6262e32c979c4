//! Events for `tracing`. Without that feature, nobody is told.

pub(super) use told::*;

#[cfg(feature = "tracing")]
mod told {
    use std::cell::LazyCell;

    use tracing::Level;

    use crate::observe::thin::Untold;
    use crate::observe::{
        Alert, Exceeded, Head, Quota, Rejected, ReloadError, StoreError, Timestamp,
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
        tracing::warn!(target: "tollgate", tier = name, "unknown tier, taken for the default one");
    }

    /// Whether anybody listens to what is told of denials, so that it is worth thinning.
    pub(in crate::observe) fn hears_denials() -> bool {
        tracing::enabled!(target: "tollgate", Level::WARN)
    }

    /// Whether anybody listens to warnings, and to what rules would do that are tried out.
    pub(in crate::observe) fn hears_warnings() -> bool {
        tracing::enabled!(target: "tollgate", Level::INFO)
    }

    /// Whether anybody listens to what is told of every request.
    #[inline]
    pub(in crate::observe) fn hears_everything() -> bool {
        tracing::enabled!(target: "tollgate", Level::DEBUG)
    }

    /// Tells of a limit that was reached. What is told is worked out only if somebody listens.
    macro_rules! tell_of_limit {
        ($level:ident, $event:literal, $exceeded:expr, $identity:expr, $untold:expr) => {{
            let exceeded = LazyCell::new($exceeded);
            tracing::$level!(
                target: "tollgate",
                policy = exceeded.policy,
                endpoint = exceeded.endpoint,
                method = exceeded.head.method().as_str(),
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
        untold: Untold,
    ) {
        tell_of_limit!(warn, "rate_limit_exceeded", exceeded, identity, untold);
    }

    /// A rule that is only tried out would have turned a request away.
    pub(in crate::observe) fn would_exceed<'a>(
        exceeded: impl FnOnce() -> Exceeded<'a>,
        identity: &str,
        untold: Untold,
    ) {
        tell_of_limit!(info, "rate_limit_dry_run", exceeded, identity, untold);
    }

    /// A request was rejected before anything was counted. The path is cut.
    #[cold]
    pub(in crate::observe) fn rejected(rejected: &Rejected<'_>, identity: &str, untold: Untold) {
        /// Bytes of a path that are logged.
        const MAX_PATH_BYTES: usize = 256;

        let path = rejected.head.path();
        let cut = &path[..path.floor_char_boundary(MAX_PATH_BYTES)];
        tracing::warn!(
            target: "tollgate",
            reason = rejected.reason,
            endpoint = cut,
            method = rejected.head.method().as_str(),
            request_id = rejected.request_id,
            identity,
            untold = untold.same,
            untold_others = untold.others,
            "rate_limit_rejected"
        );
    }

    /// A request was let through that comes close to a limit.
    pub(in crate::observe) fn warned(exceeded: &Exceeded<'_>, identity: &str, untold: Untold) {
        tracing::info!(
            target: "tollgate",
            policy = exceeded.policy,
            endpoint = exceeded.endpoint,
            method = exceeded.head.method().as_str(),
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
            endpoint = exceeded.endpoint,
            method = exceeded.head.method().as_str(),
            limit = exceeded.limit,
            used = exceeded.used,
            remaining = exceeded.limit.saturating_sub(exceeded.used),
            window = exceeded.window,
            identity,
            "rate_limit_allowed"
        );
    }

    /// A request was not counted. Where somebody decided that for a person or for a while, it is
    /// for the audit.
    pub(in crate::observe) fn exempt(why: &'static str, is_audited: bool, head: &Head<'_>) {
        let (endpoint, method) = (head.path(), head.method().as_str());
        if is_audited {
            tracing::info!(target: "tollgate::audit", why, endpoint, method, "rate_limit_exempt");
        } else {
            tracing::debug!(target: "tollgate", why, endpoint, method, "rate_limit_exempt");
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

#[cfg(not(feature = "tracing"))]
mod told {
    use crate::observe::thin::Untold;
    use crate::observe::{
        Alert, Exceeded, Head, Quota, Rejected, ReloadError, StoreError, Timestamp,
    };

    pub(in crate::observe) fn no_peer_address() {}
    pub(in crate::observe) fn unknown_tier(_: &str) {}
    pub(in crate::observe) const fn hears_denials() -> bool {
        false
    }
    pub(in crate::observe) const fn hears_warnings() -> bool {
        false
    }
    pub(in crate::observe) const fn hears_everything() -> bool {
        false
    }
    pub(in crate::observe) fn exceeded<'a>(_: impl FnOnce() -> Exceeded<'a>, _: &str, _: Untold) {}
    pub(in crate::observe) fn would_exceed<'a>(
        _: impl FnOnce() -> Exceeded<'a>,
        _: &str,
        _: Untold,
    ) {
    }
    pub(in crate::observe) fn rejected(_: &Rejected<'_>, _: &str, _: Untold) {}
    pub(in crate::observe) fn warned(_: &Exceeded<'_>, _: &str, _: Untold) {}
    pub(in crate::observe) fn allowed(_: &Exceeded<'_>, _: &str) {}
    pub(in crate::observe) fn exempt(_: &'static str, _: bool, _: &Head<'_>) {}
    pub(in crate::observe) fn overridden(_: &str, _: Option<&Quota>, _: Option<Timestamp>) {}
    pub(in crate::observe) fn maintenance(_: Option<Timestamp>) {}
    pub(in crate::observe) fn reloaded(_: u64) {}
    pub(in crate::observe) fn reload_failed(_: &ReloadError) {}
    pub(in crate::observe) fn store_failed(_: &StoreError, _: u64) {}
    pub(in crate::observe) fn store_recovered(_: u64, _: u64) {}
    pub(in crate::observe) fn alert(_: &Alert, _: Option<&str>) {}
}
