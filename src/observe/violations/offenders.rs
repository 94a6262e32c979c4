//! The callers with the most denials: a sketch of fixed size.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::hashed::ByHash;
use crate::identity_types::Identity;
use crate::key::{OwnedSubject, Subject, Value};
use crate::observe::report::address_of;
use crate::observe::statistics::Offender;

/// Counts the denials of the last hour by caller: the "space saving" sketch of Metwally, Agrawal
/// and El Abbadi, with expiry.
///
/// A new caller replaces the one with the fewest denials and inherits its count, because some of
/// them may have been its own. The sum of all counts is therefore exact, the smallest count is at
/// most the average, and a caller with more than the average of all denials has an entry.
#[derive(Debug, Default)]
pub(super) struct Offenders {
    entries: Vec<OffenderEntry>,
    /// The sum of each entry, in a vector of their own for the search of the smallest.
    totals: Vec<u32>,
    /// Lower bound of all sums, and where the search of the smallest continues.
    least: u32,
    next: usize,
    by_hash: ByHash<usize>,
    newest: u64,
}

struct OffenderEntry {
    hash: u64,
    caller: StoredCaller,
    own: [u32; STEPS],
    /// Denials of the previous callers of this entry.
    inherited: [u32; STEPS],
    last_seen: Timestamp,
    policy: Arc<str>,
}

/// Caller of an entry. Addresses are stored inline: under attack entries change often, and most
/// callers are addresses.
enum StoredCaller {
    Address(IpAddr),
    Other(OwnedSubject),
}

impl StoredCaller {
    fn new(subject: &Subject<'_>) -> Self {
        match address_of(subject) {
            Some(address) => Self::Address(address.to_canonical()),
            None => Self::Other(subject.into()),
        }
    }

    fn subject(&self) -> Subject<'_> {
        match self {
            Self::Address(address) => Subject::named((Identity::IP, Value::Address(*address))),
            Self::Other(subject) => subject.as_subject(),
        }
    }
}

/// Denials expire in steps of this length, at whole multiples of it.
pub(in crate::observe) const STEP: Duration = Duration::from_mins(5);

/// Steps in an hour.
pub(in crate::observe) const STEPS: usize = 12;

impl OffenderEntry {
    /// Assigns the entry to another caller, which inherits its denials.
    fn reassign(&mut self, hash: u64, caller: StoredCaller) {
        (self.hash, self.caller) = (hash, caller);
        for (inherited, own) in self.inherited.iter_mut().zip(&mut self.own) {
            *inherited = inherited.saturating_add(std::mem::take(own));
        }
    }

    fn at_least(&self) -> u64 {
        self.own.iter().copied().map(u64::from).sum()
    }

    fn to_offender(&self, total: u32) -> Offender {
        Offender {
            subject: OwnedSubject::from(&self.caller.subject()),
            denied: u64::from(total),
            at_least: self.at_least(),
            last_seen: self.last_seen,
            policy: Arc::clone(&self.policy),
        }
    }
}

impl Offenders {
    /// Callers that are counted at a time.
    pub(super) const CAPACITY: usize = 500;

    /// Counts a denial.
    pub(super) fn add(
        &mut self,
        hash: u64,
        subject: &Subject<'_>,
        policy: &Arc<str>,
        now: Timestamp,
    ) {
        self.expire(now);
        let index = match self.by_hash.get(&hash) {
            Some(&index) => index,
            None => self.insert(hash, subject, policy),
        };
        let step = index_of(self.newest);
        let entry = &mut self.entries[index];
        entry.own[step] = entry.own[step].saturating_add(1);
        entry.last_seen = now;
        if !Arc::ptr_eq(&entry.policy, policy) {
            entry.policy = Arc::clone(policy);
        }
        self.totals[index] = self.totals[index].saturating_add(1);
    }

    fn insert(&mut self, hash: u64, subject: &Subject<'_>, policy: &Arc<str>) -> usize {
        let caller = StoredCaller::new(subject);
        let index = if self.entries.len() < Self::CAPACITY {
            self.entries.push(OffenderEntry {
                hash,
                caller,
                own: [0; STEPS],
                inherited: [0; STEPS],
                last_seen: Timestamp::EPOCH,
                policy: Arc::clone(policy),
            });
            self.totals.push(0);
            self.entries.len() - 1
        } else {
            let index = self.smallest();
            let old = &mut self.entries[index];
            self.by_hash.remove(&old.hash);
            old.reassign(hash, caller);
            index
        };
        self.by_hash.insert(hash, index);
        index
    }

    /// Returns the index of the entry with the fewest denials.
    ///
    /// Sums only grow between expiries. The search therefore continues where it ended, and looks
    /// for a new lower bound only after a full round: under attack an entry is visited about once
    /// for each time that it is reassigned.
    fn smallest(&mut self) -> usize {
        let count = self.totals.len();
        for _ in 0..=count {
            let (index, next) = (self.next, self.next + 1);
            self.next = if next < count { next } else { 0 };
            if self.totals[index] <= self.least {
                return index;
            }
        }
        let least = self.totals.iter().enumerate();
        let (index, least) = least.min_by_key(|(_, total)| **total).unwrap_or((0, &0));
        (self.least, self.next) = (*least, index);
        index
    }

    /// Drops denials that are older than an hour.
    pub(super) fn expire(&mut self, now: Timestamp) {
        let step = step_of(now);
        if step <= self.newest {
            return;
        }
        let passed = (step - self.newest).min(STEPS as u64);
        for at in (step + 1 - passed)..=step {
            for entry in &mut self.entries {
                entry.own[index_of(at)] = 0;
                entry.inherited[index_of(at)] = 0;
            }
        }
        self.newest = step;
        (self.least, self.next) = (0, 0);
        let counts = |entry: &OffenderEntry| entry.own.iter().chain(&entry.inherited).sum();
        self.entries.retain(|entry| counts(entry) > 0_u32);
        self.totals = self.entries.iter().map(counts).collect();
        let indexed = self.entries.iter().enumerate();
        self.by_hash = indexed.map(|(index, entry)| (entry.hash, index)).collect();
    }

    /// Returns the callers with the most denials.
    pub(super) fn worst(&self, most: usize) -> Vec<Offender> {
        let mut all: Vec<(u32, &OffenderEntry)> =
            self.totals.iter().copied().zip(&self.entries).collect();
        all.sort_by_key(|(total, entry)| {
            let seen = u64::MAX - entry.last_seen.as_micros();
            (u32::MAX - total, u64::MAX - entry.at_least(), seen)
        });
        let worst = all.into_iter().take(most);
        worst
            .map(|(total, entry)| entry.to_offender(total))
            .collect()
    }

    /// Returns the callers whose lower bound is above `denials`: hash, subject, lower bound.
    pub(super) fn above(&self, denials: u64) -> impl Iterator<Item = (u64, Subject<'_>, u64)> {
        self.entries.iter().filter_map(move |entry| {
            let at_least = entry.at_least();
            (at_least > denials).then(|| (entry.hash, entry.caller.subject(), at_least))
        })
    }

    /// Returns the denials of the hour without those of callers with certainly more than `denials`.
    pub(super) fn denials_of_callers_up_to(&self, denials: u64) -> u64 {
        let all: u64 = self.totals.iter().copied().map(u64::from).sum();
        all - self
            .above(denials)
            .map(|(_, _, certain)| certain)
            .sum::<u64>()
    }

    /// Returns the beginning of the hour that is counted.
    pub(super) fn window_start(&self) -> Timestamp {
        let step = (self.newest + 1).saturating_sub(STEPS as u64);
        Timestamp::EPOCH.saturating_add(STEP * u32::try_from(step).unwrap_or(u32::MAX))
    }
}

const fn step_of(now: Timestamp) -> u64 {
    now.as_micros() / (STEP.as_secs() * 1_000_000)
}

fn index_of(step: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "below 12")]
    {
        (step % STEPS as u64) as usize
    }
}

/// Hides the caller.
impl std::fmt::Debug for OffenderEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OffenderEntry").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(1_735_689_600 + secs)
    }

    /// Adds a denial of a numbered caller whose hash is its number.
    fn add(offenders: &mut Offenders, caller: u64, now: Timestamp) {
        let policy: Arc<str> = "user:global:1h".into();
        offenders.add(caller, &Subject::from(caller), &policy, now);
    }

    #[test]
    fn counts_are_exact_below_capacity_and_expire_after_an_hour() {
        let mut offenders = Offenders::default();
        for caller in 1..=20 {
            for _ in 0..caller {
                add(&mut offenders, caller, at(0));
            }
        }
        add(&mut offenders, 3, at(3_000));
        let worst = offenders.worst(2);
        let bounds = |offender: &Offender| (offender.denied, offender.at_least);
        assert_eq!(bounds(&worst[0]), (20, 20));
        assert_eq!(bounds(&worst[1]), (19, 19));
        assert_eq!(worst[0].subject.as_subject(), Subject::from(20_u64));
        assert_eq!(offenders.above(17).count(), 3);
        assert_eq!(offenders.denials_of_callers_up_to(5), 1 + 2 + 4 + 4 + 5);

        offenders.expire(at(3_599));
        assert_eq!(offenders.entries.len(), 20);
        offenders.expire(at(3_600));
        assert_eq!(offenders.entries.len(), 1, "only the later denial is left");
        assert_eq!(bounds(&offenders.worst(9)[0]), (1, 1));
        assert_eq!(offenders.window_start(), at(300));
        offenders.expire(at(1_000_000));
        assert!(offenders.by_hash.is_empty());
    }

    #[test]
    fn a_reassigned_entry_keeps_the_address_of_its_caller() {
        let mut offenders = Offenders::default();
        let policy: Arc<str> = "ip:global:1h".into();
        let address = |number: usize| IpAddr::from((number as u128).to_be_bytes());
        let subject = |number| Subject::named((Identity::IP, Value::Address(address(number))));
        for number in 0..=Offenders::CAPACITY {
            offenders.add(number as u64, &subject(number), &policy, at(0));
        }
        let worst = offenders.worst(Offenders::CAPACITY);
        assert_eq!(worst[0].subject.as_subject(), subject(Offenders::CAPACITY));
        assert_eq!((worst[0].denied, worst[0].at_least), (2, 1));
        assert_eq!(&*worst[0].policy, "ip:global:1h");
        for (number, offender) in (1..Offenders::CAPACITY).zip(&worst[1..]) {
            assert_eq!(offender.subject.as_subject(), subject(number));
        }
    }

    /// Ten times as many denials as entries, and one caller with a little more than the average.
    #[test]
    fn a_caller_above_the_average_is_never_lost_and_never_underestimated() {
        let mut offenders = Offenders::default();
        let most = Offenders::CAPACITY as u64;
        let (mut all, mut truth) = (0, 0);
        for round in 0..10 * most {
            add(&mut offenders, 1_000 + round % (5 * most), at(0));
            all += 1;
            if round % (most / 4) == 0 {
                add(&mut offenders, 7, at(0));
                (all, truth) = (all + 1, truth + 1);
            }
        }
        assert!(truth * most > all);
        let worst = offenders.worst(Offenders::CAPACITY);
        let found = worst
            .iter()
            .find(|one| one.subject.as_subject() == Subject::from(7_u64));
        let found = found.expect("it has more than the average");
        assert!(
            (found.at_least..=found.denied).contains(&truth),
            "{found:?}, not {truth}"
        );
        let sum: u64 = worst.iter().map(|one| one.denied).sum();
        assert_eq!(sum, all, "the sum is exact");
        assert_eq!(offenders.entries.len(), Offenders::CAPACITY);
    }
}
