//! What is kept of requests that were turned away. Of fixed size, whatever comes.

mod distinct_counter;
mod endpoint;
mod offenders;
mod retry_tracker;

use std::sync::Arc;
use std::time::Duration;

use self::distinct_counter::DistinctCounter;
use self::endpoint::Endpoint;
use self::offenders::Offenders;
use super::counters::DecisionCounters;
use super::statistics::{Distinct, Offender};
use super::step_ring::StepRing;
use crate::clock::Timestamp;
use crate::key::Subject;

pub(super) use self::retry_tracker::RetryTracker;

const MINUTE: Duration = Duration::from_mins(1);
const QUARTER: Duration = Duration::from_mins(15);

/// How many quarters of an hour a day has.
const DAY: usize = 96;

/// Everything about denials that is kept behind one lock. Behind it is no more than a few dozen
/// steps, a fraction of what it takes to write the answer.
#[derive(Debug)]
pub(super) struct Violations {
    denied: StepRing<60>,
    allowed: StepRing<60>,
    denied_by_quarter: StepRing<{ 2 * DAY }>,
    allowed_by_quarter: StepRing<DAY>,
    offenders: Offenders,
    callers: DistinctCounter,
    addresses: DistinctCounter,
    /// By the numbers of their counters.
    endpoints: Vec<Endpoint>,
    /// How many were allowed when it was last looked, and when that was.
    allowed_before: u64,
    ticked_at: Timestamp,
}

/// One request that was turned away.
pub(super) struct Violation<'a> {
    pub(super) endpoint: &'a DecisionCounters,
    pub(super) policy: &'a Arc<str>,
    pub(super) caller: &'a Subject<'a>,
    pub(super) caller_hash: u64,
    pub(super) address_hash: u64,
    pub(super) now: Timestamp,
}

impl Violations {
    /// Callers with more denials than this within an hour are no ordinary ones.
    const ORDINARY: u64 = 5;

    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            denied: StepRing::new(MINUTE),
            allowed: StepRing::new(MINUTE),
            denied_by_quarter: StepRing::new(QUARTER),
            allowed_by_quarter: StepRing::new(QUARTER),
            offenders: Offenders::default(),
            callers: DistinctCounter::default(),
            addresses: DistinctCounter::default(),
            endpoints: Vec::new(),
            allowed_before: 0,
            ticked_at: now,
        }
    }

    pub(super) fn add(&mut self, violation: &Violation<'_>) {
        let Violation {
            endpoint,
            policy,
            caller,
            caller_hash,
            address_hash,
            now,
        } = *violation;
        self.denied.add(now, 1);
        self.denied_by_quarter.add(now, 1);
        self.offenders.add(caller_hash, caller, policy, now);
        self.callers.add(caller_hash, now);
        self.addresses.add(address_hash, now);
        self.endpoint(endpoint.number()).deny(now);
    }

    fn endpoint(&mut self, number: usize) -> &mut Endpoint {
        if self.endpoints.len() <= number {
            self.endpoints.resize_with(number + 1, Endpoint::default);
        }
        &mut self.endpoints[number]
    }

    /// Takes note of how many were allowed so far. What has come since the last time came then:
    /// whoever comes first in a new second looks before it is counted.
    pub(super) fn tick(&mut self, endpoints: &[Arc<DecisionCounters>], now: Timestamp) {
        let allowed: u64 = endpoints.iter().map(|counters| counters.allowed()).sum();
        let more = allowed - self.allowed_before;
        self.allowed.add(self.ticked_at, more);
        self.allowed_by_quarter.add(self.ticked_at, more);
        (self.allowed_before, self.ticked_at) = (allowed, now);
        self.offenders.forget(now);
        for (number, counters) in endpoints.iter().enumerate() {
            self.endpoint(number).tick(counters, now);
        }
    }
}

/// What can be read from it, as of now.
impl Violations {
    /// Denials in the present minute and in those before it, `minutes` altogether.
    pub(super) fn denied(&self, now: Timestamp, minutes: usize) -> u64 {
        self.denied.sum(now, minutes)
    }

    /// Each minute of an hour: when it began, what was allowed, what was denied.
    pub(super) fn minutes(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, u64, u64)> {
        let both = self.allowed.steps(now).zip(self.denied.steps(now));
        both.map(|((from, allowed), (_, denied))| (from, allowed, denied))
    }

    /// The same for each quarter of an hour of a day.
    pub(super) fn quarters(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, u64, u64)> {
        let denied = self.denied_by_quarter.steps(now).skip(DAY);
        let both = self.allowed_by_quarter.steps(now).zip(denied);
        both.map(|((from, allowed), (_, denied))| (from, allowed, denied))
    }

    /// Denials in the day before that.
    pub(super) fn denied_the_day_before(&self, now: Timestamp) -> u64 {
        self.denied_by_quarter.total(now) - self.denied_by_quarter.sum(now, DAY)
    }

    /// When the day before that begins.
    pub(super) fn the_day_before(&self, now: Timestamp) -> Option<Timestamp> {
        let mut quarters = self.denied_by_quarter.steps(now);
        quarters.next().map(|(from, _)| from)
    }

    pub(super) fn callers(&self, now: Timestamp) -> Distinct {
        self.callers.count(now, 60)
    }

    pub(super) fn addresses(&self, now: Timestamp) -> Distinct {
        self.addresses.count(now, 10)
    }

    pub(super) fn worst_offenders(&self, most: usize) -> Vec<Offender> {
        self.offenders.worst(most)
    }

    /// How many denials the worst of them certainly has within an hour.
    pub(super) fn most_denials(&self) -> u64 {
        let all = self.offenders.above(0);
        all.map(|(_, _, denials)| denials).max().unwrap_or(0)
    }

    /// Those that certainly have more denials than this within an hour.
    pub(super) fn offenders_above(
        &self,
        denials: u64,
    ) -> impl Iterator<Item = (u64, Subject<'_>, u64)> {
        self.offenders.above(denials)
    }

    /// How many requests of ordinary callers were denied within an hour, and how many there were.
    pub(super) fn ordinary(&self, now: Timestamp) -> (u64, u64) {
        let denied = self.offenders.of_callers_with_at_most(Self::ORDINARY);
        let since = self.offenders.looks_back_to();
        let minutes = self.allowed.steps(now).filter(|(from, _)| *from >= since);
        let allowed: u64 = minutes.map(|(_, allowed)| allowed).sum();
        (denied, allowed + denied)
    }

    /// Of an endpoint: denials within an hour, within a day, and how much its callers had left.
    pub(super) fn of_endpoint(
        &self,
        counters: &DecisionCounters,
        now: Timestamp,
    ) -> (u64, u64, Option<f64>) {
        match self.endpoints.get(counters.number()) {
            Some(endpoint) => (
                endpoint.denied_last_hour(now),
                endpoint.denied_last_day(now),
                endpoint.average_remaining(counters, now),
            ),
            None => (0, 0, None),
        }
    }
}
