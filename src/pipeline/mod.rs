//! One request: resolve its checks, decide them in the store, conclude.
//!
//! [`RequestPipeline::evaluate`] is the only route. Overrides, dry runs, stores that answer later, tier
//! look-ups and counting while the store fails are data in it.

mod admission;
mod alerts;
mod charge;
mod configuration_checks;
mod context;
mod evaluate;
mod failed_auth;
mod failure;
mod identify;
#[cfg(feature = "admin")]
mod inspect;
mod maintenance;
mod overrides;
#[cfg(feature = "metrics")]
mod policy_series;
mod quota_names;
mod reject;
mod reload;
mod report;
mod resolve;
mod routed_path;
mod settle;
mod snapshot;
mod tier;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;

use self::configuration_checks::ConfigurationChecks;
use self::context::{CountedIn, RequestContext};
use self::reload::Reloads;
use crate::clock::{self, Clock, Timestamp};
use crate::error::{Error, ValidationErrors};
use crate::observe::{Telemetry, TelemetrySettings};
use crate::policy::Policy;
use crate::store::{
    MemoryStore, OverrideStore, Overrides, Store, StoreFuture, TimeSource, overrides_in_use,
    shutdown_within,
};
use crate::tier::TierResolver;

pub(crate) use self::admission::{Admission, Evaluation, PendingDecision, Rejection};
pub use self::charge::Charge;
#[cfg(feature = "admin")]
pub(crate) use self::inspect::{InspectedCaller, Inspection, LimitStatus, SettingsView};
#[cfg(feature = "axum")]
pub(crate) use self::reject::UNAVAILABLE_FOR;
pub(crate) use self::reload::Origin;
pub use self::reload::PolicyStatus;
#[cfg(feature = "config")]
pub(crate) use self::reload::{Change, Contents};
pub(crate) use self::snapshot::{LayerOverrides, Snapshot};

/// Decides requests. One for all clones of a layer.
pub(crate) struct RequestPipeline {
    snapshot: ArcSwap<Snapshot>,
    store: Arc<dyn Store>,
    /// Counts while the store cannot answer. Created when it is first needed.
    local: OnceLock<MemoryStore>,
    clock: Arc<dyn Clock>,
    /// Clock of the store's instants.
    time: TimeSource,
    resolver: Option<TierResolver>,
    /// Whether decision and charge are inserted into the extensions of requests.
    inserts_extensions: bool,
    telemetry: Arc<Telemetry>,
    checks: ConfigurationChecks,
    /// Settings from code. A reload keeps them.
    code: LayerOverrides,
    reloads: Reloads,
}

/// The parts of a pipeline, from its builder.
pub(crate) struct PipelineConfig {
    pub(crate) policy: Policy,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Settings besides the policy, from code and from the file of the policy.
    pub(crate) code: LayerOverrides,
    pub(crate) file: LayerOverrides,
    pub(crate) resolver: Option<TierResolver>,
    pub(crate) inserts_extensions: bool,
    pub(crate) origin: Option<Arc<dyn Origin>>,
    pub(crate) telemetry: TelemetrySettings,
}

impl RequestPipeline {
    pub(crate) fn new(config: PipelineConfig) -> Result<Self, ValidationErrors> {
        let now = clock::now(&*config.clock);
        let telemetry = Arc::new(Telemetry::new(config.telemetry, now));
        let snapshot = Snapshot::new(config.policy, &config.code, config.file, None, &telemetry)?;
        snapshot.failed_auth.use_clock(&config.clock);
        telemetry.set_alert_thresholds(snapshot.alerts());
        let checks = ConfigurationChecks::new();
        checks.check_networks(snapshot.client_ip());
        Ok(Self {
            snapshot: ArcSwap::from_pointee(snapshot),
            local: OnceLock::new(),
            code: config.code,
            reloads: Reloads::new(config.origin, clock::wall_now(&*config.clock)),
            time: config.store.use_clock(&config.clock),
            store: config.store,
            clock: config.clock,
            resolver: config.resolver,
            inserts_extensions: config.inserts_extensions,
            telemetry,
            checks,
        })
    }

    /// Returns this process's copy of the overrides, if the store keeps any.
    #[inline]
    fn override_table(&self) -> Option<&Overrides> {
        self.store.overrides().map(OverrideStore::table)
    }

    /// Returns the override store if its table has entries or is still loading. While it loads, the
    /// limits of a caller are unknown.
    #[inline]
    fn override_store(&self) -> Option<&dyn OverrideStore> {
        overrides_in_use(&*self.store)
    }

    /// Returns the store that counts while the shared one cannot answer.
    fn local(&self) -> &MemoryStore {
        self.local.get_or_init(|| {
            let local = MemoryStore::new();
            local.use_clock(&self.clock);
            local
        })
    }

    /// Returns the store that counts a request.
    #[inline]
    fn store_of(&self, context: &RequestContext) -> &dyn Store {
        match context.counted_in {
            CountedIn::Store => &*self.store,
            CountedIn::LocalFallback => self.local(),
        }
    }

    /// Shuts the store down.
    pub(crate) fn shutdown(&self, deadline: Duration) -> StoreFuture<(), Error> {
        shutdown_within(&*self.store, &self.clock, deadline)
    }

    #[inline]
    fn now(&self) -> Timestamp {
        clock::now(&*self.clock)
    }

    /// Returns the wall-clock time at `now`.
    #[inline]
    fn wall_at(&self, now: Timestamp) -> Timestamp {
        clock::wall_at(&*self.clock, now)
    }

    /// Returns the time on the wall clock.
    pub(crate) fn wall_now(&self) -> Timestamp {
        clock::wall_now(&*self.clock)
    }

    /// Returns the microseconds to add to the instants of a store to get wall-clock time.
    #[inline]
    fn wall_offset(&self, counted_in: CountedIn) -> i64 {
        let time = match counted_in {
            CountedIn::Store => self.time,
            CountedIn::LocalFallback => TimeSource::Caller,
        };
        time.wall_offset(&*self.clock)
    }
}

impl fmt::Debug for RequestPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestPipeline")
            .field("policy", &self.snapshot.load().policy)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
