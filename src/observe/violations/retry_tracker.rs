//! What becomes of those who are told to come back later.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::hashed::ByHash;
use crate::observe::metric;
use crate::observe::statistics::Retries;
use crate::sync::{Mutex, lock};

/// Who was denied, by which counter, and when they may come back.
#[derive(Debug)]
pub(in crate::observe) struct RetryTracker {
    /// How many are waited for: mostly nobody, and then nobody who is allowed is looked for.
    count: AtomicUsize,
    /// A bit for each hash that may be among them.
    filter: Box<[AtomicU64]>,
    inner: Mutex<Inner>,
    metrics: metric::OfRetries,
}

#[derive(Debug, Default)]
struct Inner {
    by_caller: ByHash<Wait>,
    swept: Timestamp,
    figures: Retries,
}

#[derive(Debug)]
struct Wait {
    counter: u64,
    until: Timestamp,
}

impl Default for RetryTracker {
    fn default() -> Self {
        Self {
            count: AtomicUsize::new(0),
            filter: (0..Self::WORDS).map(|_| AtomicU64::new(0)).collect(),
            inner: Mutex::default(),
            metrics: metric::OfRetries::default(),
        }
    }
}

impl RetryTracker {
    /// So many callers are followed at a time.
    pub(in crate::observe) const MOST: usize = 4_096;

    /// Who does not come back for so long after the time that was told is not waited for.
    const PATIENCE: Duration = Duration::from_hours(1);

    const WORDS: usize = 1_024;

    #[inline]
    pub(in crate::observe) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    fn bit(&self, hash: u64) -> (&AtomicU64, u64) {
        let word = (hash >> 32) as usize % Self::WORDS;
        (&self.filter[word], 1 << (hash >> 58))
    }

    /// A caller was denied by a counter, and told when to come back.
    pub(in crate::observe) fn denied(
        &self,
        caller: u64,
        counter: u64,
        until: Option<Timestamp>,
        now: Timestamp,
    ) {
        let Some(until) = until else {
            return;
        };
        let mut inner = lock(&self.inner);
        let Inner {
            by_caller, figures, ..
        } = &mut *inner;
        match by_caller.get_mut(&caller) {
            Some(wait) if wait.counter == counter => {
                let outcome = if now < wait.until {
                    figures.too_soon += 1;
                    metric::Retried::TooSoon
                } else {
                    figures.denied_again += 1;
                    metric::Retried::DeniedAgain
                };
                wait.until = until;
                drop(inner);
                metric::retried(&self.metrics, outcome);
                return;
            }
            Some(_) => return,
            None => {}
        }
        if inner.by_caller.len() >= Self::MOST {
            self.sweep(&mut inner, now);
        }
        if inner.by_caller.len() < Self::MOST {
            inner.by_caller.insert(caller, Wait { counter, until });
            let (word, bit) = self.bit(caller);
            word.fetch_or(bit, Ordering::Relaxed);
            self.count.store(inner.by_caller.len(), Ordering::Relaxed);
        }
    }

    /// A caller was allowed; `counts` says of a counter whether it was asked.
    pub(in crate::observe) fn allowed(
        &self,
        caller: u64,
        counts: impl FnOnce(u64) -> bool,
        now: Timestamp,
    ) {
        let (word, bit) = self.bit(caller);
        if word.load(Ordering::Relaxed) & bit == 0 {
            return;
        }
        let mut inner = lock(&self.inner);
        let Some(wait) = inner.by_caller.get(&caller) else {
            return;
        };
        let (is_due, is_it) = (now >= wait.until, counts(wait.counter));
        if is_it {
            // Before the time, somebody has given it more. That says nothing of those who wait.
            inner.figures.admitted += u64::from(is_due);
            inner.by_caller.remove(&caller);
            if inner.by_caller.is_empty() {
                self.nobody();
            }
            self.count.store(inner.by_caller.len(), Ordering::Relaxed);
            drop(inner);
            if is_due {
                metric::retried(&self.metrics, metric::Retried::Admitted);
            }
        }
    }

    /// Gives up on those who do not come back, at most once a minute.
    fn sweep(&self, inner: &mut Inner, now: Timestamp) {
        if now.duration_since(inner.swept) < Duration::from_mins(1) {
            return;
        }
        inner.swept = now;
        inner
            .by_caller
            .retain(|_, wait| now < wait.until.saturating_add(Self::PATIENCE));
        self.nobody();
        for caller in inner.by_caller.keys() {
            let (word, bit) = self.bit(*caller);
            word.fetch_or(bit, Ordering::Relaxed);
        }
        self.count.store(inner.by_caller.len(), Ordering::Relaxed);
    }

    fn nobody(&self) {
        for word in &self.filter {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Gives up on those who do not come back, so that nobody is looked for in vain.
    pub(in crate::observe) fn forget(&self, now: Timestamp) {
        if !self.is_empty() {
            self.sweep(&mut lock(&self.inner), now);
        }
    }

    pub(in crate::observe) fn figures(&self) -> Retries {
        lock(&self.inner).figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(1_735_689_600 + secs)
    }

    fn figures(waiting: &RetryTracker) -> (u64, u64, u64) {
        let Retries {
            admitted,
            denied_again,
            too_soon,
        } = waiting.figures();
        (admitted, denied_again, too_soon)
    }

    #[test]
    fn who_waits_and_who_does_not() {
        let waiting = RetryTracker::default();
        assert!(waiting.is_empty());
        waiting.denied(1, 9, Some(at(60)), at(0));
        waiting.denied(1, 9, Some(at(60)), at(10));
        assert_eq!(figures(&waiting), (0, 0, 1), "too soon");
        waiting.allowed(1, |counter| counter == 8, at(60));
        assert_eq!(figures(&waiting), (0, 0, 1), "by another counter");
        waiting.denied(1, 9, Some(at(120)), at(60));
        assert_eq!(figures(&waiting), (0, 1, 1), "in vain");
        waiting.allowed(1, |counter| counter == 9, at(120));
        assert_eq!(figures(&waiting), (1, 1, 1));
        assert!(waiting.is_empty());
        waiting.allowed(1, |_| true, at(120));
        assert_eq!(figures(&waiting), (1, 1, 1), "told once");

        waiting.denied(2, 9, Some(at(260)), at(200));
        waiting.allowed(2, |_| true, at(201));
        assert_eq!(figures(&waiting), (1, 1, 1), "somebody gave it more");
        waiting.denied(3, 9, None, at(200));
        assert!(waiting.is_empty(), "waiting cannot help");
    }

    #[test]
    fn only_so_many_are_followed_and_those_who_stay_away_make_room() {
        let waiting = RetryTracker::default();
        for caller in 0..2 * RetryTracker::MOST as u64 {
            let hash = caller.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            waiting.denied(hash, 9, Some(at(60)), at(0));
        }
        assert_eq!(waiting.count.load(Ordering::Relaxed), RetryTracker::MOST);
        waiting.denied(u64::MAX, 9, Some(at(3_720)), at(3_660));
        assert_eq!(waiting.count.load(Ordering::Relaxed), 1);
        waiting.allowed(u64::MAX, |_| true, at(4_000));
        assert_eq!(figures(&waiting), (1, 0, 0));
        assert!(waiting.is_empty());
    }
}
