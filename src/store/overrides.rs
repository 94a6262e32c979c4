//! Limits that are set at run time: [`Override`], and the table in which stores keep them.

mod entry;
mod filter;

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use smallvec::SmallVec;

pub(crate) use self::entry::AppliedOverride;
pub use self::entry::Override;
use self::filter::ValueFilter;
use crate::clock::Timestamp;
use crate::key::Subject;
use crate::quota::Quota;
use crate::sync::locked;

/// Overrides of a store, for look-ups on each request.
///
/// A memory store keeps its overrides here. A store that several processes share keeps a copy here and
/// [replaces](Overrides::replace) it within a second of a change.
///
/// A look-up for a subject without overrides does not read the table: a filter has a bit for each value
/// that occurs in an override.
pub struct Overrides {
    /// Number of overrides in the table. Most tables are empty, and then it is all that is read.
    len: AtomicUsize,
    filter: ValueFilter,
    /// End of maintenance, in microseconds. Copied from the table because each request reads it.
    maintenance_until: AtomicU64,
    /// The next instant at which an override ends, in microseconds; [`u64::MAX`] if none does.
    next_end: AtomicU64,
    table: ArcSwap<OverrideTable>,
    /// Number of changes of the table.
    version: AtomicU64,
    /// Whether the first load is not done. Then `len` is [`usize::MAX`], so that one load
    /// shows requests that they have to wait.
    is_loading: AtomicBool,
    /// Held while the table is copied, changed and replaced.
    changing: Mutex<()>,
}

#[derive(Clone, Default)]
struct OverrideTable {
    hasher: RandomState,
    /// By the hash of subject and rule.
    by_hash: HashMap<u64, SmallVec<[Arc<Override>; 1]>>,
}

impl OverrideTable {
    fn hash(&self, subject: &Subject<'_>, rule: &str) -> u64 {
        self.hasher.hash_one((subject, rule))
    }

    fn of(&self, subject: &Subject<'_>, rule: &str) -> impl Iterator<Item = &Arc<Override>> {
        let found = self.by_hash.get(&self.hash(subject, rule));
        let found = found.map_or(&[][..], SmallVec::as_slice);
        found.iter().filter(|known| known.is_for(subject, rule))
    }

    fn insert(&mut self, new: Override) {
        let hash = self.hash(&new.subject(), new.rule());
        let place = self.by_hash.entry(hash).or_default();
        place.retain(|known| !known.is_replaced_by(&new));
        place.push(Arc::new(new));
    }

    /// Returns whether there were any.
    fn remove(&mut self, subject: &Subject<'_>, rule: &str) -> bool {
        let hash = self.hash(subject, rule);
        let Entry::Occupied(mut place) = self.by_hash.entry(hash) else {
            return false;
        };
        let before = place.get().len();
        place.get_mut().retain(|known| !known.is_for(subject, rule));
        let removed = place.get().len() < before;
        if place.get().is_empty() {
            place.remove();
        }
        removed
    }

    fn retain(&mut self, mut keep: impl FnMut(&Override) -> bool) {
        self.by_hash.retain(|_, place| {
            place.retain(|known| keep(known));
            !place.is_empty()
        });
    }

    fn len(&self) -> usize {
        self.by_hash.values().map(SmallVec::len).sum()
    }
}

impl Overrides {
    /// Returns an empty table.
    #[must_use]
    pub fn new() -> Self {
        Self {
            len: AtomicUsize::new(0),
            filter: ValueFilter::default(),
            maintenance_until: AtomicU64::new(0),
            next_end: AtomicU64::new(u64::MAX),
            table: ArcSwap::default(),
            version: AtomicU64::new(0),
            is_loading: AtomicBool::new(false),
            changing: Mutex::new(()),
        }
    }

    /// Returns a table that is empty because it has not been loaded yet.
    #[cfg(feature = "redis")]
    pub(crate) fn loading() -> Self {
        let table = Self::new();
        table.is_loading.store(true, Ordering::Release);
        table.len.store(usize::MAX, Ordering::Release);
        table
    }

    /// Ends the first load.
    #[cfg(feature = "redis")]
    pub(crate) fn finish_loading(&self) {
        let _changing = locked(&self.changing);
        self.is_loading.store(false, Ordering::Release);
        let len = self.table.load().len();
        self.len.store(len, Ordering::Release);
    }

    /// Returns whether the table has not been loaded yet. See [`OverrideStore::loaded`].
    ///
    /// [`OverrideStore::loaded`]: super::OverrideStore::loaded
    #[inline]
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.len.load(Ordering::Acquire) == usize::MAX
    }

    /// Returns whether there are no overrides.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    /// Returns until when maintenance lasts, if that is after `now`, which is wall-clock time.
    #[inline]
    pub(crate) fn maintenance_until(&self, now: Timestamp) -> Option<Timestamp> {
        let until = Timestamp::from_micros(self.maintenance_until.load(Ordering::Acquire));
        (now < until).then_some(until)
    }

    /// Adds an override. It replaces one for the same subject, rule and window.
    pub fn set(&self, new: Override) {
        self.change(|table| table.insert(new));
    }

    /// Removes the overrides of a subject under a rule. Returns whether there were any.
    pub fn remove(&self, subject: &Subject<'_>, rule: &str) -> bool {
        let mut removed = false;
        self.change(|table| removed = table.remove(subject, rule));
        removed
    }

    /// Replaces the overrides of subjects under a rule, each given by an override of them, by these.
    #[cfg(feature = "redis")]
    pub(crate) fn apply(&self, changes: impl Iterator<Item = (Override, Vec<Override>)>) {
        self.change(|table| {
            for (of, all) in changes {
                table.remove(&of.subject(), of.rule());
                for new in all {
                    table.insert(new);
                }
            }
        });
    }

    /// Replaces all overrides by these.
    pub fn replace(&self, all: impl IntoIterator<Item = Override>) {
        self.change(|table| {
            table.by_hash.clear();
            all.into_iter().for_each(|new| table.insert(new));
        });
    }

    /// Returns the overrides that apply at `now`, which is wall-clock time, in no particular order.
    /// Drops those that have ended.
    #[must_use]
    pub fn list(&self, now: Timestamp) -> Vec<Override> {
        self.sweep(now);
        let table = self.table.load();
        let known = table.by_hash.values().flatten();
        known.map(|known| Override::clone(known)).collect()
    }

    /// Drops the overrides that have ended at `now`, which is wall-clock time.
    pub(crate) fn sweep(&self, now: Timestamp) {
        if self.next_end.load(Ordering::Acquire) <= now.as_micros() {
            self.change(|table| table.retain(|known| !known.is_expired(now)));
        }
    }

    /// Returns whether there may be an override for this subject or for one of its dimensions. If not,
    /// [`find`](Self::find) returns `None` for all of them. Costs one load if there are no overrides,
    /// else about ten instructions for each dimension.
    #[inline]
    pub(crate) fn may_have(&self, subject: &Subject<'_>) -> bool {
        !self.is_empty() && self.filter.may_have(subject)
    }

    /// Returns what replaces `quota` of a rule for exactly this subject at `now`, which is wall-clock
    /// time.
    #[inline]
    pub(crate) fn find(
        &self,
        subject: &Subject<'_>,
        rule: &str,
        quota: &Quota,
        now: Timestamp,
    ) -> Option<AppliedOverride> {
        self.sweep(now);
        if !self.may_have(subject) {
            return None;
        }
        self.find_in_table(subject, rule, quota, now)
    }

    #[cold]
    fn find_in_table(
        &self,
        subject: &Subject<'_>,
        rule: &str,
        quota: &Quota,
        now: Timestamp,
    ) -> Option<AppliedOverride> {
        let table = self.table.load();
        let mut known = table
            .of(subject, rule)
            .filter(|known| !known.is_expired(now));
        known.find_map(|known| known.applied_to(quota))
    }

    fn change(&self, change: impl FnOnce(&mut OverrideTable)) {
        let _changing = locked(&self.changing);
        let mut table = OverrideTable::clone(&self.table.load());
        change(&mut table);
        let len = if self.is_loading.load(Ordering::Acquire) {
            usize::MAX
        } else {
            table.len()
        };
        let subject = Override::maintenance_subject();
        let until = table.of(&subject, Override::MAINTENANCE).next();
        let until = until
            .and_then(|known| known.expires_at())
            .unwrap_or_default();
        self.maintenance_until
            .store(until.as_micros(), Ordering::Release);
        let ends = table.by_hash.values().flatten();
        let next_end = ends.filter_map(|known| known.expires_at()).min();
        let next_end = next_end.map_or(u64::MAX, Timestamp::as_micros);
        self.next_end.store(next_end, Ordering::Release);
        let known = table.by_hash.values().flatten();
        self.filter.replace(known.map(|known| known.subject()));
        self.table.store(Arc::new(table));
        self.len.store(len, Ordering::Release);
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns a number that changes with the table.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
}

impl Default for Overrides {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.len.load(Ordering::Acquire);
        f.debug_struct("Overrides")
            .field("len", &len)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Overrides that had ended stayed in the table until they were listed.
    #[test]
    fn look_up_after_the_end_drops_an_override() {
        let (overrides, end) = (Overrides::new(), Timestamp::from_secs(100));
        let quota = Quota::per_hour(10).expect("valid");
        let new = |user, rule| Override::new([("user", user)], rule, "20/hour").expect("valid");
        overrides.set(new("alice", "api").until(end));
        overrides.set(new("bob", "api").until(Timestamp::from_secs(200)));
        let is_found = |user, now| {
            let subject = Subject::from([("user", user)]);
            overrides.find(&subject, "api", &quota, now).is_some()
        };
        assert!(is_found(
            "alice",
            Timestamp::from_micros(end.as_micros() - 1)
        ));
        assert!(!is_found("alice", end));
        assert!(is_found("bob", end) && !overrides.is_empty());
        assert!(!is_found("carol", Timestamp::from_secs(200)));
        assert!(overrides.is_empty());
    }
}
