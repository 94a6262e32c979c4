//! How all limits of one caller stand. To look at them charges nothing.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;

use super::context::CountedIn;
use super::overrides::{no_such_rule, quota_set_for};
use super::quota_names::QuotaNames;
use super::tier::TierLookup;
use super::{RequestPipeline, Snapshot};
use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::{Clock, Timestamp};
use crate::decision::Decision;
use crate::error::{Error, Invalid, StoreError};
use crate::head::RequestHead;
use crate::headers::{Label, Standing};
use crate::key::{Counter, Subject, policy_name};
use crate::policy::{Caller, CounterOf, Exemption, Policy, RuleKind, TierOf, dimensions};
use crate::quota::Quota;
use crate::response::Denial;
use crate::store::{Override, Store, StoreAdmin, StoreFuture, StoreHealth, no_admin};
use crate::usage::{Outcome, Usage, Usages};
use crate::who::Identity;

/// Somebody whose limits are looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct InspectedCaller {
    identity: Option<Arc<Identity>>,
    /// The network that counts as one client.
    group: Option<IpAddr>,
    exemption: Option<Exemption>,
}

/// How all limits of a caller stand.
#[derive(Debug)]
pub(crate) struct Inspection {
    pub(crate) at: Timestamp,
    pub(crate) tier: String,
    /// Whether somebody has said that it is theirs, or there is no other.
    pub(crate) tier_known: bool,
    /// Why none of them counts, if that is so.
    pub(crate) exemption: Option<Exemption>,
    /// The store could not be asked: these are the counters that are kept in this process until
    /// it can.
    pub(crate) degraded: bool,
    pub(crate) limits: Vec<LimitStatus>,
}

/// How one quota stands for a caller.
#[derive(Debug)]
pub(crate) struct LimitStatus {
    pub(crate) kind: RuleKind,
    pub(crate) rule: String,
    /// `user:secrets:1h`
    pub(crate) policy: String,
    /// The label of its counter: `user=alice`, `all callers`. Not for logs.
    pub(crate) counter: String,
    pub(crate) quota: Quota,
    pub(crate) usage: Usage,
    /// Whether it was set at run time.
    pub(crate) overridden: bool,
    pub(crate) dry_run: bool,
}

impl InspectedCaller {
    /// Somebody an operator asks about.
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
        Self {
            identity: identity.map(Arc::new),
            group: ip.map(|ip| snapshot.client_ip().group(ip)),
            exemption,
        }
    }

    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller {
            identity: self.identity.as_deref(),
            ip: self.group,
        }
    }

    /// Whether a limit that was set at run time is for them: for what they are known by, or for
    /// something else that is known of them.
    pub(crate) fn is_meant_by(&self, of: &Override) -> bool {
        let caller = self.caller();
        let named = of.subject();
        let mut known = caller.subjects();
        known.any(|subject| subject == named) || is_theirs(&named, &caller.known_by())
    }

    /// What the caller is known by: `user`, `ip`.
    pub(crate) fn known_by(&self) -> &str {
        let primary = self.identity.as_deref().and_then(Identity::primary);
        primary.map_or(Identity::IP, |(name, _)| name)
    }
}

impl Inspection {
    /// The limits that are in the way of the next request.
    pub(crate) fn blocking(&self) -> impl Iterator<Item = &LimitStatus> {
        let limits = self.limits.iter();
        limits.filter(|limit| limit.is_used_up() && !limit.dry_run)
    }
}

impl LimitStatus {
    /// Whether the next request has no room.
    pub(crate) const fn is_used_up(&self) -> bool {
        !self.usage.is_allowed()
    }

    /// When the window ends or the quota is whole again; if it is used up, when the next request
    /// is admitted. `None` if that is never.
    pub(crate) fn reset_at(&self) -> Option<Timestamp> {
        let helps = self.usage.outcome() != Outcome::Never && !self.quota.counts_nothing();
        helps.then(|| self.usage.reset_at())
    }
}

impl RequestPipeline {
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Whether the store answers, as far as it knows itself.
    pub(crate) fn store_health(&self) -> StoreHealth {
        self.store.health()
    }

    /// Looks something up in the policy that is in force.
    pub(crate) fn with_policy<T>(&self, look: impl FnOnce(&Policy) -> T) -> T {
        look(&self.snapshot.load().policy)
    }

    /// What those are told who ask too often how their limits stand. No limit of the policy was
    /// reached, so nobody else is told.
    pub(crate) fn denied_to_ask(
        &self,
        head: &RequestHead<'_>,
        asker: &InspectedCaller,
        counter: &Counter,
        decision: &Decision,
    ) -> Response<Bytes> {
        let who = Some(asker.known_by()).filter(|who| Label::can_name(who));
        let label = Label::new(who.unwrap_or(QuotaNames::UNNAMED), counter, counter.quota());
        let denial = match &label {
            Ok(label) => {
                let standing = Standing::new(label, *decision.usage());
                Denial::limited(*head, standing, decision.at())
            }
            // Its name is in order, so there is always one.
            Err(_) => Denial::unavailable(*head, Duration::from_secs(1), decision.at()),
        };
        self.render(&denial, self.snapshot.load().style())
    }

    fn maintenance(&self) -> Option<Exemption> {
        self.maintenance_until().map(|_| Exemption::Maintenance)
    }

    /// The network that a request comes from, as counters know it.
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

    /// Who asks, found in the way of all requests; or what those are told who show wrong
    /// credentials.
    pub(crate) fn asker(
        &self,
        head: &RequestHead<'_>,
    ) -> Result<InspectedCaller, Box<Response<Bytes>>> {
        let (snapshot, now) = (self.snapshot.load(), self.now());
        let address = snapshot.client_ip().locate(head);
        if address.is_none() {
            self.watch.no_peer_address();
        }
        // What is asked for is no endpoint of the policy.
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
        })
    }

    /// How all limits of somebody stand.
    pub(crate) async fn inspect(&self, asker: &InspectedCaller) -> Inspection {
        let snapshot = self.snapshot.load_full();
        let now = self.now();
        let tier = match self.look_up_tier(&snapshot, asker.identity.as_ref(), now) {
            TierLookup::Known(tier) => tier,
            TierLookup::Pending(name) => snapshot.tier(name.await.as_deref(), &self.watch),
        };
        let mut found = Found {
            pipeline: self,
            snapshot: &snapshot,
            caller: asker.caller(),
            tier,
            now,
            degraded: false,
        };
        let (answers, mut told) = (found.peek(&*self.store), found.told());
        let verdicts = match all(answers).await {
            Ok(verdicts) => {
                self.store_answered(now);
                verdicts
            }
            Err(error) => {
                self.watch.store_failed(&error, now);
                found.degraded = true;
                told = found.told();
                // Memory does not fail; if it did, there would be nothing to tell.
                all(found.peek(self.local())).await.unwrap_or_default()
            }
        };
        let offset = self.wall_offset(if found.degraded {
            CountedIn::LocalFallback
        } else {
            CountedIn::Store
        });
        let at = verdicts
            .first()
            .map(|verdict| verdict.at().offset_by(offset));
        let usages = verdicts.iter().flat_map(Usages::usages);
        let limits = told
            .into_iter()
            .zip(usages)
            .map(|(limit, usage)| LimitStatus {
                usage: usage.offset_by(offset),
                ..limit
            });
        Inspection {
            at: at.unwrap_or_else(|| self.wall_at(now)),
            tier: snapshot.policy.tiers().name(tier).to_owned(),
            tier_known: self.knows_tier(&snapshot, asker.identity.as_deref()),
            exemption: asker.exemption,
            degraded: found.degraded,
            limits: limits.collect(),
        }
    }

    fn knows_tier(&self, snapshot: &Snapshot, identity: Option<&Identity>) -> bool {
        let tiers = snapshot.policy.tiers();
        let is_unsaid = matches!(tiers.of(identity), TierOf::Unsaid) && self.resolver.is_none();
        !is_unsaid || tiers.len() == 1
    }

    /// Forgets what was counted for somebody: under one rule, or all that is theirs alone. What
    /// they share with others, a tenant or everybody, stays.
    pub(crate) fn forget(
        &self,
        asker: &InspectedCaller,
        rule: Option<&str>,
    ) -> StoreFuture<(), Error> {
        let snapshot = self.snapshot.load();
        let caller = asker.caller();
        let counters = snapshot.policy.counters_of(&caller);
        let Some(admin) = self.store.admin() else {
            return StoreFuture::ready(Err(no_admin().into()));
        };
        let local = self.local.get().map(|local| local as &dyn StoreAdmin);
        let stores = std::iter::once(admin).chain(local);
        let mut answers = Vec::new();
        if let Some(rule) = rule {
            let counters: Vec<_> = counters.filter(|of| of.rule == rule).collect();
            if counters.is_empty() {
                return StoreFuture::ready(Err(not_counted(&snapshot, rule).into()));
            }
            let checks = counters
                .iter()
                .map(|of| Check::new(&of.subject, &of.quota.counter));
            let checks: Vec<_> = checks.collect();
            for store in stores {
                answers.extend(batches(&checks, |batch| store.reset(batch)));
            }
        } else {
            let whose = caller.known_by();
            let mut subjects = vec![whose];
            for of in counters {
                if is_theirs(&of.subject, &whose) && !subjects.contains(&of.subject) {
                    subjects.push(of.subject);
                }
            }
            for store in stores {
                answers.extend(subjects.iter().map(|subject| store.reset_subject(subject)));
            }
        }
        StoreFuture::all(answers).map(|forgotten| Ok(forgotten?))
    }
}

/// Whether a counter is of somebody, alone or together with something else: of a user in a
/// group, say, but not of the group.
fn is_theirs(subject: &Subject<'_>, whose: &Subject<'_>) -> bool {
    let mut dimensions = whose.dimensions();
    dimensions.all(|known| subject.dimensions().any(|other| other == known))
}

fn not_counted(snapshot: &Snapshot, rule: &str) -> Invalid {
    let mut quotas = snapshot.policy.quotas().iter();
    if quotas.any(|quota| quota.counter.rule() == rule) {
        return Invalid::new("rule name", rule, "one that counts this caller");
    }
    no_such_rule(&snapshot.policy, rule)
}

/// A caller, and by what their limits are found.
struct Found<'a> {
    pipeline: &'a RequestPipeline,
    snapshot: &'a Snapshot,
    caller: Caller<'a>,
    tier: usize,
    now: Timestamp,
    /// Counted in this process, which may admit only its share.
    degraded: bool,
}

impl Found<'_> {
    fn counters(&self) -> impl Iterator<Item = CounterOf<'_>> {
        self.snapshot.policy.counters_of(&self.caller)
    }

    /// The quota of a counter, and whether it was set at run time.
    fn quota(&self, of: &CounterOf<'_>) -> (Quota, bool) {
        let overrides = self.pipeline.override_table();
        let set = overrides.and_then(|overrides| {
            let wall = self.pipeline.wall_at(self.now);
            quota_set_for(overrides, &self.caller, of.key_by, &of.quota.counter, wall)
        });
        let is_set = set.is_some();
        let quota = set.unwrap_or(*of.quota.quota(self.tier));
        if self.degraded {
            return (self.snapshot.policy.local_share_of(&quota), is_set);
        }
        (quota, is_set)
    }

    /// Every limit, without knowing yet how it stands.
    fn told(&self) -> Vec<LimitStatus> {
        let limit = |of: CounterOf<'_>| {
            let (quota, overridden) = self.quota(&of);
            LimitStatus {
                kind: of.kind,
                rule: of.rule.to_owned(),
                policy: policy_name(of.who, of.rule, &quota),
                counter: dimensions(&of.subject),
                quota,
                usage: Usage::default(),
                overridden,
                dry_run: of.dry_run,
            }
        };
        self.counters().map(limit).collect()
    }

    /// Asks a store of all of them, in their order.
    fn peek(&self, store: &dyn Store) -> Vec<StoreFuture<Usages>> {
        let counters: Vec<_> = self.counters().collect();
        let quotas: Vec<_> = counters.iter().map(|of| self.quota(of).0).collect();
        let checks = counters.iter().zip(&quotas).map(|(of, quota)| {
            let check = Check::new(&of.subject, &of.quota.counter);
            check.with_quota(quota).with_cost(of.cost)
        });
        let checks: Vec<_> = checks.collect();
        batches(&checks, |batch| store.peek(batch, self.now)).collect()
    }
}

/// Puts checks to a store, as many at once as it takes.
fn batches<T>(
    checks: &[Check<'_>],
    call: impl Fn(&Batch<'_>) -> StoreFuture<T>,
) -> impl Iterator<Item = StoreFuture<T>> {
    checks.chunks(MAX_CHECKS).map(move |some| {
        let batch = Batch::new(some);
        batch.map_or_else(
            |invalid| StoreFuture::ready(Err(StoreError::new(invalid.to_string()))),
            |batch| call(&batch),
        )
    })
}

async fn all(answers: Vec<StoreFuture<Usages>>) -> Result<Vec<Usages>, StoreError> {
    let answers = futures_util::future::join_all(answers).await;
    answers.into_iter().collect()
}
