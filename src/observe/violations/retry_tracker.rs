//! Tracks what denied callers do next.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::hashed::ByHash;
use crate::observe::statistics::Retries;
use crate::sync::{Mutex, lock};

/// Denied callers, the counter that denied them, and when a retry can succeed.
#[derive(Debug)]
pub(in crate::observe) struct RetryTracker {
    /// Number of tracked callers. Mostly 0: then no allowed request is looked up.
    count: AtomicUsize,
    /// One bit per hash that may be tracked, read without the lock.
    filter: Box<[AtomicU64]>,
    tracked: Mutex<TrackedCallers>,
}

#[derive(Debug, Default)]
struct TrackedCallers {
    by_caller: ByHash<TrackedDenial>,
    swept: Timestamp,
    statistics: Retries,
}

#[derive(Debug)]
struct TrackedDenial {
    counter: u64,
    until: Timestamp,
}

impl Default for RetryTracker {
    fn default() -> Self {
        Self {
            count: AtomicUsize::new(0),
            filter: (0..Self::FILTER_WORDS).map(|_| AtomicU64::new(0)).collect(),
            tracked: Mutex::default(),
        }
    }
}

/// Values of the label `outcome` of `tollgate_retries_total`.
const ADMITTED: &str = "admitted";
const DENIED_AGAIN: &str = "denied_again";
const TOO_SOON: &str = "too_soon";

impl RetryTracker {
    /// Callers that are tracked at a time.
    pub(in crate::observe) const CAPACITY: usize = 4_096;

    /// A caller is dropped so long after the instant when its retry could succeed.
    const EXPIRY: Duration = Duration::from_hours(1);

    const FILTER_WORDS: usize = 1_024;

    #[inline]
    pub(in crate::observe) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    fn bit(&self, hash: u64) -> (&AtomicU64, u64) {
        let word = (hash >> 32) as usize % Self::FILTER_WORDS;
        (&self.filter[word], 1 << (hash >> 58))
    }

    /// Tracks a denial by a counter, unless no wait helps. Returns the outcome if it was a retry.
    pub(in crate::observe) fn denied(
        &self,
        caller: u64,
        counter: u64,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<&'static str> {
        let until = until?;
        let mut tracked = lock(&self.tracked);
        let TrackedCallers {
            by_caller,
            statistics,
            ..
        } = &mut *tracked;
        match by_caller.get_mut(&caller) {
            Some(denial) if denial.counter == counter => {
                let outcome = if now < denial.until {
                    statistics.too_soon += 1;
                    TOO_SOON
                } else {
                    statistics.denied_again += 1;
                    DENIED_AGAIN
                };
                denial.until = until;
                return Some(outcome);
            }
            Some(_) => return None,
            None => {}
        }
        if tracked.by_caller.len() >= Self::CAPACITY {
            self.sweep(&mut tracked, now);
        }
        if tracked.by_caller.len() < Self::CAPACITY {
            tracked
                .by_caller
                .insert(caller, TrackedDenial { counter, until });
            let (word, bit) = self.bit(caller);
            word.fetch_or(bit, Ordering::Relaxed);
            self.count.store(tracked.by_caller.len(), Ordering::Relaxed);
        }
        None
    }

    /// Ends the tracking of an allowed caller if its counter took part in the decision, which `counts`
    /// returns. Returns the outcome if it had waited.
    pub(in crate::observe) fn allowed(
        &self,
        caller: u64,
        counts: impl FnOnce(u64) -> bool,
        now: Timestamp,
    ) -> Option<&'static str> {
        let (word, bit) = self.bit(caller);
        if word.load(Ordering::Relaxed) & bit == 0 {
            return None;
        }
        let mut tracked = lock(&self.tracked);
        let denial = tracked.by_caller.get(&caller)?;
        let has_waited = now >= denial.until;
        if !counts(denial.counter) {
            return None;
        }
        // An admission before that time is due to a reset or an override, and not counted.
        tracked.statistics.admitted += u64::from(has_waited);
        tracked.by_caller.remove(&caller);
        if tracked.by_caller.is_empty() {
            self.clear_filter();
        }
        self.count.store(tracked.by_caller.len(), Ordering::Relaxed);
        has_waited.then_some(ADMITTED)
    }

    /// Drops expired callers, at most once a minute.
    fn sweep(&self, tracked: &mut TrackedCallers, now: Timestamp) {
        if now.duration_since(tracked.swept) < Duration::from_mins(1) {
            return;
        }
        tracked.swept = now;
        tracked
            .by_caller
            .retain(|_, denial| now < denial.until.saturating_add(Self::EXPIRY));
        self.clear_filter();
        for caller in tracked.by_caller.keys() {
            let (word, bit) = self.bit(*caller);
            word.fetch_or(bit, Ordering::Relaxed);
        }
        self.count.store(tracked.by_caller.len(), Ordering::Relaxed);
    }

    fn clear_filter(&self) {
        for word in &self.filter {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Drops callers that do not come back, so that allowed requests are not looked up in vain.
    pub(in crate::observe) fn expire(&self, now: Timestamp) {
        if !self.is_empty() {
            self.sweep(&mut lock(&self.tracked), now);
        }
    }

    pub(in crate::observe) fn statistics(&self) -> Retries {
        lock(&self.tracked).statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(1_735_689_600 + secs)
    }

    fn outcomes(tracker: &RetryTracker) -> (u64, u64, u64) {
        let Retries {
            admitted,
            denied_again,
            too_soon,
        } = tracker.statistics();
        (admitted, denied_again, too_soon)
    }

    #[test]
    fn retries_are_counted_by_whether_the_caller_waited() {
        let tracker = RetryTracker::default();
        assert!(tracker.is_empty());
        tracker.denied(1, 9, Some(at(60)), at(0));
        tracker.denied(1, 9, Some(at(60)), at(10));
        assert_eq!(outcomes(&tracker), (0, 0, 1), "too soon");
        tracker.allowed(1, |counter| counter == 8, at(60));
        assert_eq!(outcomes(&tracker), (0, 0, 1), "by another counter");
        tracker.denied(1, 9, Some(at(120)), at(60));
        assert_eq!(
            outcomes(&tracker),
            (0, 1, 1),
            "other callers used the quota"
        );
        tracker.allowed(1, |counter| counter == 9, at(120));
        assert_eq!(outcomes(&tracker), (1, 1, 1));
        assert!(tracker.is_empty());
        tracker.allowed(1, |_| true, at(120));
        assert_eq!(outcomes(&tracker), (1, 1, 1), "tracked once");

        tracker.denied(2, 9, Some(at(260)), at(200));
        tracker.allowed(2, |_| true, at(201));
        assert_eq!(outcomes(&tracker), (1, 1, 1), "admitted before the time");
        tracker.denied(3, 9, None, at(200));
        assert!(tracker.is_empty(), "no wait helps");
    }

    #[test]
    fn tracked_callers_are_bounded_and_expire() {
        let tracker = RetryTracker::default();
        for caller in 0..2 * RetryTracker::CAPACITY as u64 {
            let hash = caller.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            tracker.denied(hash, 9, Some(at(60)), at(0));
        }
        assert_eq!(
            tracker.count.load(Ordering::Relaxed),
            RetryTracker::CAPACITY
        );
        tracker.denied(u64::MAX, 9, Some(at(3_720)), at(3_660));
        assert_eq!(tracker.count.load(Ordering::Relaxed), 1);
        tracker.allowed(u64::MAX, |_| true, at(4_000));
        assert_eq!(outcomes(&tracker), (1, 0, 0));
        assert!(tracker.is_empty());
    }
}
