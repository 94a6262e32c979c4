//! Owned copy of a batch, charged and refunded in multiples: [`LeaseRequest`].

use crate::batch::{Batch, Check};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::{Counter, OwnedSubject, Subject};
use crate::quota::Quota;
use crate::store::{Store, StoreFuture};
use crate::usage::Usages;

/// A batch of live checks. A block of n credits charges n times its costs.
#[derive(Clone)]
pub(super) struct LeaseRequest {
    checks: Box<[OwnedCheck]>,
}

#[derive(Clone)]
struct OwnedCheck {
    subject: OwnedSubject,
    counter: Counter,
    quota: Quota,
    cost: u64,
}

impl LeaseRequest {
    pub(super) fn new(batch: &Batch<'_>) -> Self {
        let owned = |check: &Check<'_>| OwnedCheck {
            subject: OwnedSubject::from(check.subject()),
            counter: check.counter().clone(),
            quota: *check.quota(),
            cost: check.cost(),
        };
        Self {
            checks: batch.checks().iter().map(owned).collect(),
        }
    }

    /// Returns the cost of one credit for each check.
    pub(super) fn costs(&self) -> impl Iterator<Item = u64> {
        self.checks.iter().map(|check| check.cost)
    }

    pub(super) fn quotas(&self) -> impl Iterator<Item = &Quota> {
        self.checks.iter().map(|check| &check.quota)
    }

    /// Charges `credits` in one call.
    pub(super) fn decide(
        &self,
        store: &dyn Store,
        credits: u64,
        now: Timestamp,
    ) -> StoreFuture<Usages> {
        self.with_batch(credits, |batch| store.decide(batch, now))
    }

    /// Refunds `credits` that were charged at `charged_at`.
    pub(super) fn refund(
        &self,
        store: &dyn Store,
        credits: u64,
        charged_at: Timestamp,
        now: Timestamp,
    ) -> StoreFuture<()> {
        self.with_batch(credits, |batch| store.refund(batch, charged_at, now))
    }

    fn with_batch<T>(
        &self,
        credits: u64,
        call: impl FnOnce(&Batch<'_>) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        let subjects: Vec<Subject<'_>> = self
            .checks
            .iter()
            .map(|check| check.subject.as_subject())
            .collect();
        let checks: Vec<Check<'_>> = self
            .checks
            .iter()
            .zip(&subjects)
            .map(|(check, subject)| {
                Check::new(subject, &check.counter)
                    .with_quota(&check.quota)
                    .with_cost(check.cost.saturating_mul(credits))
            })
            .collect();
        match Batch::new(&checks) {
            Ok(batch) => call(&batch),
            Err(invalid) => StoreFuture::ready(Err(StoreError::permanent(invalid.to_string()))),
        }
    }
}
