//! One request: who asks, which rules count it, one decision, what is told.

mod alerts;
mod charge;
mod context;
mod denial;
mod dry_run;
mod evaluation;
mod failed_auth;
mod identify;
#[cfg(feature = "admin")]
mod inspect;
mod later;
mod maintenance;
mod observed;
mod overrides;
mod quota_names;
mod reject;
mod reload;
mod route;
mod settle;
mod snapshot;
mod stores;
mod tell;
mod tier;

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use self::context::RequestContext;
use self::reload::Reloads;
use self::tier::TierLookup;
use crate::clock::{SharedClock, Timestamp};
use crate::decision::Decision;
use crate::error::{Problems, StoreError};
use crate::head::RequestHead;
use crate::observe::{Allowed, Watch, Watching};
use crate::policy::{Policy, RoutedPath};
use crate::response::Render;
use crate::store::{MemoryStore, OverrideStore, Overrides, Store, StoreFuture, TimeSource};
use crate::tier::TierResolver;
use crate::usage::Usages;

pub use self::charge::Charge;
pub(crate) use self::evaluation::{Admission, Evaluation, Pending, Rejection, StoreOutcome};
#[cfg(feature = "admin")]
pub(crate) use self::inspect::{InspectedCaller, Inspection, LimitStatus};
pub(crate) use self::reload::Origin;
pub use self::reload::PolicyStatus;
#[cfg(feature = "config")]
pub(crate) use self::reload::{Change, Contents};
pub(crate) use self::snapshot::{LayerOverrides, Snapshot};

/// Everything that decides about requests. One for all clones of a layer.
pub(crate) struct RequestPipeline {
    rules: ArcSwap<Snapshot>,
    store: Arc<dyn Store>,
    /// Counts while the store cannot answer. Made when it is first needed.
    local: OnceLock<MemoryStore>,
    clock: SharedClock,
    /// Clock of the store's instants.
    time: TimeSource,
    resolver: Option<TierResolver>,
    renderer: Arc<dyn Render>,
    tells_handlers: bool,
    watch: Arc<Watch>,
    /// What is said in code, and stays when a file is read again.
    code: LayerOverrides,
    reloads: Reloads,
}

/// What becomes of those whose credentials are wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnInvalid {
    /// They are anonymous.
    #[default]
    Anonymous,
    /// They get a 401.
    Reject,
}

/// The parts of a pipeline, as its builder knows them.
pub(crate) struct PipelineConfig {
    pub(crate) policy: Policy,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: SharedClock,
    /// What is said besides the policy, by code and by the file that the policy came from.
    pub(crate) code: LayerOverrides,
    pub(crate) file: LayerOverrides,
    pub(crate) resolver: Option<TierResolver>,
    pub(crate) renderer: Arc<dyn Render>,
    pub(crate) tells_handlers: bool,
    pub(crate) origin: Option<Arc<dyn Origin>>,
    pub(crate) watching: Watching,
}

impl RequestPipeline {
    pub(crate) fn new(parts: PipelineConfig) -> Result<Self, Problems> {
        let now = parts.clock.now();
        let watch = Arc::new(Watch::new(parts.watching, now));
        let rules = Snapshot::new(parts.policy, &parts.code, parts.file, None, &watch)?;
        let clock = parts.clock.to_any();
        rules.failed_auth.use_clock(&clock);
        Ok(Self {
            rules: ArcSwap::from_pointee(rules),
            local: OnceLock::new(),
            code: parts.code,
            reloads: Reloads::new(parts.origin, parts.clock.wall_now()),
            time: parts.store.use_clock(&clock),
            store: parts.store,
            clock: parts.clock,
            resolver: parts.resolver,
            renderer: parts.renderer,
            tells_handlers: parts.tells_handlers,
            watch,
        })
    }

    /// Whether handlers are told of the decision.
    pub(crate) const fn tells_handlers(&self) -> bool {
        self.tells_handlers
    }

    /// Asks whether a request may go on, and charges it if so.
    pub(crate) fn evaluate(&self, head: &RequestHead<'_>) -> Evaluation {
        let rules = &self.rules.load();
        let taken = if rules.policy.has_routes() {
            route::taken(head)
        } else {
            RoutedPath::default()
        };
        // First, so that a probe of the health of the server is answered whatever it shows.
        let resolved = match rules.policy.resolve(head, &taken) {
            Ok(resolved) => resolved,
            Err(why) => return self.exempt(why, head),
        };
        let endpoint = rules.policy.endpoint_of(&resolved);
        let now = self.clock.now();
        if self.watch.is_due(now) {
            self.look(now);
        }
        let (overrides, wall) = (self.override_table(), self.wall(now));
        if rules.policy.in_maintenance(wall) || maintenance::is_on(overrides, wall) {
            return self.exempt_by_maintenance(head, now);
        }
        let address = rules.client_ip().locate(head);
        if address.is_none() {
            self.watch.no_peer_address();
        }
        // A proxy that does not tell its client lends it no exemption.
        let client = address.filter(|address| !address.is_proxy());
        let ip = client.map(|address| address.ip());
        if let Some(why) = rules.policy.exempts(head, ip) {
            return self.exempt(why, head);
        }
        let identity = match self.identify(rules, endpoint, head, address, now) {
            Ok(identity) => identity,
            Err(refused) => return Evaluation::Denied((*refused).into()),
        };
        // Before a path is rejected: an exempt caller has no rule that the path could evade.
        if let Some(why) = rules.policy.exempts_identity(identity.as_deref()) {
            return self.exempt(why, head);
        }
        let group = address.map(|address| address.group());
        let plan = match rules.policy.plan_of(&resolved, identity.as_deref()) {
            Ok(plan) => plan,
            Err(rejection) => return self.reject_path(rules, rejection, group, head, now),
        };
        let tier = self.tier_of(rules, identity.as_ref(), now);
        let mut case = RequestContext::new(rules, identity, group, (endpoint, plan), head);
        match tier {
            TierLookup::Known(tier) if !case.has_trials() => {
                case.set_tier(tier);
                case.set_overrides(overrides, wall);
                self.decide(&case, rules, head, now)
            }
            tier => self.decide_later(case.keep(rules), case.trials(rules, head), tier),
        }
    }

    /// Returns this process's copy of the overrides, if the store keeps any.
    #[inline]
    pub(super) fn override_table(&self) -> Option<&Overrides> {
        self.store.overrides().map(OverrideStore::table)
    }

    /// Puts a case to the store.
    #[inline]
    fn decide(
        &self,
        case: &RequestContext<&Snapshot>,
        rules: &Arc<Snapshot>,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Evaluation {
        let answer = case.decide(&*self.store, now);
        self.answered(case, answer, rules, head, now)
    }

    /// The store has answered, or will.
    fn answered(
        &self,
        case: &RequestContext<&Snapshot>,
        answer: StoreFuture<Usages>,
        rules: &Arc<Snapshot>,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Evaluation {
        match answer.try_ready() {
            Ok(verdict) => self.judged(case, verdict, (head, now), || case.keep(rules)),
            Err(pending) => {
                let case = Some(case.keep(rules));
                Evaluation::Pending(Box::new(Pending::Store(case, pending, now)))
            }
        }
    }

    fn judged<R: Deref<Target = Snapshot> + Clone>(
        &self,
        case: &RequestContext<R>,
        verdict: Result<Usages, StoreError>,
        (head, now): (&RequestHead<'_>, Timestamp),
        keep: impl FnOnce() -> RequestContext,
    ) -> Evaluation {
        let decided = verdict.and_then(|verdict| Ok((case.decision(&verdict)?, verdict)));
        match decided {
            Ok((decision, verdict)) => {
                self.heard(now);
                self.conclude_decision(case, &verdict, decision, (head, now), keep)
            }
            Err(error) => self.without_store(case, &error, head, keep),
        }
    }

    /// Turns a decision, whose instants are still those of the store, into an answer. `verdict` has
    /// the usages if there are several quotas. `keep` returns the case that an allowed request keeps.
    #[inline]
    pub(super) fn conclude_decision<R: Deref<Target = Snapshot>>(
        &self,
        case: &RequestContext<R>,
        verdict: &Usages,
        decision: Decision,
        (head, now): (&RequestHead<'_>, Timestamp),
        keep: impl FnOnce() -> RequestContext,
    ) -> Evaluation {
        let decision = decision.on_wall(self.wall_offset_of(case));
        if decision.is_denied() {
            return Evaluation::Denied(self.deny(case, Some(verdict), decision, head, now));
        }
        let Some((_, binding)) = case.binding(&decision) else {
            return self.uncounted();
        };
        match case.named(binding) {
            Ok(named) => {
                let allowed = Allowed {
                    endpoint: case.endpoint(),
                    policy: &named.tally,
                    usage: decision.usage(),
                    warns: case.rules().policy.warns(decision.usage()),
                    now,
                };
                let counts = |counter| case.counts_on(counter);
                self.tell_allowed(&allowed, &named.label, || case.caller(), counts, head);
            }
            Err(_) => self.watch.uncounted(),
        }
        let ends_here =
            case.rules().style().is_none() && !self.tells_handlers && !case.is_by_outcome();
        if ends_here {
            return Evaluation::Allowed(None);
        }
        Evaluation::Allowed(Some(Box::new(Admission {
            case: keep(),
            verdict: Some(verdict.clone()),
            decision,
            trials: Vec::new(),
        })))
    }
}

impl fmt::Debug for RequestPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestPipeline")
            .field("policy", &self.rules.load().policy)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
