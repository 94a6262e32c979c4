//! One request that is counted: its caller and its checks.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Snapshot;
use super::overrides::QuotaOverride;
use super::quota_names::QuotaMetadata;
use crate::batch::{Batch, Check, Group, MAX_CHECKS};
use crate::clock::Timestamp;
use crate::decision::Decision;
use crate::error::ValidationError;
use crate::headers::{QuotaName, QuotaUsage};
use crate::identity_types::Identity;
use crate::key::Subject;
use crate::observe::DecisionCounters;
use crate::policy::{Caller, PlannedCheck, Policy, RequestChecks};
use crate::quota::Quota;
use crate::usage::{Usage, Usages};

/// What is needed to decide a request, to settle it, and to charge it later. Indexes refer to the
/// snapshot that it was resolved with; its methods take that snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestContext {
    pub(super) endpoint: usize,
    pub(super) planned: RequestChecks,
    pub(super) identity: Option<Arc<Identity>>,
    /// The network that counts as one client.
    pub(super) client_ip: Option<IpAddr>,
    pub(super) tier: usize,
    pub(super) counted_in: CountedIn,
    /// Quotas in place of the policy's, one entry for each check; `None` if no check has one.
    pub(super) overrides: Option<Box<[Option<QuotaOverride>]>>,
}

/// The store that counts a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CountedIn {
    #[default]
    Store,
    /// The memory of this process, because the store cannot answer.
    LocalFallback,
}

/// One check of a batch: what to charge, by which quota, how much.
type BatchCheck<'a> = (&'a PlannedCheck, &'a Quota, u64);

impl RequestContext {
    #[inline]
    pub(super) fn checks(&self) -> &[PlannedCheck] {
        &self.planned.checks
    }

    pub(super) fn caller(&self) -> Caller<'_> {
        Caller {
            identity: self.identity.as_deref(),
            ip: self.client_ip,
        }
    }

    /// Returns the name of the tier if the identity names one.
    #[cfg(feature = "admin")]
    pub(super) fn named_tier<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a str> {
        let named = self.identity.as_ref().and_then(|caller| caller.tier_name());
        // The name in a token is not bounded, and may be unknown.
        named.map(|_| snapshot.policy.tiers().name(self.tier))
    }

    /// Returns whether charges depend on the response.
    pub(super) const fn depends_on_response(&self) -> bool {
        self.planned.by_outcome || self.planned.is_preflight
    }

    /// Returns the quota that replaces the policy's for a check.
    #[inline]
    fn quota_override(&self, index: usize) -> Option<&QuotaOverride> {
        self.overrides.as_ref()?[index].as_ref()
    }

    /// Returns when the block of a check ends, on the wall clock; `None` if it is not blocked or has no
    /// end.
    pub(super) fn blocked_until(&self, index: usize) -> Option<Timestamp> {
        self.quota_override(index)?.blocked_until
    }

    /// Returns the quota of a check for this caller.
    #[inline]
    pub(super) fn quota<'a>(&'a self, snapshot: &'a Snapshot, index: usize) -> &'a Quota {
        match self.quota_override(index) {
            Some(set) => &set.quota,
            None => snapshot
                .policy
                .quota(&self.checks()[index])
                .quota(self.tier),
        }
    }

    /// Calls `call` with a batch of the checks that `cost` returns a cost for.
    #[inline]
    pub(super) fn with_batch<T>(
        &self,
        snapshot: &Snapshot,
        cost: impl Fn(usize, &PlannedCheck) -> Option<u64>,
        call: impl FnOnce(&Batch<'_>) -> T,
    ) -> T {
        let checks = self.checks().iter().enumerate();
        let checks = checks.filter_map(|(index, check)| {
            Some((check, self.quota(snapshot, index), cost(index, check)?))
        });
        with_checks(&snapshot.policy, &self.caller(), checks, call)
    }

    /// Returns whether a check was charged: whether its group was.
    pub(super) fn is_charged(&self, usages: &Usages, index: usize) -> bool {
        let group = self.checks()[index].group;
        let mut all = self.checks().iter().zip(usages.usages());
        all.all(|(check, usage)| check.group != group || usage.is_allowed())
    }

    /// Returns whether a rule of this name counts the request.
    pub(super) fn has_rule(&self, snapshot: &Snapshot, rule: &str) -> bool {
        let mut checks = self.checks().iter();
        checks.any(|check| *snapshot.policy.rule(check).name == *rule)
    }

    /// Returns whether a counter with this id counts the request.
    pub(super) fn counts_on(&self, snapshot: &Snapshot, counter: u64) -> bool {
        let mut checks = self.checks().iter();
        checks.any(|check| {
            check.group == Group::Live && snapshot.policy.quota(check).counter.id() == counter
        })
    }

    /// Returns the decision of the live group. `usages` has one usage for each check.
    #[inline]
    pub(super) fn decision(&self, snapshot: &Snapshot, usages: &Usages) -> Decision {
        let decision = self.decision_of(snapshot, usages, 0..usages.live().len());
        let charged = decision.binding().filter(|_| decision.is_allowed());
        let charged = charged.map_or(0, |index| self.checks()[index].cost);
        decision.with_charged(charged)
    }

    /// Returns the decision of the checks in `range`, which are one group.
    #[inline]
    pub(super) fn decision_of(
        &self,
        snapshot: &Snapshot,
        usages: &Usages,
        range: Range<usize>,
    ) -> Decision {
        let of_group = &usages.usages()[range.clone()];
        let order = |index: usize| {
            let index = range.start + index;
            let rank = snapshot.policy.quota(&self.checks()[index]).rank;
            (rank, u64::MAX - self.quota(snapshot, index).window_micros())
        };
        Decision::new(usages.at(), of_group, order)
    }

    /// Returns the live quotas with their names. `wall_offset` converts the store's instants to
    /// wall-clock time.
    pub(super) fn quota_usages<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        usages: &'a Usages,
        wall_offset: i64,
    ) -> impl Iterator<Item = QuotaUsage<'a>> {
        let live = usages.live().iter().enumerate();
        live.filter_map(move |(index, usage): (usize, &Usage)| {
            let name = self.quota_name(snapshot, index).ok()?;
            Some(QuotaUsage::new(name, usage.offset_by(wall_offset)))
        })
    }

    /// Returns the name of a check.
    #[inline]
    pub(super) fn quota_name<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        index: usize,
    ) -> Result<&'a QuotaName, ValidationError> {
        match self.quota_override(index) {
            Some(set) => Ok(&set.name),
            None => Ok(&self.metadata(snapshot, index)?.name),
        }
    }

    /// Returns the name of a check in the policy, and its statistics.
    #[inline]
    pub(super) fn metadata<'a>(
        &self,
        snapshot: &'a Snapshot,
        index: usize,
    ) -> Result<&'a QuotaMetadata, ValidationError> {
        let Snapshot { policy, names, .. } = snapshot;
        let check = &self.checks()[index];
        let label = policy.key_by(check).label(&self.caller());
        names.get(policy, label, usize::from(check.quota), self.tier)
    }

    /// Returns the statistics of the endpoint.
    #[inline]
    pub(super) fn endpoint<'a>(&self, snapshot: &'a Snapshot) -> &'a DecisionCounters {
        &snapshot.endpoints[self.endpoint]
    }
}

/// Calls `call` with a batch of these checks. Checks of one subject share it, so that a store hashes
/// it once.
pub(super) fn with_checks<'a, T>(
    policy: &Policy,
    caller: &Caller<'_>,
    checks: impl Iterator<Item = BatchCheck<'a>>,
    call: impl FnOnce(&Batch<'_>) -> T,
) -> T {
    // Read twice: the batch borrows the subjects, so that all of them are found first. `collect` takes 60
    // instructions more.
    let mut planned: SmallVec<[BatchCheck<'_>; MAX_CHECKS]> = SmallVec::new();
    for check in checks {
        planned.push(check);
    }
    let mut subjects: SmallVec<[(u16, Subject<'_>); 4]> = SmallVec::new();
    for (check, ..) in &planned {
        if subjects.iter().all(|(key_by, _)| *key_by != check.key_by) {
            let subject = policy.key_by(check).subject_or_caller(caller);
            subjects.push((check.key_by, subject));
        }
    }
    let mut batch: SmallVec<[Check<'_>; MAX_CHECKS]> = SmallVec::new();
    for check in &planned {
        let key_by = check.0.key_by;
        if let Some((_, subject)) = subjects.iter().find(|(known, _)| *known == key_by) {
            batch.push(batch_check(policy, subject, *check));
        }
    }
    call(&Batch::from_plan(&batch))
}

#[inline]
fn batch_check<'a>(
    policy: &'a Policy,
    subject: &'a Subject<'a>,
    (check, quota, cost): BatchCheck<'a>,
) -> Check<'a> {
    Check::new(subject, &policy.quota(check).counter)
        .with_quota(quota)
        .with_cost(cost)
        .with_group(check.group)
}
