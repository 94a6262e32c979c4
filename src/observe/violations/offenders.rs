//! Who is turned away most often: a sketch of fixed size.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::hashed::ByHash;
use crate::identity_types::Identity;
use crate::key::{OwnedSubject, Subject, Value};
use crate::observe::report::address_of;
use crate::observe::statistics::Offender;

/// Counts the denials of the last hour by caller, for as many callers as there are places: the
/// "space saving" sketch of Metwally, Agrawal and El Abbadi, made to forget.
///
/// A newcomer takes the place of whoever has the fewest denials, and inherits them, because
/// they may have been its own. So all counts together stay what there was, the smallest is at
/// most the average, and whoever has more than the average of all denials has a place.
#[derive(Debug, Default)]
pub(super) struct Offenders {
    entries: Vec<Entry>,
    /// The sum of each entry, next to each other, since the smallest is looked for.
    totals: Vec<u32>,
    /// No sum is smaller than this, and who comes next is looked at first.
    least: u32,
    next: usize,
    by_hash: ByHash<usize>,
    newest: u64,
}

struct Entry {
    hash: u64,
    who: Who,
    own: [u32; STEPS],
    /// What the one had that was here before.
    inherited: [u32; STEPS],
    last_seen: Timestamp,
    policy: Arc<str>,
}

/// Whom a place is for. Under attack they take turns, and most of them are known by their address:
/// that needs no memory of its own.
enum Who {
    Address(IpAddr),
    Other(OwnedSubject),
}

impl Who {
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

/// Forgets in steps of this length, at whole multiples of it.
pub(in crate::observe) const STEP: Duration = Duration::from_mins(5);

/// As many as an hour has.
pub(in crate::observe) const STEPS: usize = 12;

impl Entry {
    /// Somebody else has the place now, and everything that was counted there.
    fn leave_to(&mut self, hash: u64, who: Who) {
        (self.hash, self.who) = (hash, who);
        for (inherited, own) in self.inherited.iter_mut().zip(&mut self.own) {
            *inherited = inherited.saturating_add(std::mem::take(own));
        }
    }

    fn at_least(&self) -> u64 {
        self.own.iter().copied().map(u64::from).sum()
    }

    fn seen_as(&self, total: u32) -> Offender {
        Offender {
            subject: OwnedSubject::from(&self.who.subject()),
            denied: u64::from(total),
            at_least: self.at_least(),
            last_seen: self.last_seen,
            policy: Arc::clone(&self.policy),
        }
    }
}

impl Offenders {
    pub(super) const MOST: usize = 500;

    /// One more denial.
    pub(super) fn add(
        &mut self,
        hash: u64,
        subject: &Subject<'_>,
        policy: &Arc<str>,
        now: Timestamp,
    ) {
        self.forget(now);
        let index = match self.by_hash.get(&hash) {
            Some(&index) => index,
            None => self.newcomer(hash, subject, policy),
        };
        let step = place(self.newest);
        let entry = &mut self.entries[index];
        entry.own[step] = entry.own[step].saturating_add(1);
        entry.last_seen = now;
        if !Arc::ptr_eq(&entry.policy, policy) {
            entry.policy = Arc::clone(policy);
        }
        self.totals[index] = self.totals[index].saturating_add(1);
    }

    fn newcomer(&mut self, hash: u64, subject: &Subject<'_>, policy: &Arc<str>) -> usize {
        let who = Who::new(subject);
        let index = if self.entries.len() < Self::MOST {
            self.entries.push(Entry {
                hash,
                who,
                own: [0; STEPS],
                inherited: [0; STEPS],
                last_seen: Timestamp::EPOCH,
                policy: Arc::clone(policy),
            });
            self.totals.push(0);
            self.entries.len() - 1
        } else {
            let index = self.place_of_least();
            let old = &mut self.entries[index];
            self.by_hash.remove(&old.hash);
            old.leave_to(hash, who);
            index
        };
        self.by_hash.insert(hash, index);
        index
    }

    /// The place with the fewest denials.
    ///
    /// Sums only grow until something is forgotten. So it goes around from where it left off,
    /// and when nobody is left who has so few, looks for the next smallest sum: under attack
    /// each place is looked at about once for every time it is taken.
    fn place_of_least(&mut self) -> usize {
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

    /// Forgets what is older than an hour.
    pub(super) fn forget(&mut self, now: Timestamp) {
        let step = step_of(now);
        if step <= self.newest {
            return;
        }
        let passed = (step - self.newest).min(STEPS as u64);
        for at in (step + 1 - passed)..=step {
            for entry in &mut self.entries {
                entry.own[place(at)] = 0;
                entry.inherited[place(at)] = 0;
            }
        }
        self.newest = step;
        (self.least, self.next) = (0, 0);
        let counts = |entry: &Entry| entry.own.iter().chain(&entry.inherited).sum();
        self.entries.retain(|entry| counts(entry) > 0_u32);
        self.totals = self.entries.iter().map(counts).collect();
        let places = self.entries.iter().enumerate();
        self.by_hash = places.map(|(index, entry)| (entry.hash, index)).collect();
    }

    /// The worst ones.
    pub(super) fn worst(&self, most: usize) -> Vec<Offender> {
        let mut all: Vec<(u32, &Entry)> = self.seen().collect();
        all.sort_by_key(|(total, entry)| {
            let seen = u64::MAX - entry.last_seen.as_micros();
            (u32::MAX - total, u64::MAX - entry.at_least(), seen)
        });
        let worst = all.into_iter().take(most);
        worst.map(|(total, entry)| entry.seen_as(total)).collect()
    }

    /// Those that certainly have more denials than this, and how many.
    pub(super) fn above(&self, denials: u64) -> impl Iterator<Item = (u64, Subject<'_>, u64)> {
        self.entries.iter().filter_map(move |entry| {
            let at_least = entry.at_least();
            (at_least > denials).then(|| (entry.hash, entry.who.subject(), at_least))
        })
    }

    /// All denials of the hour, and of them those of callers who have at most so many.
    pub(super) fn of_callers_with_at_most(&self, denials: u64) -> u64 {
        let all: u64 = self.totals.iter().copied().map(u64::from).sum();
        all - self
            .above(denials)
            .map(|(_, _, certain)| certain)
            .sum::<u64>()
    }

    /// When the hour begins that is looked back on.
    pub(super) fn looks_back_to(&self) -> Timestamp {
        let step = (self.newest + 1).saturating_sub(STEPS as u64);
        Timestamp::EPOCH.saturating_add(STEP * u32::try_from(step).unwrap_or(u32::MAX))
    }

    fn seen(&self) -> impl Iterator<Item = (u32, &Entry)> {
        self.totals.iter().copied().zip(&self.entries)
    }
}

const fn step_of(now: Timestamp) -> u64 {
    now.as_micros() / (STEP.as_secs() * 1_000_000)
}

fn place(step: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "it is below twelve")]
    {
        (step % STEPS as u64) as usize
    }
}

/// Shows how many there are, and not who.
impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(1_735_689_600 + secs)
    }

    /// Somebody by number, who is also its own hash.
    fn add(offenders: &mut Offenders, who: u64, now: Timestamp) {
        let policy: Arc<str> = "user:global:1h".into();
        offenders.add(who, &Subject::from(who), &policy, now);
    }

    #[test]
    fn as_long_as_there_are_places_counts_are_exact_and_leave_after_an_hour() {
        let mut offenders = Offenders::default();
        for who in 1..=20 {
            for _ in 0..who {
                add(&mut offenders, who, at(0));
            }
        }
        add(&mut offenders, 3, at(3_000));
        let worst = offenders.worst(2);
        let figures = |offender: &Offender| (offender.denied, offender.at_least);
        assert_eq!(figures(&worst[0]), (20, 20));
        assert_eq!(figures(&worst[1]), (19, 19));
        assert_eq!(worst[0].subject(), Subject::from(20_u64));
        assert_eq!(offenders.above(17).count(), 3);
        assert_eq!(offenders.of_callers_with_at_most(5), 1 + 2 + 4 + 4 + 5);

        offenders.forget(at(3_599));
        assert_eq!(offenders.entries.len(), 20);
        offenders.forget(at(3_600));
        assert_eq!(offenders.entries.len(), 1, "only what came later is left");
        assert_eq!(figures(&offenders.worst(9)[0]), (1, 1));
        assert_eq!(offenders.looks_back_to(), at(300));
        offenders.forget(at(1_000_000));
        assert!(offenders.by_hash.is_empty());
    }

    /// One more than there are places: somebody has to make way, and leaves what was counted.
    #[test]
    fn whoever_is_known_by_an_address_has_it_still_when_places_change_hands() {
        let mut offenders = Offenders::default();
        let policy: Arc<str> = "ip:global:1h".into();
        let address = |number: usize| IpAddr::from((number as u128).to_be_bytes());
        let subject = |number| Subject::named((Identity::IP, Value::Address(address(number))));
        for number in 0..=Offenders::MOST {
            offenders.add(number as u64, &subject(number), &policy, at(0));
        }
        let worst = offenders.worst(Offenders::MOST);
        assert_eq!(worst[0].subject(), subject(Offenders::MOST));
        assert_eq!((worst[0].denied, worst[0].at_least), (2, 1));
        assert_eq!(worst[0].policy(), "ip:global:1h");
        for (number, offender) in (1..Offenders::MOST).zip(&worst[1..]) {
            assert_eq!(offender.subject(), subject(number));
        }
    }

    /// Ten times as many as there are places, each once or twice, and one who has a little more
    /// than its share of all.
    #[test]
    fn whoever_has_more_than_the_average_is_never_lost_and_never_underestimated() {
        let mut offenders = Offenders::default();
        let most = Offenders::MOST as u64;
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
        let worst = offenders.worst(Offenders::MOST);
        let found = worst
            .iter()
            .find(|one| one.subject() == Subject::from(7_u64));
        let found = found.expect("it has more than its share");
        assert!(
            (found.at_least..=found.denied).contains(&truth),
            "{found:?}, not {truth}"
        );
        let sum: u64 = worst.iter().map(|one| one.denied).sum();
        assert_eq!(sum, all, "nothing is lost or made up altogether");
        assert_eq!(offenders.entries.len(), Offenders::MOST);
    }
}
