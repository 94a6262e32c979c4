//! Events, metrics, statistics and alerts.
//!
//! - **Events** for `tracing`: denials and their quota, warnings, exemptions, state of the store.
//!   Callers appear as a keyed hash, unless
//!   [plain identities](crate::RateLimitLayerBuilder::log_plain_identities) are switched on.
//!   Repeated events are sampled.
//! - **Metrics** for the `metrics` facade (feature of that name): [`METRICS`] is the list.
//! - [`Statistics`] of the process:
//!   [`RateLimitLayer::statistics`](crate::RateLimitLayer::statistics).
//! - [`Alert`]s, delivered once when they fire and once when they are resolved:
//!   [`RateLimitLayer::on_alert`](crate::RateLimitLayer::on_alert).
//!
//! Memory is bounded, independent of the number of callers. The cost per allowed request is a few
//! nanoseconds. The [guide](crate::docs::operations) explains every value and what to do about it.

mod alert;
mod counters;
mod event;
#[cfg(feature = "admin")]
mod last_denial;
mod log_sampler;
mod metrics;
mod pseudonym;
mod report;
mod request;
mod statistics;
mod step_ring;
mod store_failures;
mod tick;
mod truncate;
mod violations;

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::sync::Arc;
#[cfg(feature = "metrics")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::quota::Quota;
use crate::sync::Mutex;

use self::alert::AlertEvaluator;
use self::counters::CounterRegistry;
use self::log_sampler::LogSampler;
use self::statistics::TotalCounters;
use self::store_failures::StoreFailures;
#[cfg(feature = "admin")]
pub(crate) use self::violations::RecentDenial;
use self::violations::{RetryTracker, Violations};

pub use self::alert::{Alert, AlertKind, Alerts, Severity};
pub(crate) use self::counters::DecisionCounters;
pub use self::metrics::{METRICS, Metric, MetricKind, MetricLabel};
pub(crate) use self::pseudonym::Pseudonyms;
pub(crate) use self::request::{Allowed, Denied, Exceeded, Exempted, Rejected};
pub use self::statistics::{
    Distinct, EndpointStatistics, Offender, PolicyStatistics, Retries, Statistics, StoreStatistics,
    TimeBucket, Totals,
};
#[cfg(feature = "admin")]
pub(crate) use self::truncate::{MAX_TEXT, truncate};

/// Settings of the layer's builder for [`Telemetry`].
#[derive(Debug, Default)]
pub(crate) struct TelemetrySettings {
    pub(crate) names: Pseudonyms,
    pub(crate) is_off: bool,
}

/// Counters, statistics and alerts of one layer.
///
/// No lock is held while a subscriber or a recorder is called: both may read the statistics.
pub(crate) struct Telemetry {
    since: Timestamp,
    /// Whether decisions are counted at all.
    enabled: bool,
    endpoints: CounterRegistry,
    policies: CounterRegistry,
    totals: TotalCounters,
    /// When the next tick is due, in microseconds.
    next_tick_at: AtomicU64,
    /// Hashes callers under a random key, so that no caller can choose its hash.
    hasher: RandomState,
    violations: Mutex<Violations>,
    retries: RetryTracker,
    alerts: Mutex<AlertEvaluator>,
    names: Pseudonyms,
    denials: LogSampler,
    warnings: LogSampler,
    dry_runs: LogSampler,
    maintenance: LogSampler,
    rejections: LogSampler,
    store_failures: StoreFailures,
    #[cfg(feature = "metrics")]
    metrics: OnceLock<metrics::LayerMetrics>,
    #[cfg(feature = "metrics")]
    published: metrics::PublishedTotals,
    no_peer_address: AtomicBool,
    unknown_tiers: Mutex<HashSet<Box<str>>>,
}

impl Telemetry {
    /// Time between events of one caller and quota.
    const DENIAL_INTERVAL: Duration = Duration::from_secs(10);
    const WARNING_INTERVAL: Duration = Duration::from_mins(1);

    /// Time between events of requests during maintenance.
    const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(10);

    pub(crate) fn new(settings: TelemetrySettings, now: Timestamp) -> Self {
        // Registered for the first scrape, but not kept: a recorder may be installed later.
        #[cfg(feature = "metrics")]
        if !settings.is_off {
            drop(metrics::LayerMetrics::describe_and_register());
        }
        Self {
            since: now,
            enabled: !settings.is_off,
            endpoints: CounterRegistry::default(),
            policies: CounterRegistry::default(),
            totals: TotalCounters::default(),
            next_tick_at: AtomicU64::new(0),
            hasher: RandomState::new(),
            violations: Mutex::new(Violations::new(now)),
            retries: RetryTracker::default(),
            alerts: Mutex::new(AlertEvaluator::new()),
            names: settings.names,
            denials: LogSampler::new(Self::DENIAL_INTERVAL),
            warnings: LogSampler::new(Self::WARNING_INTERVAL),
            dry_runs: LogSampler::new(Self::DENIAL_INTERVAL),
            maintenance: LogSampler::new(Self::MAINTENANCE_INTERVAL),
            rejections: LogSampler::new(Self::DENIAL_INTERVAL),
            store_failures: StoreFailures::default(),
            #[cfg(feature = "metrics")]
            metrics: OnceLock::new(),
            #[cfg(feature = "metrics")]
            published: metrics::PublishedTotals::default(),
            no_peer_address: AtomicBool::new(false),
            unknown_tiers: Mutex::default(),
        }
    }

    /// Returns the counters of an endpoint, by its route.
    pub(crate) fn endpoint(&self, route: &str) -> Arc<DecisionCounters> {
        let counters = self.endpoints.of(route);
        #[cfg(feature = "metrics")]
        if self.enabled {
            drop(metrics::EndpointMetrics::register(counters.name()));
        }
        counters
    }

    /// Returns the counters of a quota, by its name in response headers.
    pub(crate) fn policy(&self, name: &str) -> Arc<DecisionCounters> {
        let counters = self.policies.of(name);
        #[cfg(feature = "metrics")]
        if self.enabled {
            drop(metrics::PolicyMetrics::register(counters.name()));
        }
        counters
    }

    /// Registers the series of quotas before their first request, while there is
    /// [room](CounterRegistry::has_room_in_advance).
    #[cfg(feature = "metrics")]
    pub(crate) fn register_policies<'a>(&self, names: impl Iterator<Item = &'a str>) {
        for name in names.take_while(|_| self.policies.has_room_in_advance()) {
            self.policy(name);
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry")
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}

/// Logs an override that was set, or the removal of the overrides of a rule.
pub(crate) fn overridden(rule: &str, quota: Option<&Quota>, until: Option<Timestamp>) {
    event::overridden(rule, quota, until);
}

/// Logs that an operator has switched all limits off until an instant, or on again.
pub(crate) fn maintenance(until: Option<Timestamp>) {
    event::maintenance(until);
}
