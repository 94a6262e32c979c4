//! Bounds of the sliding window, by trying every small quota, state, instant and cost.
//!
//! `cargo test -p tollgate-tests -- --ignored sliding_bounds` covers all limits up to 20 and all windows
//! up to 200 ticks.

use std::ops::RangeInclusive;

use tollgate::algorithm::State;
use tollgate::{Outcome, Quota, Timestamp};

/// A quota whose tick is a microsecond, so that a window of `window` has as many ticks.
#[derive(Clone, Copy)]
struct Small {
    quota: Quota,
    limit: u64,
    window: u64,
}

impl Small {
    fn new(limit: u64, window: u64) -> Self {
        let quota: Quota = format!("{limit}/{window}us").parse().unwrap();
        assert_eq!(quota.tick().as_micros(), 1);
        Self {
            quota,
            limit,
            window,
        }
    }

    /// A state that counted `previous` in the first window and `current` in the second.
    fn state(self, previous: u64, current: u64) -> State {
        let mut state = State::fresh(&self.quota);
        state.charge(&self.quota, Timestamp::EPOCH, previous);
        state.charge(&self.quota, Timestamp::from_micros(self.window), current);
        state
    }

    /// Outcome, remaining and reset of a cost, `elapsed` ticks into the second window or later.
    fn assess(self, state: &State, elapsed: u64, cost: u64) -> (Outcome, u64, u64) {
        let now = Timestamp::from_micros(self.window + elapsed);
        let usage = state.assess(&self.quota, now, cost);
        let reset = usage.reset_at().as_micros() - self.window;
        (usage.outcome(), usage.remaining(), reset)
    }

    fn allows(self, state: &State, elapsed: u64, cost: u64) -> bool {
        self.assess(state, elapsed, cost).0 == Outcome::Allowed
    }

    /// Whatever the two counters hold up to the limit: `remaining` is the largest cost that is admitted;
    /// a larger one is admitted at its reset and not a tick earlier; the wait has its bound; a caller
    /// that comes back at the end of the window is admitted.
    fn check_all_states(self) {
        let Self { limit, window, .. } = self;
        for (previous, current) in (0..=limit).flat_map(|p| (0..=limit).map(move |c| (p, c))) {
            let state = self.state(previous, current);
            let name = format!("{}: {previous}, {current}", self.quota);
            assert!(self.allows(&state, window, 1), "{name}, at the end");
            for elapsed in 0..window {
                let (outcome, remaining, reset) = self.assess(&state, elapsed, 0);
                if outcome == Outcome::Allowed {
                    assert_eq!(reset, window, "{name}, {elapsed}");
                }
                let share = previous * (window - elapsed - 1) / window;
                assert_eq!(remaining, limit.saturating_sub(current + share), "{name}");
                for cost in 1..=limit {
                    let (outcome, left, reset) = self.assess(&state, elapsed, cost);
                    if cost <= remaining {
                        let expected = (Outcome::Allowed, remaining - cost, window);
                        assert_eq!(
                            (outcome, left, reset),
                            expected,
                            "{name}, {elapsed}, {cost}"
                        );
                        continue;
                    }
                    assert_eq!(outcome, Outcome::Denied, "{name}, {elapsed}, {cost}");
                    assert!(reset > elapsed, "{name}, {elapsed}, {cost}");
                    assert!(
                        !self.allows(&state, reset - 1, cost),
                        "{name}, {elapsed}, {cost}"
                    );
                    assert!(
                        self.allows(&state, reset, cost),
                        "{name}, {elapsed}, {cost}"
                    );
                    let longest = window + (cost - 1) * window / limit;
                    assert!(reset <= longest, "{name}, {elapsed}, {cost}: {reset}");
                }
            }
        }
    }

    /// Takes all that is admitted in each tick after a window whose charges were all in its last tick.
    /// No other trace admits more between that tick and a later one.
    fn check_greedy_spans(self) {
        let Self { limit, window, .. } = self;
        for previous in 0..=limit {
            let mut current = 0;
            for elapsed in 0..window {
                let state = self.state(previous, current);
                current += self.assess(&state, elapsed, 0).1;
                self.check_span(previous + current, elapsed + 1);
                assert!(current <= limit, "{}", self.quota);
            }
        }
    }

    /// Every trace: from each tick of a window on, the most that any choice of costs in each of the
    /// following ticks admits, after every history.
    fn check_all_spans(self) {
        let Self { limit, window, .. } = self;
        let pairs = || (0..=limit).flat_map(|p| (0..=limit).map(move |c| (p, c)));
        for first in 0..window {
            // What was admitted since `first`, by the counters then; those that can be reached.
            let mut most = vec![vec![None; count(limit) + 1]; count(limit) + 1];
            for (previous, current) in pairs() {
                let is_reachable =
                    current == 0 || first > 0 && self.is_reachable(previous, current, first - 1);
                if is_reachable {
                    most[count(previous)][count(current)] = Some(0);
                }
            }
            for last in first..=first + window {
                if last == window {
                    let mut rolled = vec![vec![None; count(limit) + 1]; count(limit) + 1];
                    for (previous, current) in pairs() {
                        let sum = most[count(previous)][count(current)];
                        let rolled = &mut rolled[count(current)][0];
                        *rolled = sum.max(*rolled);
                    }
                    most = rolled;
                }
                for (previous, current) in pairs() {
                    let Some(sum) = most[count(previous)][count(current)] else {
                        continue;
                    };
                    let state = self.state(previous, current);
                    let costs = 1..=limit - current;
                    for cost in costs.filter(|cost| self.allows(&state, last % window, *cost)) {
                        self.check_span(sum + cost, last - first);
                        let after = &mut most[count(previous)][count(current + cost)];
                        *after = (*after).max(Some(sum + cost));
                    }
                }
            }
        }
    }

    fn is_reachable(self, previous: u64, current: u64, elapsed: u64) -> bool {
        let before = self.state(previous, 0);
        self.allows(&before, elapsed, current)
    }

    /// At most `L + ⌈L t / W⌉` between two ticks that are `t` apart, both included.
    fn check_span(self, admitted: u64, t: u64) {
        let bound = self.limit + (self.limit * t).div_ceil(self.window);
        assert!(admitted <= bound, "{}: {admitted} in {t}", self.quota);
    }
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

fn quotas(
    limits: RangeInclusive<u64>,
    windows: RangeInclusive<u64>,
) -> impl Iterator<Item = Small> {
    limits.flat_map(move |limit| windows.clone().map(move |window| Small::new(limit, window)))
}

#[test]
fn retry_after_remaining_and_reset_agree_in_every_state() {
    for small in quotas(1..=5, 1..=12).chain([Small::new(3, 100), Small::new(20, 7)]) {
        small.check_all_states();
    }
}

#[test]
fn no_trace_exceeds_the_bound_of_its_span() {
    quotas(1..=4, 1..=8).for_each(Small::check_all_spans);
    quotas(1..=12, 1..=40).for_each(Small::check_greedy_spans);
}

#[test]
#[ignore = "takes minutes"]
fn bounds_hold_for_limits_up_to_20_and_windows_up_to_200_ticks() {
    for small in quotas(1..=20, 1..=200) {
        small.check_all_states();
        small.check_greedy_spans();
    }
    quotas(1..=8, 1..=24).for_each(Small::check_all_spans);
}

/// `3/hour` answered 4328 s, longer than the window.
#[test]
fn cost_of_one_never_waits_longer_than_the_window() {
    let quota: Quota = "3/hour".parse().unwrap();
    let hour = |hours: u64| Timestamp::from_secs(hours * 3_600);
    let mut state = State::fresh(&quota);
    state.charge(&quota, hour(1), 3);
    let denied = state.assess(&quota, hour(1), 1);
    assert_eq!(denied.outcome(), Outcome::Denied);
    assert_eq!(denied.reset_at(), hour(2));
    assert!(state.assess(&quota, hour(2), 1).is_allowed());
}

/// Documented: with a small limit, a whole window's amount can come right after another.
#[test]
fn limit_of_one_admits_two_requests_one_tick_apart() {
    let quota: Quota = "1/hour".parse().unwrap();
    let end = Timestamp::from_secs(7_200);
    let last = Timestamp::from_micros(end.as_micros() - 1);
    let mut state = State::fresh(&quota);
    assert!(state.assess(&quota, last, 1).is_allowed());
    state.charge(&quota, last, 1);
    assert!(state.assess(&quota, end, 1).is_allowed());
}
