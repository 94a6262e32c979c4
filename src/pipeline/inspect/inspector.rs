//! Collects the limits of one caller.

use super::super::overrides::override_for;
use super::super::{RequestPipeline, Snapshot};
use super::{InspectedCaller, LimitStatus};
use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::policy_name;
use crate::policy::{CounterOf, dimensions};
use crate::quota::Quota;
use crate::store::{AppliedOverride, Store, StoreFuture};
use crate::usage::{Usage, Usages};

/// A caller with what its limits depend on.
pub(super) struct Inspector<'a> {
    pub(super) pipeline: &'a RequestPipeline,
    pub(super) snapshot: &'a Snapshot,
    pub(super) inspected: &'a InspectedCaller,
    pub(super) tier: usize,
    pub(super) now: Timestamp,
    /// Whether the local fallback counts, which may admit only its share.
    pub(super) degraded: bool,
}

impl Inspector<'_> {
    /// Returns the counters of the caller, without those that are omitted.
    fn counters(&self) -> impl Iterator<Item = CounterOf<'_>> {
        let all = self.snapshot.policy.counters_of(&self.inspected.caller());
        all.filter(|of| !self.inspected.is_omitted(of))
    }

    /// Returns the number of limits that are omitted.
    pub(super) fn omitted(&self) -> usize {
        let all = self.snapshot.policy.counters_of(&self.inspected.caller());
        all.filter(|of| self.inspected.is_omitted(of)).count()
    }

    /// Returns the quota of a counter, and what was set at run time.
    fn quota(&self, of: &CounterOf<'_>) -> (Quota, Option<AppliedOverride>) {
        let overrides = self.pipeline.override_table();
        let set = overrides.and_then(|overrides| {
            let (wall, caller) = (self.pipeline.wall_at(self.now), self.inspected.caller());
            override_for(overrides, &caller, of.key_by, &of.quota.counter, wall)
        });
        let quota = set.map_or(*of.quota.quota(self.tier), |set| set.quota);
        if self.degraded {
            return (self.snapshot.policy.local_share_of(&quota), set);
        }
        (quota, set)
    }

    /// Returns when a counter denied the first of a row of requests, on the wall clock.
    fn denied_since(&self, of: &CounterOf<'_>) -> Option<Timestamp> {
        let recent = self.inspected.recent.as_ref()?;
        let since = recent.denied_since(of.quota.counter.id(), self.now)?;
        Some(self.pipeline.wall_at(since))
    }

    /// Returns every limit, without its usage.
    pub(super) fn limits(&self) -> Vec<LimitStatus> {
        let limit = |of: CounterOf<'_>| {
            let (quota, set) = self.quota(&of);
            LimitStatus {
                kind: of.kind,
                rule: of.rule.to_owned(),
                policy: policy_name(of.label, of.rule, &quota),
                counter: dimensions(&of.subject),
                quota,
                usage: Usage::default(),
                overridden: set.is_some(),
                blocked_until: set.and_then(|set| set.blocked_until),
                dry_run: of.dry_run,
                denied_since: self.denied_since(&of),
            }
        };
        self.counters().map(limit).collect()
    }

    /// Reads the usage of all limits, in their order.
    pub(super) fn peek(&self, store: &dyn Store) -> Vec<StoreFuture<Usages>> {
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

/// Calls a store with checks, in batches.
pub(super) fn batches<T>(
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
