//! Metrics for the `metrics` facade. Each metric is defined once, in [`define_metrics!`] below.
//!
//! Handles are registered when the layer is built, so that every series is scraped with 0 before
//! its first event. They are looked up again at the first tick and kept from then on, because an
//! application may install its recorder after it has built the layer.

#[cfg(feature = "metrics")]
mod handles;

#[cfg(feature = "metrics")]
use std::collections::HashMap;
#[cfg(feature = "metrics")]
use std::sync::atomic::AtomicU64;

#[cfg(feature = "metrics")]
pub(super) use self::handles::NamedHandles;
#[cfg(feature = "metrics")]
use self::handles::Series;
#[cfg(feature = "metrics")]
use super::{AlertKind, Statistics, Telemetry};

/// Kind of a [`Metric`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricKind {
    /// Only increases.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Distribution of values.
    Histogram,
}

/// Label of a [`Metric`]. No label identifies a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricLabel {
    /// The name: `outcome`.
    pub name: &'static str,
    /// All values. Empty for the labels `policy` and `endpoint`, whose values are names of quotas
    /// and routes.
    pub values: &'static [&'static str],
}

/// One metric of the feature `metrics`. Names, labels and meanings are stable API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// The name: `tollgate_decisions_total`.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: MetricKind,
    /// The labels. At most one of them has fixed values.
    pub labels: &'static [MetricLabel],
    /// What it measures, in one sentence.
    pub description: &'static str,
}

/// Defines metrics: handle, kind, name, labels with their values, description.
///
/// Creates the list [`METRICS`], and for each `struct` the handles of its series.
macro_rules! define_metrics {
    ($(
        $(#[$doc:meta])*
        struct $scope:ident {
            $($handle:ident: $kind:ident $name:literal
                { $($label:ident: $values:expr),* } $description:literal;)*
        }
    )*) => {
        /// All metrics of the feature `metrics`.
        pub const METRICS: &[Metric] = &[$($(Metric {
            name: $name,
            kind: MetricKind::$kind,
            labels: &[$(MetricLabel { name: stringify!($label), values: $values }),*],
            description: $description,
        }),*),*];

        $(
            $(#[$doc])*
            #[cfg(feature = "metrics")]
            #[derive(Debug)]
            pub(super) struct $scope {
                $(pub(super) $handle: Series<::metrics::$kind>,)*
            }

            #[cfg(feature = "metrics")]
            impl $scope {
                /// Registers all series. `name` is the value of labels without fixed values.
                pub(super) fn register(name: &std::sync::Arc<str>) -> Self {
                    Self {
                        $($handle: Series::register(
                            $name,
                            &[$(MetricLabel { name: stringify!($label), values: $values }),*],
                            name,
                        ),)*
                    }
                }
            }
        )*
    };
}

define_metrics! {
    /// Metrics of one quota.
    struct PolicyMetrics {
        decisions: Counter "tollgate_decisions_total"
            { policy: &[], outcome: &["allowed", "denied", "would_deny"] }
            "Requests by their binding quota and by outcome: allowed, denied, or would_deny for a dry run.";
        remaining: Histogram "tollgate_remaining_ratio" { policy: &[] }
            "Share of the quota that remains after a request, from 0 to 1. One of 16 requests is measured.";
    }

    /// Metrics of one endpoint.
    struct EndpointMetrics {
        denied: Counter "tollgate_endpoint_denied_total" { endpoint: &[] }
            "Denied requests by the route of the policy that they matched.";
        remaining: Gauge "tollgate_endpoint_remaining_ratio" { endpoint: &[] }
            "Average share that remained of the tightest quota of a request over the last hour, from 0 to 1; NaN without requests.";
    }

    /// Metrics of a layer.
    struct LayerMetrics {
        exempt: Counter "tollgate_exempt_total"
            { why: &["route", "role", "subject", "network", "predicate", "maintenance"] }
            "Requests that were not counted because they are exempt, by the reason.";
        invalid_credentials: Counter "tollgate_invalid_credentials_total"
            { reason: &[
                "expired", "not-yet-valid", "keys-unavailable", "claims", "signature", "algorithm",
                "unknown-key", "issuer", "audience", "malformed", "api-key", "custom"
            ] }
            "Requests with a credential that is not accepted and without one that is, by reason.";
        rejected_requests: Counter "tollgate_rejected_requests_total"
            { reason: &["invalid-path", "path-too-long", "ambiguous-credentials", "token-too-large"] }
            "Requests that were rejected before they were counted, by reason.";
        unavailable: Counter "tollgate_unavailable_total" {}
            "Requests that got 503 because the store was unavailable.";
        decision_duration: Histogram "tollgate_decision_duration_seconds"
            { store: &["at_once", "waited"] }
            "Duration of decisions: at_once if the store answered synchronously (one of 64 is measured), waited if it did not (all are measured).";
        violators: Gauge "tollgate_violators" {}
            "Distinct callers that were denied within the last hour.";
        violating_addresses: Gauge "tollgate_violating_addresses" {}
            "Distinct client IPs that were denied within the last ten minutes.";
        worst_offender: Gauge "tollgate_worst_offender_denials" {}
            "Denials within the last hour of the caller that was denied most often.";
        ordinary_denied: Gauge "tollgate_ordinary_denied_ratio" {}
            "Estimated share of the requests of ordinary callers that were denied within the last hour, from 0 to 1.";
        retries: Counter "tollgate_retries_total"
            { outcome: &["admitted", "denied_again", "too_soon"] }
            "Retries of denied callers: admitted, denied_again, or too_soon.";
        alerts: Gauge "tollgate_alerts_firing"
            { alert: &["distributed_attack", "ordinary_callers_denied", "many_denials", "offender"] }
            "Firing alerts by kind.";
        store_errors: Counter "tollgate_store_errors_total" {}
            "Failed calls of the store.";
        store_healthy: Gauge "tollgate_store_healthy" {}
            "1 while the store answers, 0 while it does not or its circuit breaker is open.";
        store_keys: Gauge "tollgate_store_keys" {}
            "Counters in memory.";
        store_evictions: Counter "tollgate_store_evictions_total" {}
            "Counters in memory that were evicted before they had expired.";
        store_overflowed: Counter "tollgate_store_overflowed_total" {}
            "Checks that were counted in an overflow counter, because the store in memory was full of protected counters.";
        reloads: Counter "tollgate_policy_reloads_total" { outcome: &["ok", "failed"] }
            "Reloads of the policy: ok, or failed if the new policy was rejected.";
        policy_version: Gauge "tollgate_policy_version" {}
            "Version of the current policy.";
    }
}

/// Totals of the store that its counters have reached. Counters of several layers add up, so that
/// they are incremented and not set.
#[cfg(feature = "metrics")]
#[derive(Debug, Default)]
pub(super) struct PublishedTotals {
    evictions: AtomicU64,
    overflowed: AtomicU64,
}

#[cfg(feature = "metrics")]
impl Telemetry {
    /// Returns the metrics of this layer. They are registered by the first call.
    pub(in crate::observe) fn metrics(&self) -> &LayerMetrics {
        self.metrics
            .get_or_init(LayerMetrics::describe_and_register)
    }

    /// Sets all gauges. Called about once a second. No lock is held while the recorder is called: it
    /// may read the statistics.
    #[expect(clippy::cast_precision_loss, reason = "gauges are floating-point")]
    pub(crate) fn publish(&self, statistics: &Statistics) {
        if !self.enabled {
            return;
        }
        let metrics = self.metrics();
        metrics.violators.set("", statistics.violators.count as f64);
        metrics
            .violating_addresses
            .set("", statistics.violating_addresses.count as f64);
        metrics
            .worst_offender
            .set("", statistics.worst_offender_denials as f64);
        metrics
            .ordinary_denied
            .set("", statistics.ordinary_denied.unwrap_or_default());
        for kind in AlertKind::ALL {
            let firing = statistics.alerts.iter().filter(|alert| alert.kind == kind);
            metrics.alerts.set(kind.name(), firing.count() as f64);
        }
        let store = &statistics.store;
        metrics
            .store_healthy
            .set("", f64::from(u8::from(store.healthy)));
        metrics
            .store_keys
            .set("", store.keys.unwrap_or_default() as f64);
        let PublishedTotals {
            evictions,
            overflowed,
        } = &self.published;
        metrics
            .store_evictions
            .add_since("", evictions, store.evictions);
        metrics
            .store_overflowed
            .add_since("", overflowed, store.overflowed);
        metrics
            .policy_version
            .set("", statistics.policy_version as f64);
        let known = statistics.endpoints.iter();
        let remaining: HashMap<&str, Option<f64>> = known
            .map(|endpoint| (&*endpoint.name, endpoint.average_remaining))
            .collect();
        for endpoint in self.endpoints.all() {
            let remaining = remaining.get(&**endpoint.name()).copied().flatten();
            endpoint
                .metrics
                .endpoint(endpoint.name())
                .remaining
                .set("", remaining.unwrap_or(f64::NAN));
        }
        for policy in self.policies.all() {
            policy.metrics.policy(policy.name());
        }
    }
}
