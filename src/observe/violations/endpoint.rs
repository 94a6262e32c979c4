//! What is kept of one endpoint.

use super::offenders::{STEP, STEPS};
use super::{DAY, QUARTER};
use crate::clock::Timestamp;
use crate::observe::counters::DecisionCounters;
use crate::observe::step_ring::StepRing;

/// The denials of an endpoint over a day, and how much its callers had left over an hour.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// In the same steps as the denials of all endpoints together, so that a share of those is never
    /// more than 1.
    by_quarter: StepRing<DAY>,
    by_step: StepRing<STEPS>,
    /// What was counted when each of the last steps began.
    marks: [Mark; STEPS],
    newest: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    allowed: u64,
    remaining: f64,
}

impl Mark {
    fn of(counters: &DecisionCounters) -> Self {
        Self {
            allowed: counters.allowed(),
            remaining: counters.remaining(),
        }
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Self {
            by_quarter: StepRing::new(QUARTER),
            by_step: StepRing::new(STEP),
            marks: [Mark::default(); STEPS],
            newest: 0,
        }
    }
}

impl Endpoint {
    pub(super) fn deny(&mut self, now: Timestamp) {
        self.by_quarter.add(now, 1);
        self.by_step.add(now, 1);
    }

    /// Takes note of what was counted when a new step begins.
    pub(super) fn tick(&mut self, counters: &DecisionCounters, now: Timestamp) {
        let step = now.duration_since(Timestamp::EPOCH).as_secs() / STEP.as_secs();
        if step <= self.newest {
            return;
        }
        let mark = Mark::of(counters);
        let steps = STEPS as u64;
        for passed in (self.newest + 1).max(step.saturating_sub(steps - 1))..=step {
            #[expect(clippy::cast_possible_truncation, reason = "it is below twelve")]
            {
                self.marks[(passed % steps) as usize] = mark;
            }
        }
        self.newest = step;
    }

    pub(super) fn denied_last_hour(&self, now: Timestamp) -> u64 {
        self.by_step.total(now)
    }

    pub(super) fn denied_last_day(&self, now: Timestamp) -> u64 {
        self.by_quarter.total(now)
    }

    /// How much requests had left on average over the last hour. Those that were denied had
    /// nothing.
    #[expect(clippy::cast_precision_loss, reason = "it is a share")]
    pub(super) fn average_remaining(
        &self,
        counters: &DecisionCounters,
        now: Timestamp,
    ) -> Option<f64> {
        #[expect(clippy::cast_possible_truncation, reason = "it is below twelve")]
        let oldest = self.marks[((self.newest + 1) % STEPS as u64) as usize];
        let present = Mark::of(counters);
        let requests = present.allowed - oldest.allowed + self.denied_last_hour(now);
        let remaining = present.remaining - oldest.remaining;
        // One that is counted at this very moment may be in the second figure already, and not yet in
        // the first.
        (requests > 0).then(|| (remaining / requests as f64).min(1.0))
    }
}
