//! TelemetrySettings what is decided: events, figures, statistics, alerts.
//!
//! - **Events** for `tracing`: who was turned away, by which quota; what
//!   comes close to a limit; who was exempt; how the store is. Callers are in them by a keyed
//!   hash, unless [told otherwise](crate::RateLimitLayerBuilder::log_plain_identities), and what
//!   repeats itself is thinned.
//! - **Figures** for the `metrics` facade (feature of that name): [`METRICS`] is the list.
//! - [`Statistics`] inside the process, at any time, without anything to install:
//!   [`RateLimitLayer::statistics`](crate::RateLimitLayer::statistics).
//! - [`Alert`]s when things go wrong, told once when they begin and once when they are over:
//!   [`RateLimitLayer::on_alert`](crate::RateLimitLayer::on_alert).
//!
//! All of it has a fixed size, whoever comes and however many, and what it costs a request that
//! is allowed is a few nanoseconds. [The guide](crate::docs::operations) says what everything
//! means, and what to do at three in the morning.

mod alert;
mod counters;
mod event;
mod log_sampler;
mod metric;
mod pseudonym;
mod report;
mod statistics;
mod step_ring;
mod store_failures;
mod tick;
mod truncate;
mod violations;

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::{ReloadError, StoreError};
use crate::head::RequestHead;
use crate::quota::Quota;
use crate::sync::Mutex;

use self::alert::AlertEvaluator;
use self::counters::StripedCounter;
use self::log_sampler::LogSampler;
use self::store_failures::StoreFailures;
use self::violations::{RetryTracker, Violations};

pub use self::alert::{Alert, AlertKind, Alerts, Severity};
pub(crate) use self::counters::{CounterRegistry, DecisionCounters};
pub use self::metric::{METRICS, Metric, MetricKind};
pub(crate) use self::pseudonym::Pseudonyms;
pub(crate) use self::report::{Allowed, Denied, Exceeded, Rejected};
pub use self::statistics::{
    Distinct, EndpointStatistics, Offender, PolicyStatistics, Retries, Statistics, TimeBucket,
    Totals,
};
#[cfg(feature = "admin")]
pub(crate) use self::truncate::{MAX_TEXT, truncate};

/// What a layer's builder says about watching.
#[derive(Debug, Default)]
pub(crate) struct TelemetrySettings {
    pub(crate) alerts: Alerts,
    pub(crate) names: Pseudonyms,
    pub(crate) is_off: bool,
}

/// Everything that a layer remembers of what it has decided.
pub(crate) struct Telemetry {
    since: Timestamp,
    /// Whether decisions are counted at all.
    counts: bool,
    endpoints: CounterRegistry,
    policies: CounterRegistry,
    exempt: StripedCounter,
    uncounted: StripedCounter,
    unavailable: AtomicU64,
    invalid_credentials: AtomicU64,
    /// When to look next, in microseconds.
    next_tick_at: AtomicU64,
    /// Gives callers numbers that nobody can foresee.
    hasher: RandomState,
    violations: Mutex<Violations>,
    waiting: RetryTracker,
    alarm: Mutex<AlertEvaluator>,
    names: Pseudonyms,
    denials: LogSampler,
    warnings: LogSampler,
    trials: LogSampler,
    maintenance: LogSampler,
    rejections: LogSampler,
    store_failures: StoreFailures,
    metrics: metric::OfLayer,
    /// What the store had to let go of when it was last looked at.
    evicted: AtomicU64,
    no_peer_address: AtomicBool,
    unknown_tiers: Mutex<HashSet<Box<str>>>,
}

impl Telemetry {
    /// The same denial is told of so often.
    const TELLS_OF_DENIALS_EVERY: Duration = Duration::from_secs(10);

    /// The same warning is told of so often.
    const TELLS_OF_WARNINGS_EVERY: Duration = Duration::from_mins(1);

    /// Requests during maintenance leave one event in this time.
    const MAINTENANCE_EVENT_EVERY: Duration = Duration::from_secs(10);

    pub(crate) fn new(watching: TelemetrySettings, now: Timestamp) -> Self {
        Self {
            since: now,
            counts: !watching.is_off,
            endpoints: CounterRegistry::default(),
            policies: CounterRegistry::default(),
            exempt: StripedCounter::default(),
            uncounted: StripedCounter::default(),
            unavailable: AtomicU64::new(0),
            invalid_credentials: AtomicU64::new(0),
            next_tick_at: AtomicU64::new(0),
            hasher: RandomState::new(),
            violations: Mutex::new(Violations::new(now)),
            waiting: RetryTracker::default(),
            alarm: Mutex::new(AlertEvaluator::new(watching.alerts)),
            names: watching.names,
            denials: LogSampler::new(Self::TELLS_OF_DENIALS_EVERY),
            warnings: LogSampler::new(Self::TELLS_OF_WARNINGS_EVERY),
            trials: LogSampler::new(Self::TELLS_OF_DENIALS_EVERY),
            maintenance: LogSampler::new(Self::MAINTENANCE_EVENT_EVERY),
            rejections: LogSampler::new(Self::TELLS_OF_DENIALS_EVERY),
            store_failures: StoreFailures::default(),
            metrics: metric::OfLayer::default(),
            evicted: AtomicU64::new(0),
            no_peer_address: AtomicBool::new(false),
            unknown_tiers: Mutex::default(),
        }
    }

    /// The counters of endpoints, by their routes.
    pub(crate) const fn endpoints(&self) -> &CounterRegistry {
        &self.endpoints
    }

    /// The counters of quotas, by the names that callers see.
    pub(crate) const fn policies(&self) -> &CounterRegistry {
        &self.policies
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry")
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}

/// A limit was set at run time, or those for a rule were removed.
pub(crate) fn overridden(rule: &str, quota: Option<&Quota>, until: Option<Timestamp>) {
    event::overridden(rule, quota, until);
}

/// All limits are off until then, or on again, because an operator says so.
pub(crate) fn maintenance(until: Option<Timestamp>) {
    event::maintenance(until);
}

/// Another policy is in force.
pub(crate) fn reloaded(version: u64) {
    event::reloaded(version);
    metric::reloaded(version);
}

/// Another policy was refused.
#[cold]
pub(crate) fn reload_failed(error: &ReloadError) {
    event::reload_failed(error);
    metric::reload_failed();
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
