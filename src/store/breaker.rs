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
    /// Failures since the last success.
    failures: u32,
    failing: Option<Failing<E>>,
}

/// State since the first failure after the last success or successful probe.
#[derive(Debug)]
struct Failing<E> {
    since: Timestamp,
    error: E,
    is_open: bool,
    /// `None` after an error reply, which a probe could not reproduce.
    probe: Option<Probe>,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Earliest start of the next probe.
    next_at: Timestamp,
    /// Start of the probe that runs. If the breaker is open, it is half-open.
    running_since: Option<Timestamp>,
}

impl<E> BreakerState<E> {
    pub(crate) const fn new(failure_threshold: u32, probe_interval: Duration) -> Self {
        Self {
            failure_threshold,
            probe_interval,
            failures: 0,
            failing: None,
        }
    }

    /// Returns the error that calls are rejected with, unless the breaker is closed.
    pub(crate) fn rejection(&self) -> Option<&E> {
        let failing = self.failing.as_ref().filter(|failing| failing.is_open);
        failing.map(|failing| &failing.error)
    }

    /// Returns the time of the first failure since the last success, and the last error.
    pub(crate) fn failing(&self) -> Option<(Timestamp, &E)> {
        let failing = self.failing.as_ref()?;
        Some((failing.since, &failing.error))
    }

    /// Closes the breaker.
    pub(crate) fn record_success(&mut self) {
        self.failures = 0;
        self.failing = None;
    }

    /// Counts a failure. Returns whether it opened the breaker.
    pub(crate) fn record_failure(&mut self, error: E, now: Timestamp, random: f64) -> bool {
        self.failures = self.failures.saturating_add(1);
        let was_open = self.rejection().is_some();
        let opens = !was_open && self.failures >= self.failure_threshold;
        self.fail(error, was_open || opens, now, random);
        opens
    }

    /// Updates the error. The next probe is due after an interval, unless one was planned.
    fn fail(&mut self, error: E, is_open: bool, now: Timestamp, random: f64) {
        let next_at = self.next_probe(now, random);
        let old = self.failing.take();
        let planned = old.as_ref().filter(|old| old.is_open == is_open);
        let probe = planned.and_then(|old| old.probe).unwrap_or(Probe {
            next_at,
            running_since: None,
        });
        self.failing = Some(Failing {
            since: old.map_or(now, |old| old.since),
            error,
            is_open,
            probe: Some(probe),
        });
    }

    /// Starts a probe if one may start. The caller must report it with
    /// [`end_probe`](Self::end_probe) or a success.
    pub(crate) fn start_probe(&mut self, now: Timestamp, random: f64) -> bool {
        let next_at = self.next_probe(now, random);
        let longest = self.probe_interval * MAX_PROBE_INTERVALS;
        let Some(probe) = self.probe_mut() else {
            return false;
        };
        let is_running = probe
            .running_since
            .is_some_and(|since| now.duration_since(since) < longest);
        if is_running || now < probe.next_at {
            return false;
        }
        *probe = Probe {
            next_at,
            running_since: Some(now),
        };
        true
    }

    /// Ends a probe without a success.
    pub(crate) fn end_probe(&mut self) {
        if let Some(probe) = self.probe_mut() {
            probe.running_since = None;
        }
    }

    fn probe_mut(&mut self) -> Option<&mut Probe> {
        self.failing.as_mut()?.probe.as_mut()
    }

    /// Half of the interval, and a random part of the other half.
    fn next_probe(&self, now: Timestamp, random: f64) -> Timestamp {
        let half = self.probe_interval / 2;
        now.saturating_add(half + half.mul_f64(random))
    }
}

/// Transitions for a server that is probed without a call, as the dispatcher of a Redis server does.
/// It may probe from the first failure on.
#[cfg(feature = "redis")]
impl<E> BreakerState<E> {
    /// Opens the breaker whatever the number of failures.
    pub(crate) fn trip(&mut self, error: E, now: Timestamp, random: f64) {
        self.failures = self.failures.max(self.failure_threshold);
        self.fail(error, true, now, random);
    }

    /// Closes the breaker, and keeps the error for [`failing`](Self::failing): the server responds,
    /// so that rejecting calls early would save no time.
    pub(crate) fn record_error_reply(&mut self, error: E, now: Timestamp) {
        self.failures = 0;
        self.failing = Some(Failing {
            since: self.failing.as_ref().map_or(now, |old| old.since),
            error,
            is_open: false,
            probe: None,
        });
    }

    /// Closes the breaker after a probe. While it is closed, only calls reset the number of failures:
    /// probes may succeed although calls fail.
    pub(crate) fn record_probe_success(&mut self) {
        if self.rejection().is_some() {
            self.failures = 0;
        }
        self.failing = None;
    }

    /// Returns when the next probe may start. `None` if no probe is needed, or if one runs.
    pub(crate) fn probe_at(&self) -> Option<Timestamp> {
        let probe = self.failing.as_ref()?.probe?;
        probe.running_since.is_none().then_some(probe.next_at)
    }

    /// Lets the next probe start from `now` on, for example after a late reply.
    pub(crate) fn probe_soon(&mut self, now: Timestamp) {
        if let Some(probe) = self.probe_mut() {
            probe.next_at = probe.next_at.min(now);
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

    /// Otherwise calls that are always late would never open it.
    #[test]
    fn probes_between_failures_do_not_reset_their_number() {
        let mut breaker = breaker();
        for time in 0..2 {
            assert!(!breaker.record_failure("late", at(time), 0.0));
            assert!(breaker.start_probe(at(time + 300), 0.0));
            breaker.record_probe_success();
            assert_eq!(breaker.failing(), None);
        }
        assert!(breaker.record_failure("late", at(900), 0.0));
        breaker.record_probe_success();
        assert!(!breaker.record_failure("late", at(999), 0.0));
    }

    #[test]
    fn error_replies_never_open() {
        let mut breaker = breaker();
        for time in 0..9 {
            breaker.record_error_reply("full", at(time));
            assert_eq!(breaker.rejection(), None);
        }
        assert_eq!(breaker.failing(), Some((at(0), &"full")));
        assert_eq!(breaker.probe_at(), None, "a probe would succeed");
        breaker.trip("down", at(10), 0.0);
        breaker.record_error_reply("full", at(11));
        assert_eq!(breaker.rejection(), None);
        assert_eq!(breaker.failing(), Some((at(0), &"full")));
    }
}
