//! Counts by step of time, for the last `N` steps.

use std::time::Duration;

use crate::clock::Timestamp;

/// Counts of the current step and of those before it.
///
/// Steps begin at whole multiples of their length, so that rings of one length agree. An instant
/// before the newest step counts for the newest step.
#[derive(Clone, Debug)]
pub(super) struct StepRing<const N: usize> {
    step: u64,
    newest: u64,
    /// End of the newest step in microseconds, and its index. Nearly all counts fall into it and
    /// need no division.
    ends_at: u64,
    newest_index: usize,
    counts: [u64; N],
}

impl<const N: usize> StepRing<N> {
    pub(super) fn new(step: Duration) -> Self {
        let step = Timestamp::EPOCH.saturating_add(step).as_micros().max(1);
        Self {
            step,
            newest: 0,
            ends_at: step,
            newest_index: 0,
            counts: [0; N],
        }
    }

    fn index_of(step: u64) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "below N")]
        {
            (step % N as u64) as usize
        }
    }

    /// Returns the step of an instant, or the newest one if that is later.
    fn step_of(&self, now: Timestamp) -> u64 {
        (now.as_micros() / self.step).max(self.newest)
    }

    #[inline]
    pub(super) fn add(&mut self, now: Timestamp, count: u64) {
        if now.as_micros() >= self.ends_at {
            self.begin(self.step_of(now));
        }
        let newest = &mut self.counts[self.newest_index];
        *newest = newest.saturating_add(count);
    }

    /// Begins a step and clears the counts that it replaces.
    #[cold]
    fn begin(&mut self, step: u64) {
        let first = (self.newest + 1).max(step.saturating_sub(N as u64 - 1));
        for passed in first..=step {
            self.counts[Self::index_of(passed)] = 0;
        }
        self.newest = step;
        self.ends_at = (step + 1).saturating_mul(self.step);
        self.newest_index = Self::index_of(step);
    }

    /// Returns each step with its beginning and its count, oldest first.
    pub(super) fn steps(
        &self,
        now: Timestamp,
    ) -> impl DoubleEndedIterator<Item = (Timestamp, u64)> {
        let step = self.step_of(now);
        let first = (step + 1).saturating_sub(N as u64);
        (first..=step).map(move |at| {
            let is_known = at <= self.newest && at + N as u64 > self.newest;
            let count = if is_known {
                self.counts[Self::index_of(at)]
            } else {
                0
            };
            (Timestamp::from_micros(at.saturating_mul(self.step)), count)
        })
    }

    /// Returns the count of the last `steps`, including the current one.
    pub(super) fn sum(&self, now: Timestamp, steps: usize) -> u64 {
        let latest = self.steps(now).rev().take(steps);
        latest.map(|(_, count)| count).sum()
    }

    /// Returns the count of all steps.
    pub(super) fn total(&self, now: Timestamp) -> u64 {
        self.sum(now, N)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(1_735_689_600 + secs)
    }

    #[test]
    fn counts_leave_with_their_step_and_not_before() {
        let mut ring = StepRing::<3>::new(MINUTE);
        ring.add(at(0), 1);
        ring.add(at(59), 10);
        ring.add(at(60), 100);
        assert_eq!(ring.total(at(60)), 111);
        assert_eq!(ring.sum(at(60), 1), 100);
        assert_eq!(ring.total(at(179)), 111);
        assert_eq!(ring.total(at(180)), 100);
        assert_eq!(ring.total(at(240)), 0);
        let steps: Vec<_> = ring.steps(at(180)).collect();
        assert_eq!(steps, [(at(60), 100), (at(120), 0), (at(180), 0)]);
        ring.add(at(100_000), 7);
        assert_eq!(ring.total(at(100_000)), 7);
    }

    #[test]
    fn a_clock_that_goes_back_stands_still() {
        let mut ring = StepRing::<3>::new(MINUTE);
        ring.add(at(600), 1);
        ring.add(at(0), 1);
        assert_eq!(ring.total(at(600)), 2);
        assert_eq!(ring.total(at(0)), 2);
        assert_eq!(ring.total(Timestamp::MAX), 0);
        ring.add(Timestamp::MAX, 5);
        assert_eq!(ring.total(Timestamp::MAX), 5);
    }

    #[test]
    fn total_at_the_epoch_counts_nothing_before() {
        let mut ring = StepRing::<3>::new(MINUTE);
        ring.add(Timestamp::EPOCH, 4);
        assert_eq!(ring.total(Timestamp::EPOCH), 4);
        assert_eq!(ring.steps(Timestamp::EPOCH).count(), 1);
        assert_eq!(ring.sum(Timestamp::EPOCH, 1), 4);
    }
}
