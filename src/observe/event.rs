//! Events for `tracing`. Without that feature, nobody is told.

pub(crate) use told::*;

#[cfg(feature = "tracing")]
mod told {
    use std::cell::LazyCell;
    use std::time::Duration;

    use crate::observe::{Exceeded, Head, Quota, ReloadError, StoreError, Timestamp};

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

    /// Tells of a limit that was reached. What is told is worked out only if somebody listens.
    macro_rules! tell_of_limit {
        ($level:ident, $event:literal, $exceeded:expr) => {{
            let exceeded = LazyCell::new($exceeded);
            tracing::$level!(
                target: "tollgate",
                policy = exceeded.policy,
                endpoint = exceeded.head.path(),
                method = exceeded.head.method().as_str(),
                limit = exceeded.limit,
                used = exceeded.used,
                window = exceeded.window,
                retry_after = exceeded.retry_after,
                request_id = exceeded.request_id,
                $event
            );
        }};
    }

    /// A request was turned away.
    pub(crate) fn exceeded<'a>(exceeded: impl FnOnce() -> Exceeded<'a>) {
        tell_of_limit!(warn, "rate_limit_exceeded", exceeded);
    }

    /// A rule that is only tried out would have turned a request away.
    pub(crate) fn would_exceed<'a>(exceeded: impl FnOnce() -> Exceeded<'a>) {
        tell_of_limit!(info, "rate_limit_dry_run", exceeded);
    }

    /// A request was not counted. Where somebody decided that for a person or for a while, it is
    /// for the audit.
    pub(crate) fn exempt(why: &'static str, is_audited: bool, head: &Head<'_>) {
        let (endpoint, method) = (head.path(), head.method().as_str());
        if is_audited {
            tracing::info!(target: "tollgate::audit", why, endpoint, method, "rate_limit_exempt");
        } else {
            tracing::debug!(target: "tollgate", why, endpoint, method, "rate_limit_exempt");
        }
    }

    /// A limit was set at run time, or those for a rule were removed. For whom is nobody's
    /// business who reads logs.
    pub(crate) fn overridden(rule: &str, quota: Option<&Quota>, until: Option<Timestamp>) {
        tracing::info!(
            target: "tollgate::audit",
            rule,
            quota = quota.map(tracing::field::display),
            until = until.map(tracing::field::display),
            "rate_limit_override"
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
    pub(in crate::observe) fn store_recovered(after: Duration, untold: u64) {
        tracing::info!(
            target: "tollgate",
            after_secs = after.as_secs_f64(),
            untold,
            "rate_limit_store_recovered"
        );
    }
}

#[cfg(not(feature = "tracing"))]
mod told {
    use std::time::Duration;

    use crate::observe::{Exceeded, Head, Quota, ReloadError, StoreError, Timestamp};

    pub(in crate::observe) fn no_peer_address() {}
    pub(in crate::observe) fn unknown_tier(_: &str) {}
    pub(crate) fn exceeded<'a>(_: impl FnOnce() -> Exceeded<'a>) {}
    pub(crate) fn would_exceed<'a>(_: impl FnOnce() -> Exceeded<'a>) {}
    pub(crate) fn exempt(_: &'static str, _: bool, _: &Head<'_>) {}
    pub(crate) fn overridden(_: &str, _: Option<&Quota>, _: Option<Timestamp>) {}
    pub(in crate::observe) fn reloaded(_: u64) {}
    pub(in crate::observe) fn reload_failed(_: &ReloadError) {}
    pub(in crate::observe) fn store_failed(_: &StoreError, _: u64) {}
    pub(in crate::observe) fn store_recovered(_: Duration, _: u64) {}
}
