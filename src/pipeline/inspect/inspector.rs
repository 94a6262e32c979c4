//! Collects the limits of one caller.

use super::super::overrides::quota_set_for;
use super::super::{RequestPipeline, Snapshot};
use super::LimitStatus;
use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::policy_name;
use crate::policy::{Caller, CounterOf, dimensions};
use crate::quota::Quota;
use crate::store::{Store, StoreFuture};
use crate::usage::{Usage, Usages};

/// A caller with what its limits depend on.
pub(super) struct Inspector<'a> {
    pub(super) pipeline: &'a RequestPipeline,
    pub(super) snapshot: &'a Snapshot,
    pub(super) caller: Caller<'a>,
    pub(super) tier: usize,
    pub(super) now: Timestamp,
    /// Whether the local fallback counts, which may admit only its share.
    pub(super) degraded: bool,
}

impl Inspector<'_> {
    fn counters(&self) -> impl Iterator<Item = CounterOf<'_>> {
        self.snapshot.policy.counters_of(&self.caller)
    }

    /// Returns the quota of a counter, and whether it was set at run time.
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

    /// Returns every limit, without its usage.
    pub(super) fn limits(&self) -> Vec<LimitStatus> {
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
