//! Which figures there are.

/// What kind of figure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Many values, by how large they are.
    Histogram,
}

/// One of the figures that the feature `metrics` tells of. Names, labels and meanings are part
/// of what versions promise; more may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    name: &'static str,
    kind: MetricKind,
    labels: &'static [&'static str],
    description: &'static str,
}

impl Metric {
    /// Its name: `tollgate_decisions_total`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What kind of figure it is.
    #[must_use]
    pub const fn kind(&self) -> MetricKind {
        self.kind
    }

    /// The names of its labels. None ever says who somebody is.
    #[must_use]
    pub const fn labels(&self) -> &'static [&'static str] {
        self.labels
    }

    /// What it says, in a sentence.
    #[must_use]
    pub const fn description(&self) -> &'static str {
        self.description
    }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    description: &'static str,
) -> Metric {
    Metric {
        name,
        kind: MetricKind::Counter,
        labels,
        description,
    }
}

const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    description: &'static str,
) -> Metric {
    Metric {
        name,
        kind: MetricKind::Gauge,
        labels,
        description,
    }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    description: &'static str,
) -> Metric {
    Metric {
        name,
        kind: MetricKind::Histogram,
        labels,
        description,
    }
}

pub(super) const DECISIONS: &str = "tollgate_decisions_total";
pub(super) const ENDPOINT_DENIED: &str = "tollgate_endpoint_denied_total";
pub(super) const ENDPOINT_REMAINING: &str = "tollgate_endpoint_remaining_ratio";
pub(super) const EXEMPT: &str = "tollgate_exempt_total";
pub(super) const INVALID_CREDENTIALS: &str = "tollgate_invalid_credentials_total";
pub(super) const REJECTED: &str = "tollgate_rejected_requests_total";
pub(super) const UNAVAILABLE: &str = "tollgate_unavailable_total";
pub(super) const DECISION_SECONDS: &str = "tollgate_decision_duration_seconds";
pub(super) const REMAINING: &str = "tollgate_remaining_ratio";
pub(super) const VIOLATORS: &str = "tollgate_violators";
pub(super) const VIOLATING_ADDRESSES: &str = "tollgate_violating_addresses";
pub(super) const WORST_OFFENDER: &str = "tollgate_worst_offender_denials";
pub(super) const ORDINARY_DENIED: &str = "tollgate_ordinary_denied_ratio";
pub(super) const RETRIES: &str = "tollgate_retries_total";
pub(super) const ALERTS: &str = "tollgate_alerts_firing";
pub(super) const STORE_ERRORS: &str = "tollgate_store_errors_total";
pub(super) const STORE_HEALTHY: &str = "tollgate_store_healthy";
pub(super) const STORE_KEYS: &str = "tollgate_store_keys";
pub(super) const STORE_EVICTIONS: &str = "tollgate_store_evictions_total";
pub(super) const RELOADS: &str = "tollgate_policy_reloads_total";
pub(super) const VERSION: &str = "tollgate_policy_version";

/// All figures of the feature `metrics`.
pub const METRICS: &[Metric] = &[
    counter(
        DECISIONS,
        &["policy", "outcome"],
        "Requests by the quota that spoke for them, and by outcome: allowed, denied, or would_deny where a rule is only tried out.",
    ),
    counter(
        ENDPOINT_DENIED,
        &["endpoint"],
        "Requests that were denied, by the route of the policy that they matched.",
    ),
    gauge(
        ENDPOINT_REMAINING,
        &["endpoint"],
        "How much of their tightest quota requests had left on average over the last hour, from 0 to 1; not a number if there were none.",
    ),
    counter(
        EXEMPT,
        &["why"],
        "Requests that were not counted because they are exempt, by why.",
    ),
    counter(
        INVALID_CREDENTIALS,
        &[],
        "Requests that showed credentials that were wrong.",
    ),
    counter(
        REJECTED,
        &["reason"],
        "Requests that were rejected before anything was counted, by reason: invalid-path (400) or path-too-long (414).",
    ),
    counter(
        UNAVAILABLE,
        &[],
        "Requests that were answered with 503 because the store could not answer.",
    ),
    histogram(
        DECISION_SECONDS,
        &["store"],
        "How long decisions took, by whether the store answered at once (one of 64 is measured) or had to be waited for (all are).",
    ),
    histogram(
        REMAINING,
        &["policy"],
        "How much of the quota was left after a request, from 0 to 1. One of 16 requests is measured.",
    ),
    gauge(
        VIOLATORS,
        &[],
        "Callers that were denied within the last hour, each counted once.",
    ),
    gauge(
        VIOLATING_ADDRESSES,
        &[],
        "Addresses of clients that were denied within the last ten minutes, each counted once.",
    ),
    gauge(
        WORST_OFFENDER,
        &[],
        "How often the caller was denied within the last hour that was denied most often.",
    ),
    gauge(
        ORDINARY_DENIED,
        &[],
        "The estimated share of the requests of ordinary callers that were denied within the last hour, from 0 to 1.",
    ),
    counter(
        RETRIES,
        &["outcome"],
        "What became of callers that were told to wait: admitted, denied_again, or too_soon.",
    ),
    gauge(
        ALERTS,
        &["alert"],
        "How many alerts of each kind are firing.",
    ),
    counter(STORE_ERRORS, &[], "How often the store could not answer."),
    gauge(
        STORE_HEALTHY,
        &[],
        "1 while the store answers, 0 while it does not or its breaker is open.",
    ),
    gauge(STORE_KEYS, &[], "Counters that are kept in memory."),
    counter(
        STORE_EVICTIONS,
        &[],
        "Counters in memory that had to make way while they still counted.",
    ),
    counter(
        RELOADS,
        &["outcome"],
        "How often another policy was put in place (ok) or refused (failed).",
    ),
    gauge(VERSION, &[], "The version of the policy that is in force."),
];
