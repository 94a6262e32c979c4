//! Cached denials and what invalidates them: [`DenialTable`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::denial::{CachedDenial, Stability, time_to_live};
use super::versions::{SubjectVersions, VersionSlot};
use crate::batch::{Batch, Check, MAX_BATCH, MAX_CHECKS};
use crate::clock::Timestamp;
use crate::store::by_fingerprint::{ByFingerprint, by_fingerprint};
use crate::store::subject_hash::{RequestFingerprint, SubjectHasher};
use crate::usage::Usages;

pub(super) struct DenialTable {
    hasher: SubjectHasher,
    denials: ByFingerprint<Arc<CachedDenial>>,
    versions: SubjectVersions,
    max_ttl: Duration,
    hits: AtomicU64,
}

/// A request, its subjects, and the epoch of the store before the call.
pub(super) struct Lookup {
    request: RequestFingerprint,
    subjects: [VersionSlot; MAX_BATCH],
    epoch: u64,
    called_at: Timestamp,
}

impl DenialTable {
    pub(super) fn new(capacity: usize, max_ttl: Duration) -> Self {
        Self {
            hasher: SubjectHasher::random(),
            denials: by_fingerprint(capacity),
            versions: SubjectVersions::new(),
            max_ttl,
            hits: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn lookup(&self, batch: &Batch<'_>, epoch: u64, now: Timestamp) -> Lookup {
        let prints = self.hasher.fingerprints::<MAX_BATCH>(batch.checks());
        Lookup {
            request: self.hasher.request(batch.checks(), &prints),
            subjects: prints.map(VersionSlot::of),
            epoch,
            called_at: now,
        }
    }

    /// Returns the denial of this request if it is valid.
    #[inline]
    pub(super) fn get(&self, lookup: &Lookup) -> Option<Arc<CachedDenial>> {
        let denial = self.denials.get(&lookup.request)?;
        let is_same = |(slot, version): &(_, _)| self.versions.current(*slot) == *version;
        if !denial.is_current(lookup.epoch, lookup.called_at)
            || !denial.versions.iter().all(is_same)
        {
            return None;
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(denial)
    }

    /// Invalidates the denials of all subjects of a batch, now and again when the guard is dropped.
    pub(super) fn invalidate(self: &Arc<Self>, batch: &Batch<'_>) -> InvalidationGuard {
        let subjects = batch.checks().iter().map(Check::subject);
        let prints = subjects.map(|subject| self.hasher.fingerprint(subject));
        let guard = InvalidationGuard {
            table: Arc::clone(self),
            subjects: prints.map(VersionSlot::of).collect(),
        };
        guard.change_versions();
        guard
    }

    pub(super) fn len(&self) -> usize {
        self.denials.len()
    }

    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
}

/// A request that is decided by the store, and the state from before the call.
pub(in crate::store) struct CacheMiss {
    table: Arc<DenialTable>,
    lookup: Lookup,
    /// Of each check of the live group: version of its subject, and stability.
    live: [(u64, Stability); MAX_CHECKS],
}

impl CacheMiss {
    pub(super) fn new(table: &Arc<DenialTable>, lookup: Lookup, batch: &Batch<'_>) -> Self {
        let mut live = [(0, Stability::Always); MAX_CHECKS];
        for ((entry, slot), check) in live.iter_mut().zip(lookup.subjects).zip(batch.checks()) {
            *entry = (table.versions.current(slot), Stability::of(check));
        }
        Self {
            table: Arc::clone(table),
            lookup,
            live,
        }
    }

    /// Stores the denial of the live group. After a charge, invalidates the denials that depend on
    /// the same subjects, because their resets are later now.
    pub(in crate::store) fn complete(self, reply: &Usages) {
        let table = &*self.table;
        if reply.is_allowed() {
            for (slot, _) in self.lookup.subjects.iter().zip(reply.usages()) {
                table.versions.change_if_in_use(*slot);
            }
            return;
        }
        let stability = self.live.iter().map(|(_, stability)| *stability);
        let stability = stability.take(reply.live().len());
        let ttl = time_to_live(reply.usages(), stability, reply.at(), table.max_ttl);
        if ttl.is_zero() {
            return;
        }
        // Checks with room have no influence on the outcome, so their versions may change.
        let versions: Box<[(VersionSlot, u64)]> = (self.lookup.subjects.iter())
            .zip(self.live)
            .zip(reply.live())
            .filter(|(_, usage)| !usage.is_allowed())
            .map(|((slot, (version, _)), _)| (*slot, version))
            .collect();
        let mark = |(slot, version): &(_, _)| table.versions.mark_in_use(*slot, *version);
        if versions.iter().all(mark) {
            let denial = CachedDenial {
                usages: reply.usages().into(),
                decided_at: reply.at(),
                called_at: self.lookup.called_at,
                expires_at: self.lookup.called_at.saturating_add(ttl),
                epoch: self.lookup.epoch,
                versions,
            };
            table.denials.insert(self.lookup.request, Arc::new(denial));
        }
    }
}

/// A `record` or `refund` in progress. The versions change before the call and after it, also if its
/// future is dropped, because a denial that is decided meanwhile can be from before or after it.
pub(in crate::store) struct InvalidationGuard {
    table: Arc<DenialTable>,
    subjects: Box<[VersionSlot]>,
}

impl InvalidationGuard {
    fn change_versions(&self) {
        for slot in &self.subjects {
            self.table.versions.change(*slot);
        }
    }
}

impl Drop for InvalidationGuard {
    fn drop(&mut self) {
        self.change_versions();
    }
}
