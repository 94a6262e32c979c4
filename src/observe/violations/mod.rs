//! History of denied requests, of bounded size.

mod distinct_counter;
mod endpoint;
mod offenders;
#[cfg(feature = "admin")]
mod recent_denials;
mod retry_tracker;

use std::sync::Arc;
use std::time::Duration;

use self::distinct_counter::DistinctCounter;
use self::endpoint::EndpointHistory;
pub(super) use self::endpoint::EndpointSummary;
use self::offenders::Offenders;
#[cfg(feature = "admin")]
pub(super) use self::recent_denials::NewDenial;
#[cfg(feature = "admin")]
pub(crate) use self::recent_denials::RecentDenial;
#[cfg(feature = "admin")]
use self::recent_denials::RecentDenials;
use super::counters::DecisionCounters;
use super::statistics::{Distinct, Offender};
use super::step_ring::StepRing;
use crate::clock::Timestamp;
use crate::key::Subject;

pub(super) use self::retry_tracker::RetryTracker;

const MINUTE: Duration = Duration::from_mins(1);
const QUARTER: Duration = Duration::from_mins(15);

/// Quarters of an hour in a day.
const DAY: usize = 96;

/// All state about denials, behind one lock. A denial holds it for a few dozen instructions, a
/// fraction of the cost of its response.
#[derive(Debug)]
pub(super) struct Violations {
    denied: StepRing<60>,
    allowed: StepRing<60>,
    denied_by_quarter: StepRing<{ 2 * DAY }>,
    allowed_by_quarter: StepRing<DAY>,
    offenders: Offenders,
    #[cfg(feature = "admin")]
    recent: RecentDenials,
    callers: DistinctCounter,
    addresses: DistinctCounter,
    /// Indexed by `DecisionCounters::number`.
    endpoints: Vec<EndpointHistory>,
    /// Allowed requests at the last tick, and its instant.
    allowed_before: u64,
    ticked_at: Timestamp,
}

/// One denied request.
pub(super) struct Violation<'a> {
    pub(super) endpoint: &'a DecisionCounters,
    pub(super) policy: &'a Arc<str>,
    pub(super) caller: &'a Subject<'a>,
    pub(super) caller_hash: u64,
    pub(super) address_hash: u64,
    #[cfg(feature = "admin")]
    pub(super) denial: NewDenial<'a>,
    pub(super) now: Timestamp,
}

impl Violations {
    /// Callers with more denials than this within an hour do not count as ordinary.
    const ORDINARY: u64 = 5;

    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            denied: StepRing::new(MINUTE),
            allowed: StepRing::new(MINUTE),
            denied_by_quarter: StepRing::new(QUARTER),
            allowed_by_quarter: StepRing::new(QUARTER),
            offenders: Offenders::default(),
            #[cfg(feature = "admin")]
            recent: RecentDenials::default(),
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
            ..
        } = *violation;
        self.denied.add(now, 1);
        self.denied_by_quarter.add(now, 1);
        self.offenders.add(caller_hash, caller, policy, now);
        #[cfg(feature = "admin")]
        self.recent.add(caller_hash, &violation.denial);
        self.callers.add(caller_hash, now);
        self.addresses.add(address_hash, now);
        self.endpoint(endpoint.number()).deny(now);
    }

    fn endpoint(&mut self, number: usize) -> &mut EndpointHistory {
        if self.endpoints.len() <= number {
            self.endpoints
                .resize_with(number + 1, EndpointHistory::default);
        }
        &mut self.endpoints[number]
    }

    /// Adds the requests that were allowed since the last tick to its step: the first request of a
    /// new second ticks before it is counted.
    pub(super) fn tick(&mut self, endpoints: &[Arc<DecisionCounters>], now: Timestamp) {
        let allowed: u64 = endpoints.iter().map(|counters| counters.allowed()).sum();
        let more = allowed - self.allowed_before;
        self.allowed.add(self.ticked_at, more);
        self.allowed_by_quarter.add(self.ticked_at, more);
        (self.allowed_before, self.ticked_at) = (allowed, now);
        self.offenders.expire(now);
        for (number, counters) in endpoints.iter().enumerate() {
            self.endpoint(number).tick(counters, now);
        }
    }
}

#[cfg(feature = "admin")]
impl Violations {
    /// Returns the last denial of a caller within an hour.
    pub(super) fn recent_denial(&self, caller_hash: u64, now: Timestamp) -> Option<&RecentDenial> {
        self.recent.get(caller_hash, now)
    }

    /// Ends the denial of a caller by one of these counters, which an operator has changed.
    pub(super) fn end_denial(&mut self, caller_hash: u64, counters: &[u64], now: Timestamp) {
        self.recent.end(caller_hash, counters, now);
    }
}

impl Violations {
    /// Returns the denials in the last `minutes`, including the current minute.
    pub(super) fn denied(&self, now: Timestamp, minutes: usize) -> u64 {
        self.denied.sum(now, minutes)
    }

    /// Returns each minute of the last hour: beginning, allowed, denied.
    pub(super) fn minutes(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, u64, u64)> {
        let both = self.allowed.steps(now).zip(self.denied.steps(now));
        both.map(|((from, allowed), (_, denied))| (from, allowed, denied))
    }

    /// Returns each quarter of an hour of the last day: beginning, allowed, denied.
    pub(super) fn quarters(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, u64, u64)> {
        let denied = self.denied_by_quarter.steps(now).skip(DAY);
        let both = self.allowed_by_quarter.steps(now).zip(denied);
        both.map(|((from, allowed), (_, denied))| (from, allowed, denied))
    }

    /// Returns the denials in the day before the last day.
    pub(super) fn denied_the_day_before(&self, now: Timestamp) -> u64 {
        self.denied_by_quarter.total(now) - self.denied_by_quarter.sum(now, DAY)
    }

    /// Returns the beginning of the day before the last day.
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

    /// Returns the largest lower bound of the denials of a caller within an hour.
    pub(super) fn most_denials(&self) -> u64 {
        let all = self.offenders.above(0);
        all.map(|(_, _, denials)| denials).max().unwrap_or(0)
    }

    /// Returns the callers whose lower bound is above `denials`: hash, subject, lower bound.
    pub(super) fn offenders_above(
        &self,
        denials: u64,
    ) -> impl Iterator<Item = (u64, Subject<'_>, u64)> {
        self.offenders.above(denials)
    }

    /// Returns the denials of ordinary callers within an hour, and these plus all allowed requests.
    pub(super) fn ordinary(&self, now: Timestamp) -> (u64, u64) {
        let denied = self.offenders.denials_of_callers_up_to(Self::ORDINARY);
        let since = self.offenders.window_start();
        let minutes = self.allowed.steps(now).filter(|(from, _)| *from >= since);
        let allowed: u64 = minutes.map(|(_, allowed)| allowed).sum();
        (denied, allowed + denied)
    }

    /// Returns the estimated share of ordinary requests that were denied within an hour; `None`
    /// without requests.
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub(super) fn ordinary_denied(&self, now: Timestamp) -> Option<f64> {
        let (denied, requests) = self.ordinary(now);
        (requests > 0).then(|| denied as f64 / requests as f64)
    }

    pub(super) fn of_endpoint(
        &self,
        counters: &DecisionCounters,
        now: Timestamp,
    ) -> EndpointSummary {
        let history = self.endpoints.get(counters.number());
        history.map_or_else(EndpointSummary::default, |history| {
            history.summary(counters, now)
        })
    }
}
