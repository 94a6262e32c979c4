//! The denials that are remembered, and what makes them untrue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::denial::{CachedDenial, Stability, span};
use super::versions::{SubjectVersions, VersionSlot};
use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::Timestamp;
use crate::key::Subject;
use crate::store::by_print::{ByPrint, by_print};
use crate::store::fingerprint::{Fingerprint, RequestPrint, Secret};
use crate::usage::Usages;

pub(super) struct DenialTable {
    secret: Secret,
    denials: ByPrint<Arc<CachedDenial>>,
    versions: SubjectVersions,
    max_ttl: Duration,
    answered: AtomicU64,
}

/// A request that the store is asked about.
pub(super) struct CacheMiss {
    print: RequestPrint,
    at: Timestamp,
    /// Of each check, what had happened to its subject, and when its figures stay.
    subjects: [(VersionSlot, u64); MAX_CHECKS],
    steady: [Stability; MAX_CHECKS],
    /// Epoch of the store before it was asked.
    epoch: u64,
}

impl DenialTable {
    pub(super) fn new(capacity: usize, max_ttl: Duration) -> Self {
        Self {
            secret: Secret::random(),
            denials: by_print(capacity),
            versions: SubjectVersions::none(),
            max_ttl,
            answered: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn fingerprints(&self, batch: &Batch<'_>) -> [Fingerprint; MAX_CHECKS] {
        self.secret.fingerprints(batch.checks())
    }

    #[inline]
    pub(super) fn request(&self, checks: &[Check<'_>], prints: &[Fingerprint]) -> RequestPrint {
        self.secret.request(checks, prints)
    }

    /// What the store has said to this request, if it would say it again.
    #[inline]
    pub(super) fn recall(
        &self,
        print: RequestPrint,
        epoch: u64,
        now: Timestamp,
    ) -> Option<Arc<CachedDenial>> {
        let denial = self.denials.get(&print)?;
        let is_same = |(slot, count): &(VersionSlot, u64)| self.versions.count(*slot) == *count;
        if denial.epoch != epoch || !denial.holds(now) || !denial.counts_on.iter().all(is_same) {
            return None;
        }
        self.answered.fetch_add(1, Ordering::Relaxed);
        Some(denial)
    }

    /// Notes how things stand before a request is put to the store.
    pub(super) fn asked(
        &self,
        checks: &[Check<'_>],
        prints: &[Fingerprint],
        print: RequestPrint,
        (epoch, at): (u64, Timestamp),
    ) -> CacheMiss {
        let mut asked = CacheMiss {
            print,
            at,
            subjects: [(VersionSlot::default(), 0); MAX_CHECKS],
            steady: [Stability::Always; MAX_CHECKS],
            epoch,
        };
        for (index, (check, print)) in checks.iter().zip(prints).enumerate() {
            let slot = VersionSlot::of(*print);
            asked.subjects[index] = (slot, self.versions.count(slot));
            asked.steady[index] = Stability::of(check);
        }
        asked
    }

    /// What the store has said to it.
    pub(super) fn heard(&self, asked: &CacheMiss, answer: &Usages) {
        let (usages, at) = (answer.usages(), answer.at());
        let subjects = asked.subjects.iter().zip(usages);
        if answer.is_allowed() {
            // It was charged: whoever is denied by the same counters waits longer now.
            for ((slot, _), _) in subjects {
                self.versions.add_if_counted_on(*slot);
            }
            return;
        }
        let span = span(usages, &asked.steady, at, self.max_ttl);
        if span.is_zero() {
            return;
        }
        // What becomes of those that had room makes no difference to the outcome.
        let denied = subjects.filter(|(_, usage)| !usage.is_allowed());
        let denied = denied.map(|(subject, _)| *subject);
        let counts_on: Box<[_]> = denied.collect();
        let mut counted_on = counts_on.iter();
        if counted_on.all(|(slot, count)| self.versions.count_on(*slot, *count)) {
            let denial = CachedDenial::new(usages, at, (asked.epoch, asked.at), span, counts_on);
            self.denials.insert(asked.print, Arc::new(denial));
        }
    }

    pub(super) fn slot(&self, subject: &Subject<'_>) -> VersionSlot {
        VersionSlot::of(self.secret.fingerprint(subject))
    }

    /// The slots of all subjects of a batch.
    pub(super) fn slots(&self, batch: &Batch<'_>) -> Vec<VersionSlot> {
        let subjects = batch.checks().iter().map(Check::subject);
        let mut slots: Vec<VersionSlot> = subjects.map(|subject| self.slot(subject)).collect();
        slots.dedup();
        slots
    }

    /// Something versions, from now on until what comes back is dropped.
    pub(super) fn changing(
        table: &Arc<Self>,
        slots: impl IntoIterator<Item = VersionSlot>,
    ) -> InvalidationGuard {
        let change = InvalidationGuard {
            table: Arc::clone(table),
            slots: slots.into_iter().collect(),
        };
        change.tell();
        change
    }

    pub(super) fn len(&self) -> usize {
        self.denials.len()
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

/// Something that versions.
pub(super) struct InvalidationGuard {
    table: Arc<DenialTable>,
    slots: Box<[VersionSlot]>,
}

impl InvalidationGuard {
    fn tell(&self) {
        for slot in &self.slots {
            self.table.versions.add(*slot);
        }
    }
}

/// Also if nobody waits for the answer.
impl Drop for InvalidationGuard {
    fn drop(&mut self) {
        self.tell();
    }
}
