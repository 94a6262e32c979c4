//! Usage of all limits of one caller, without a charge.

mod inspector;
mod reset;
mod settings;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;

use self::inspector::{Inspector, batches};
pub(crate) use self::settings::SettingsView;
use super::context::CountedIn;
use super::reject::render;
use super::tier::TierLookup;
use super::{RequestPipeline, Snapshot};
use crate::clock::{Clock, Timestamp};
use crate::decision::Decision;
use crate::error::StoreError;
use crate::head::RequestHead;
use crate::headers::{QuotaName, QuotaUsage};
use crate::identity_types::Identity;
use crate::key::{Counter, Subject, plain_label};
use crate::observe::RecentDenial;
use crate::policy::{Caller, CounterOf, Exemption, Policy, RuleKind, TierOf};
use crate::quota::Quota;
use crate::response::Denial;
use crate::store::{Override, StoreFuture};
use crate::usage::{Outcome, Usage, Usages};

/// A caller whose limits are inspected.
#[derive(Clone, Debug, Default)]
pub(crate) struct InspectedCaller {
    identity: Option<Arc<Identity>>,
    /// The network that counts as one client.
    group: Option<IpAddr>,
    exemption: Option<Exemption>,
    /// Whether an operator looks the caller up by name: then its client IP may be any.
    has_unknown_ip: bool,
    /// Its last denial within an hour.
    recent: Option<RecentDenial>,
}

/// Usage of all limits of a caller.
#[derive(Debug)]
pub(crate) struct Inspection {
    pub(crate) at: Timestamp,
    pub(crate) tier: String,
    /// Whether the tier is unknown and the default tier is assumed.
    pub(crate) tier_assumed: bool,
    /// Why none of them counts, if the caller is exempt.
    pub(crate) exemption: Option<Exemption>,
    /// Whether the store failed: then these are the counters of the local fallback.
    pub(crate) degraded: bool,
    pub(crate) limits: Vec<LimitStatus>,
    /// Number of limits that count per client IP and are not listed, because it is not known.
    pub(crate) omitted: usize,
}

/// Usage of one quota.
#[derive(Debug)]
pub(crate) struct LimitStatus {
    pub(crate) kind: RuleKind,
    pub(crate) rule: String,
    /// `user:secrets:1h`
    pub(crate) policy: String,
    /// The name of its counter: `user=alice`, `all callers`. Not for logs.
    pub(crate) counter: String,
    pub(crate) quota: Quota,
    pub(crate) usage: Usage,
    /// Whether it was set at run time.
    pub(crate) overridden: bool,
    /// When the block ends, on the wall clock. `None` if the quota is not `blocked` or has no end.
    blocked_until: Option<Timestamp>,
    pub(crate) dry_run: bool,
    /// When it denied the first of a row of requests, if that is known. Requests of lower cost may have
    /// been admitted in between.
    pub(crate) denied_since: Option<Timestamp>,
}

impl InspectedCaller {
    /// A caller that an operator looks up.
    pub(crate) fn new(
        identity: Option<Identity>,
        ip: Option<IpAddr>,
        pipeline: &RequestPipeline,
    ) -> Self {
        let snapshot = pipeline.snapshot.load();
        let ip = ip.map(|ip| snapshot.client_ip().fold(ip));
        let by_name = snapshot.policy.exempts_identity(identity.as_ref());
        let by_network = ip.and_then(|ip| snapshot.policy.exempts_network(ip));
        let exemption = pipeline.maintenance().or(by_network).or(by_name);
        let mut caller = Self {
            identity: identity.map(Arc::new),
            group: ip.map(|ip| snapshot.client_ip().group(ip)),
            exemption,
            has_unknown_ip: ip.is_none(),
            recent: None,
        };
        caller.recent = pipeline.recent_denial(&caller.caller());
        caller
    }

    /// Returns the identity. If it names no tier, it gets the tier of its last denial.
    fn with_recent_tier(&self) -> Option<Arc<Identity>> {
        let identity = self.identity.as_ref()?;
        let recent = self.recent.as_ref().and_then(|recent| recent.tier.clone());
        match recent.filter(|_| identity.tier_name().is_none()) {
            Some(tier) => Some(Arc::new(Identity::clone(identity).tier(tier))),
            None => Some(Arc::clone(identity)),
        }
    }

    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller {
            identity: self.identity.as_deref(),
            ip: self.group,
        }
    }

    /// Returns whether a counter is omitted: those per client IP are if the client IP is not known. A
    /// look-up of a user by name does not mean the callers without an address, which share such a counter.
    fn is_omitted(&self, of: &CounterOf<'_>) -> bool {
        self.has_unknown_ip && of.subject.has_dimension(Identity::IP)
    }

    /// Returns whether an override is for this caller, or for one of its dimensions.
    pub(crate) fn is_overridden_by(&self, of: &Override) -> bool {
        let caller = self.caller();
        let named = of.subject();
        let mut known = caller.subjects();
        known.any(|subject| subject == named) || is_counter_of(&named, &caller.subject())
    }
}

impl Inspection {
    /// Returns the limits that deny the next request.
    pub(crate) fn blocking(&self) -> impl Iterator<Item = &LimitStatus> {
        let limits = self.limits.iter();
        limits.filter(|limit| limit.is_used_up() && !limit.dry_run)
    }
}

impl LimitStatus {
    /// Returns whether the next request is denied.
    pub(crate) const fn is_used_up(&self) -> bool {
        !self.usage.is_allowed()
    }

    /// When the window ends or the quota is whole again; if it is used up, when the next request
    /// is admitted. `None` if that is never.
    pub(crate) fn reset_at(&self) -> Option<Timestamp> {
        match self.usage.outcome() {
            Outcome::ExceedsCapacity => None,
            Outcome::Allowed if self.quota.counts_nothing() => None,
            Outcome::Allowed | Outcome::Denied => Some(self.usage.reset_at()),
        }
    }
}

impl RequestPipeline {
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Calls `look` with the current policy.
    pub(crate) fn with_policy<T>(&self, look: impl FnOnce(&Policy) -> T) -> T {
        look(&self.snapshot.load().policy)
    }

    /// Renders the denial of a request to the status endpoint. No limit of the policy was reached, so
    /// that nothing is reported.
    pub(crate) fn reject_status_request(
        &self,
        head: &RequestHead<'_>,
        caller: &InspectedCaller,
        counter: &Counter,
        decision: &Decision,
    ) -> Response<Bytes> {
        let name = QuotaName::new(
            plain_label(caller.caller().label()),
            counter,
            counter.quota(),
        );
        let denial = match &name {
            Ok(name) => {
                let usage = QuotaUsage::new(name, *decision.usage());
                Denial::limited(*head, usage, decision.at())
            }
            // The counter has a valid name, so that this does not happen.
            Err(_) => Denial::unavailable(*head, Duration::from_secs(1), decision.at()),
        };
        let snapshot = self.snapshot.load();
        let denial = denial.with_jitter(snapshot.retry_after_jitter());
        render(&snapshot, &denial)
    }

    fn maintenance(&self) -> Option<Exemption> {
        self.maintenance_until().map(|_| Exemption::Maintenance)
    }

    /// Returns the network of the client that counts as one client.
    pub(crate) fn origin_of(&self, head: &RequestHead<'_>) -> Option<IpAddr> {
        let address = self.snapshot.load().client_ip().locate(head);
        address.map(|address| address.group())
    }

    /// Returns an address in its folded form, and the network that it counts as.
    pub(crate) fn client_of(&self, ip: IpAddr) -> (IpAddr, IpAddr) {
        let snapshot = self.snapshot.load();
        let ip = snapshot.client_ip().fold(ip);
        (ip, snapshot.client_ip().group(ip))
    }

    /// Returns the caller of a request, or the response if its credentials are rejected.
    pub(crate) fn inspected_caller(
        &self,
        head: &RequestHead<'_>,
    ) -> Result<InspectedCaller, Box<Response<Bytes>>> {
        let (snapshot, now) = (self.snapshot.load(), self.now());
        let address = snapshot.client_ip().locate(head);
        if address.is_none() {
            self.telemetry.no_peer_address();
        }
        // The status endpoint is no endpoint of the policy.
        let elsewhere = snapshot.endpoints.len() - 1;
        let identity = self.identify(&snapshot, elsewhere, head, address, now)?;
        let client = address.filter(|address| !address.is_proxy());
        let by_head = snapshot
            .policy
            .exempts(head, client.map(|address| address.ip()));
        let by_name = || snapshot.policy.exempts_identity(identity.as_deref());
        let exemption = self.maintenance().or(by_head).or_else(by_name);
        Ok(InspectedCaller {
            identity,
            group: address.map(|address| address.group()),
            exemption,
            has_unknown_ip: false,
            recent: None,
        })
    }

    /// Returns the last denial of a caller within an hour.
    fn recent_denial(&self, caller: &Caller<'_>) -> Option<RecentDenial> {
        self.telemetry.recent_denial(&caller.subject(), self.now())
    }

    /// Returns the usage of all limits of a caller.
    pub(crate) async fn inspect(&self, caller: &InspectedCaller) -> Inspection {
        let snapshot = self.snapshot.load_full();
        let now = self.now();
        let identity = caller.with_recent_tier();
        let tier = match self.look_up_tier(&snapshot, identity.as_ref(), now) {
            TierLookup::Known(tier) => tier,
            TierLookup::Pending(name) => snapshot.tier(name.await.as_deref(), &self.telemetry),
        };
        let mut found = Inspector {
            pipeline: self,
            snapshot: &snapshot,
            inspected: caller,
            tier,
            now,
            degraded: false,
        };
        let (answers, mut limits) = (found.peek(&*self.store), found.limits());
        let results = match all(answers).await {
            Ok(results) => {
                self.store_answered(now);
                results
            }
            Err(error) => {
                self.store_failed(&error, now);
                found.degraded = true;
                limits = found.limits();
                // Memory does not fail; if it did, no limits would be listed.
                all(found.peek(self.local())).await.unwrap_or_default()
            }
        };
        let offset = self.wall_offset(if found.degraded {
            CountedIn::LocalFallback
        } else {
            CountedIn::Store
        });
        let at = results.first().map(|usages| usages.at().offset_by(offset));
        let usages = results.iter().flat_map(Usages::usages);
        let limits = limits
            .into_iter()
            .zip(usages)
            .map(|(limit, usage)| LimitStatus {
                usage: match limit.blocked_until {
                    Some(until) => Usage::blocked_until(until),
                    None => usage.offset_by(offset),
                },
                ..limit
            });
        Inspection {
            at: at.unwrap_or_else(|| self.wall_at(now)),
            tier: snapshot.policy.tiers().name(tier).to_owned(),
            tier_assumed: caller.recent.is_none()
                && !self.is_tier_known(&snapshot, identity.as_deref()),
            exemption: caller.exemption,
            degraded: found.degraded,
            limits: limits.collect(),
            omitted: found.omitted(),
        }
    }

    fn is_tier_known(&self, snapshot: &Snapshot, identity: Option<&Identity>) -> bool {
        let tiers = snapshot.policy.tiers();
        let is_not_named =
            matches!(tiers.of(identity), TierOf::NotNamed) && self.resolver.is_none();
        !is_not_named || tiers.len() == 1
    }
}

/// Returns whether a counter belongs to a caller, alone or with another dimension: that of a user in a
/// group does, that of the group does not.
fn is_counter_of(subject: &Subject<'_>, whose: &Subject<'_>) -> bool {
    let mut dimensions = whose.dimensions();
    dimensions.all(|known| subject.dimensions().any(|other| other == known))
}

async fn all(answers: Vec<StoreFuture<Usages>>) -> Result<Vec<Usages>, StoreError> {
    let answers = futures_util::future::join_all(answers).await;
    answers.into_iter().collect()
}
