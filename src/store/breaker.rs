//! State machine of a circuit breaker, without a clock, a lock or randomness of its own.

use std::time::Duration;

use crate::clock::Timestamp;

/// A probe that has not been reported on after this many intervals no longer blocks the next one.
/// Its caller may hold the future without polling it.
const MAX_PROBE_INTERVALS: u32 = 10;

/// Counts consecutive failures, and decides whether calls are rejected.
///
/// - Closed: calls pass. `failure_threshold` failures in a row open it.
/// - Open: calls are rejected with the last error. From `probe_at` on, one probe may start.
/// - Half-open: one probe runs. Its success closes the breaker.
///
/// `random` arguments are between 0 and 1, and spread the probes of many processes.
#[derive(Debug)]
pub(crate) struct BreakerState<E> {
    failure_threshold: u32,
    probe_interval: Duration,
    failing: Option<Failing<E>>,
}

/// State since the first failure after the last success.
#[derive(Debug)]
struct Failing<E> {
    since: Timestamp,
    error: E,
    failures: u32,
    /// `None` while the breaker is closed.
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    /// Earliest start of the next probe.
    probe_at: Timestamp,
    /// Start of the probe that runs: the breaker is half-open.
    probing_since: Option<Timestamp>,
}

impl<E> BreakerState<E> {
    pub(crate) const fn new(failure_threshold: u32, probe_interval: Duration) -> Self {
        Self {
            failure_threshold,
            probe_interval,
            failing: None,
        }
    }

    /// Returns the error that calls are rejected with, unless the breaker is closed.
    pub(crate) fn rejection(&self) -> Option<&E> {
        let failing = self.failing.as_ref()?;
        failing.open.map(|_| &failing.error)
    }

    /// Returns the time of the first failure since the last success, and the last error.
    pub(crate) fn failing(&self) -> Option<(Timestamp, &E)> {
        let failing = self.failing.as_ref()?;
        Some((failing.since, &failing.error))
    }

    /// Closes the breaker.
    pub(crate) fn record_success(&mut self) {
        self.failing = None;
    }

    /// Counts a failure. Returns whether it opened the breaker.
    pub(crate) fn record_failure(&mut self, error: E, now: Timestamp, random: f64) -> bool {
        let probe_at = self.next_probe(now, random);
        let threshold = self.failure_threshold;
        let failing = self.fail(error, now);
        failing.failures = failing.failures.saturating_add(1);
        let opens = failing.open.is_none() && failing.failures >= threshold;
        if opens {
            failing.open = Some(Open {
                probe_at,
                probing_since: None,
            });
        }
        opens
    }

    fn fail(&mut self, error: E, now: Timestamp) -> &mut Failing<E> {
        let (since, failures, open) = match self.failing.take() {
            Some(failing) => (failing.since, failing.failures, failing.open),
            None => (now, 0, None),
        };
        self.failing.insert(Failing {
            since,
            error,
            failures,
            open,
        })
    }

    /// Starts a probe if one may start. The caller must report it with
    /// [`end_probe`](Self::end_probe) or [`record_success`](Self::record_success).
    pub(crate) fn start_probe(&mut self, now: Timestamp, random: f64) -> bool {
        let probe_at = self.next_probe(now, random);
        let longest = self.probe_interval * MAX_PROBE_INTERVALS;
        let Some(open) = self.open_mut() else {
            return false;
        };
        let is_probing = open
            .probing_since
            .is_some_and(|since| now.duration_since(since) < longest);
        if is_probing || now < open.probe_at {
            return false;
        }
        *open = Open {
            probe_at,
            probing_since: Some(now),
        };
        true
    }

    /// Ends a probe without a success.
    pub(crate) fn end_probe(&mut self) {
        if let Some(open) = self.open_mut() {
            open.probing_since = None;
        }
    }

    fn open_mut(&mut self) -> Option<&mut Open> {
        self.failing.as_mut()?.open.as_mut()
    }

    /// Half of the interval, and a random part of the other half.
    fn next_probe(&self, now: Timestamp, random: f64) -> Timestamp {
        let half = self.probe_interval / 2;
        now.saturating_add(half + half.mul_f64(random))
    }
}

/// Transitions that need the server to be observed, as the dispatcher of a Redis server does.
#[cfg(feature = "redis")]
impl<E> BreakerState<E> {
    /// Opens the breaker whatever the number of failures.
    pub(crate) fn trip(&mut self, error: E, now: Timestamp, random: f64) {
        let probe_at = self.next_probe(now, random);
        self.fail(error, now).open.get_or_insert(Open {
            probe_at,
            probing_since: None,
        });
    }

    /// Keeps the error for [`failing`](Self::failing), and closes the breaker: the server responds,
    /// so that rejecting calls early would save no time.
    pub(crate) fn record_error_reply(&mut self, error: E, now: Timestamp) {
        let failing = self.fail(error, now);
        failing.failures = 0;
        failing.open = None;
    }

    /// Returns when the next probe may start. `None` if the breaker is closed or half-open.
    pub(crate) fn probe_at(&self) -> Option<Timestamp> {
        let open = self.failing.as_ref()?.open?;
        open.probing_since.is_none().then_some(open.probe_at)
    }

    /// Lets the next probe start from `now` on, for example after a sign of life.
    pub(crate) fn probe_soon(&mut self, now: Timestamp) {
        if let Some(open) = self.open_mut() {
            open.probe_at = open.probe_at.min(now);
        }
    }
}

#[cfg(all(test, feature = "redis"))]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }

    fn breaker() -> BreakerState<&'static str> {
        BreakerState::new(3, Duration::from_millis(500))
    }

    #[test]
    fn third_failure_in_a_row_opens() {
        let mut breaker = breaker();
        assert!(!breaker.record_failure("a", at(1), 0.0));
        assert!(!breaker.record_failure("b", at(2), 0.0));
        assert_eq!(breaker.rejection(), None);
        assert_eq!(breaker.failing(), Some((at(1), &"b")));
        breaker.record_success();
        assert_eq!(breaker.failing(), None);
        for _ in 0..2 {
            assert!(!breaker.record_failure("c", at(3), 0.0));
        }
        assert!(breaker.record_failure("d", at(4), 0.0));
        assert!(!breaker.record_failure("e", at(5), 0.0), "it is open");
        assert_eq!(breaker.rejection(), Some(&"e"));
    }

    #[test]
    fn probes_start_one_at_a_time_with_jitter() {
        for (random, first) in [(0.0, 250), (1.0, 500)] {
            let mut breaker = breaker();
            breaker.trip("down", at(0), random);
            assert_eq!(breaker.probe_at(), Some(at(first)));
            assert!(!breaker.start_probe(at(first - 1), random));
            assert!(breaker.start_probe(at(first), random));
            assert_eq!(breaker.probe_at(), None);
            assert!(!breaker.start_probe(at(first * 2), random), "one runs");
            breaker.end_probe();
            assert!(breaker.start_probe(at(first * 2), random));
            // A probe that is never reported on does not block others for ever.
            assert!(breaker.start_probe(at(first * 2 + 5_000), random));
            breaker.record_success();
            assert_eq!(breaker.rejection(), None);
        }
    }

    #[test]
    fn sign_of_life_makes_the_probe_due() {
        let mut breaker = breaker();
        breaker.probe_soon(at(0));
        assert!(!breaker.start_probe(at(0), 0.0), "it is closed");
        breaker.trip("down", at(0), 1.0);
        breaker.probe_soon(at(7));
        assert!(breaker.start_probe(at(7), 0.0));
    }

    #[test]
    fn error_replies_never_open() {
        let mut breaker = breaker();
        for time in 0..9 {
            breaker.record_error_reply("full", at(time));
            assert_eq!(breaker.rejection(), None);
        }
        assert_eq!(breaker.failing(), Some((at(0), &"full")));
        breaker.trip("down", at(10), 0.0);
        breaker.record_error_reply("full", at(11));
        assert_eq!(breaker.rejection(), None);
        assert_eq!(breaker.failing(), Some((at(0), &"full")));
    }
}
