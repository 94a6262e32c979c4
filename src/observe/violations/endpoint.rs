//! History of one endpoint.

use super::offenders::{STEP, STEPS};
use super::{DAY, QUARTER};
use crate::clock::Timestamp;
use crate::observe::counters::DecisionCounters;
use crate::observe::step_ring::StepRing;

/// Denials of an endpoint over a day, and the share that remained for its requests over an hour.
#[derive(Debug)]
pub(super) struct EndpointHistory {
    /// In the same steps as the denials of all endpoints together, so that a share of those is never
    /// more than 1.
    by_quarter: StepRing<DAY>,
    by_step: StepRing<STEPS>,
    /// The counters at the beginning of each of the last steps.
    marks: [CounterMark; STEPS],
    newest: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct CounterMark {
    allowed: u64,
    remaining: f64,
}

impl CounterMark {
    fn of(counters: &DecisionCounters) -> Self {
        Self {
            allowed: counters.allowed(),
            remaining: counters.remaining(),
        }
    }
}

impl Default for EndpointHistory {
    fn default() -> Self {
        Self {
            by_quarter: StepRing::new(QUARTER),
            by_step: StepRing::new(STEP),
            marks: [CounterMark::default(); STEPS],
            newest: 0,
        }
    }
}

/// What the history of an endpoint adds to its counters.
#[derive(Debug, Default)]
pub(in crate::observe) struct EndpointSummary {
    pub(in crate::observe) denied_last_hour: u64,
    pub(in crate::observe) denied_last_day: u64,
    pub(in crate::observe) average_remaining: Option<f64>,
}

impl EndpointHistory {
    pub(super) fn deny(&mut self, now: Timestamp) {
        self.by_quarter.add(now, 1);
        self.by_step.add(now, 1);
    }

    /// Stores the counters when a new step begins.
    pub(super) fn tick(&mut self, counters: &DecisionCounters, now: Timestamp) {
        let step = now.duration_since(Timestamp::EPOCH).as_secs() / STEP.as_secs();
        if step <= self.newest {
            return;
        }
        let mark = CounterMark::of(counters);
        let steps = STEPS as u64;
        for passed in (self.newest + 1).max(step.saturating_sub(steps - 1))..=step {
            #[expect(clippy::cast_possible_truncation, reason = "below 12")]
            {
                self.marks[(passed % steps) as usize] = mark;
            }
        }
        self.newest = step;
    }

    pub(super) fn summary(&self, counters: &DecisionCounters, now: Timestamp) -> EndpointSummary {
        let denied_last_hour = self.by_step.total(now);
        EndpointSummary {
            denied_last_hour,
            denied_last_day: self.by_quarter.total(now),
            average_remaining: self.average_remaining(counters, denied_last_hour),
        }
    }

    /// Returns the average share that remained over the last hour. Denied requests count as 0.
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    fn average_remaining(&self, counters: &DecisionCounters, denied_last_hour: u64) -> Option<f64> {
        #[expect(clippy::cast_possible_truncation, reason = "below 12")]
        let oldest = self.marks[((self.newest + 1) % STEPS as u64) as usize];
        let present = CounterMark::of(counters);
        let requests = present.allowed - oldest.allowed + denied_last_hour;
        let remaining = present.remaining - oldest.remaining;
        // A concurrent request may have changed the second value and not yet the first.
        (requests > 0).then(|| (remaining / requests as f64).min(1.0))
    }
}
