//! Limits that are set at run time: [`Override`], and the table that stores keep them in.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;

use crate::clock::Timestamp;
use crate::error::Invalid;
use crate::key::{OwnedSubject, Subject, Value, is_plain};
use crate::quota::{IntoQuota, Quota};
use crate::sync::locked;

/// Another limit for one subject under one rule, for good or until an instant: double what Acme
/// may do over the launch weekend, block a user, lift a limit.
///
/// ```
/// use tollgate::{Override, Timestamp};
///
/// let launch = Override::new([("tenant", "acme")], "outbound", "2000/hour")?
///     .until(Timestamp::from_secs(1_796_083_200));
/// let blocked = Override::new([("user", "mallory")], "global", "blocked")?;
/// # let _ = (launch, blocked);
/// # Ok::<(), tollgate::Invalid>(())
/// ```
///
/// # For whom
///
/// For the counter of that subject; or, if the subject is one dimension of callers, for all who
/// have it: where `global` counts per user, an override for a tenant is for each of its users.
/// What is for a counter itself comes first, then what is for the dimension that callers are
/// known by, then the others.
///
/// # How much
///
/// The amount of the quota replaces that of the rule, whatever the tier; its window says which
/// of the rule's quotas is meant. `unlimited` and `blocked` are for all of them. What was
/// counted so far stays counted.
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct Override {
    subject: OwnedSubject,
    rule: Box<str>,
    quota: Quota,
    until: Option<Timestamp>,
}

impl Override {
    /// This quota for this subject under the rule of this name.
    pub fn new<'a>(
        subject: impl Into<Subject<'a>>,
        rule: impl Into<String>,
        quota: impl IntoQuota,
    ) -> Result<Self, Invalid> {
        let rule = rule.into();
        if !is_plain(&rule, 128) {
            let expected = "the name of a rule";
            return Err(Invalid::new("rule name", rule.escape_debug(), expected));
        }
        Ok(Self {
            subject: OwnedSubject::from(&subject.into().with_addresses()),
            rule: rule.into(),
            quota: quota.into_quota()?,
            until: None,
        })
    }

    /// Something to find those of a subject by.
    pub(crate) fn of(subject: Subject<'_>, rule: &str) -> Self {
        Self {
            subject: OwnedSubject::from(&subject.with_addresses()),
            rule: rule.into(),
            quota: Quota::unlimited(),
            until: None,
        }
    }

    /// Nobody is counted until then. It is kept among the overrides, since those reach the whole
    /// fleet and end by themselves; of a subject that no caller can be, and a rule that counts
    /// nobody.
    pub(crate) fn maintenance(until: Timestamp) -> Self {
        Self {
            until: Some(until),
            ..Self::of(Self::nobody(), Self::MAINTENANCE)
        }
    }

    /// The rule of [`maintenance`](Self::maintenance).
    pub(crate) const MAINTENANCE: &str = "maintenance";

    /// The subject of [`maintenance`](Self::maintenance): rules cannot name such a dimension.
    pub(crate) const fn nobody() -> Subject<'static> {
        Subject::named(("@tollgate", Value::Text(Self::MAINTENANCE)))
    }

    pub(crate) fn is_maintenance(&self) -> bool {
        self.is_for(&Self::nobody(), Self::MAINTENANCE)
    }

    /// The same, with addresses taken for the networks that they are counted by.
    pub(crate) fn in_network(mut self, group: impl Fn(IpAddr) -> IpAddr) -> Self {
        self.subject.change_addresses(group);
        self
    }

    /// Limits the override to the time before `until`, on the wall clock.
    pub fn until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }

    /// Whose limit it is.
    #[must_use]
    pub fn subject(&self) -> Subject<'_> {
        self.subject.as_subject()
    }

    /// Under which rule.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// What the limit is.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Until when it applies, if not for good.
    #[must_use]
    pub const fn ends(&self) -> Option<Timestamp> {
        self.until
    }

    /// Returns whether it has ended at `now`, which is wall-clock time.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// What it makes of a quota of its rule; `None` if another one is meant.
    pub(crate) fn applied_to(&self, quota: &Quota) -> Option<Quota> {
        if self.quota.counts_nothing() {
            return Some(self.quota);
        }
        // A rule without a counter has nothing to replace the amount of.
        if quota.counts_nothing() || quota.window() != self.quota.window() {
            return None;
        }
        quota.with_amount(self.quota.amount()).ok()
    }

    /// Whether the other one takes its place.
    fn is_replaced_by(&self, other: &Self) -> bool {
        self.is_for(&other.subject(), &other.rule)
            && (self.quota.window() == other.quota.window()
                || self.quota.counts_nothing()
                || other.quota.counts_nothing())
    }

    fn is_for(&self, subject: &Subject<'_>, rule: &str) -> bool {
        *self.rule == *rule && self.subject() == *subject
    }
}

/// Shows what it is and not whose.
impl fmt::Debug for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Override")
            .field("subject", &self.subject())
            .field("rule", &self.rule)
            .field("quota", &self.quota)
            .field("until", &self.until)
            .finish()
    }
}

/// The overrides of a store, ready to be asked on every request.
///
/// A store of its own keeps its overrides in here; one that is shared by several processes
/// keeps a copy and [replaces](Overrides::replace) it within a second.
pub struct Overrides {
    /// As many as the table has: most have none, and asking must not cost them anything.
    len: AtomicUsize,
    /// Until when nobody is counted, in microseconds: every request asks, so it is at hand.
    rests_until: AtomicU64,
    /// When the next of them ends, in microseconds; [`u64::MAX`] if none does.
    next_end: AtomicU64,
    table: ArcSwap<Table>,
    /// Counts changes of the table.
    version: AtomicU64,
    /// Held while the table is changed.
    changing: Mutex<()>,
}

#[derive(Clone, Default)]
struct Table {
    hasher: RandomState,
    /// By the hash of subject and rule.
    by_hash: HashMap<u64, Vec<Arc<Override>>>,
}

impl Table {
    fn hash(&self, subject: &Subject<'_>, rule: &str) -> u64 {
        self.hasher.hash_one((subject, rule))
    }

    fn of(&self, subject: &Subject<'_>, rule: &str) -> impl Iterator<Item = &Arc<Override>> {
        let found = self.by_hash.get(&self.hash(subject, rule));
        let found = found.map_or(&[][..], Vec::as_slice);
        found.iter().filter(|known| known.is_for(subject, rule))
    }

    fn insert(&mut self, new: Override) {
        let hash = self.hash(&new.subject(), new.rule());
        let place = self.by_hash.entry(hash).or_default();
        place.retain(|known| !known.is_replaced_by(&new));
        place.push(Arc::new(new));
    }

    fn retain(&mut self, mut keep: impl FnMut(&Override) -> bool) {
        self.by_hash.retain(|_, place| {
            place.retain(|known| keep(known));
            !place.is_empty()
        });
    }

    fn len(&self) -> usize {
        self.by_hash.values().map(Vec::len).sum()
    }
}

impl Overrides {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self {
            len: AtomicUsize::new(0),
            rests_until: AtomicU64::new(0),
            next_end: AtomicU64::new(u64::MAX),
            table: ArcSwap::default(),
            version: AtomicU64::new(0),
            changing: Mutex::new(()),
        }
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    /// Returns until when maintenance lasts, if that is after `now`, which is wall-clock time.
    #[inline]
    pub(crate) fn rests_until(&self, now: Timestamp) -> Option<Timestamp> {
        let until = Timestamp::from_micros(self.rests_until.load(Ordering::Acquire));
        (now < until).then_some(until)
    }

    /// Adds one; it takes the place of one for the same.
    pub fn set(&self, new: Override) {
        self.change(|table| table.insert(new));
    }

    /// Removes those of a subject under a rule, and says whether there were any.
    pub fn remove(&self, subject: &Subject<'_>, rule: &str) -> bool {
        let mut removed = false;
        self.change(|table| {
            table.retain(|known| {
                let is_meant = known.is_for(subject, rule);
                removed |= is_meant;
                !is_meant
            });
        });
        removed
    }

    /// Has these and no others from now on.
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

    /// Drops those that do not apply any more: they are over, whatever asks next, and as long as
    /// any is left, everybody goes the long way.
    pub(crate) fn sweep(&self, now: Timestamp) {
        if self.next_end.load(Ordering::Acquire) <= now.as_micros() {
            self.change(|table| table.retain(|known| !known.is_over(now)));
        }
    }

    /// What a quota of a rule is for a subject, if somebody has set it.
    pub(crate) fn find(
        &self,
        subject: &Subject<'_>,
        rule: &str,
        quota: &Quota,
        now: Timestamp,
    ) -> Option<Quota> {
        self.sweep(now);
        let table = self.table.load();
        let mut known = table.of(subject, rule).filter(|known| !known.is_over(now));
        known.find_map(|known| known.applied_to(quota))
    }

    fn change(&self, change: impl FnOnce(&mut Table)) {
        let _changing = locked(&self.changing);
        let mut table = Table::clone(&self.table.load());
        change(&mut table);
        let len = table.len();
        let nobody = Override::nobody();
        let until = table.of(&nobody, Override::MAINTENANCE).next();
        let until = until.and_then(|known| known.until).unwrap_or_default();
        self.rests_until.store(until.as_micros(), Ordering::Release);
        let ends = table.by_hash.values().flatten();
        let next_end = ends.filter_map(|known| known.until).min();
        let next_end = next_end.map_or(u64::MAX, Timestamp::as_micros);
        self.next_end.store(next_end, Ordering::Release);
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

    /// Once an override had ended, every request went on looking for it until somebody listed
    /// them.
    #[test]
    fn whoever_asks_after_the_end_is_the_last_to_look() {
        let (overrides, end) = (Overrides::new(), Timestamp::from_secs(100));
        let quota = Quota::per_hour(10).expect("valid");
        let new = |user, rule| Override::new([("user", user)], rule, "20/hour").expect("valid");
        overrides.set(new("alice", "api").until(end));
        overrides.set(new("bob", "api").until(Timestamp::from_secs(200)));
        let asked = |user, now| {
            let subject = Subject::from([("user", user)]);
            overrides.find(&subject, "api", &quota, now).is_some()
        };
        assert!(asked("alice", Timestamp::from_micros(end.as_micros() - 1)));
        assert!(!asked("alice", end));
        assert!(asked("bob", end) && !overrides.is_empty());
        assert!(!asked("carol", Timestamp::from_secs(200)));
        assert!(overrides.is_empty());
    }
}
