//! What is promised of each algorithm, checked on what was admitted, without any model: no
//! more than promised in any span, and nothing denied that the promise has room for.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tollgate::{Algorithm, Outcome, Quota};

use super::config;
use super::counters::{Counts, Deed, Plain};
use super::quotas::{large_quotas, quotas, tiers};
use super::traces::{Step, Walk, greedy_traces, starts};
use crate::reference::ModelUsage;

proptest! {
    #![proptest_config(config(15_000))]

    #[test]
    fn no_span_admits_more_than_promised(
        quota in prop_oneof![quotas(), large_quotas()],
        start in starts(),
        trace in greedy_traces(60, Just(0)),
    ) {
        let mut admitted = Admitted::default();
        let mut walk = Walk::new(start, vec![quota]);
        let mut state = Plain::new(&quota);
        for step in &trace {
            let deed = walk.deed(step);
            let result = state.decide(&quota, deed.at, deed.cost);
            match result.outcome {
                Outcome::Allowed => admitted.push(deed.at, deed.cost),
                Outcome::Denied => {
                    admitted.excuses(&quota, deed.at, deed.cost)?;
                    wait_has_its_bound(&quota, &deed, result)?;
                }
                _ => {}
            }
            walk.note(&deed, Some(result));
        }
        admitted.keep_the_promise(&[quota], 0)?;
    }

    /// Raised and lowered: a counter never admits more than the largest of its amounts would
    /// have.
    #[test]
    fn another_amount_is_no_fresh_window(
        quota in quotas(),
        start in starts(),
        trace in greedy_traces(60, prop_oneof![2 => Just(0), 1 => 1..4_usize]),
    ) {
        // A token bucket that is raised in mid-tick refills that tick by the new amount.
        let early = match quota.tick().as_micros() {
            1 => 0,
            tick => tick,
        };
        changing(&tiers(&quota), start, &trace, early)?;
    }

    /// The same between amounts so far apart that they are counted in other ticks.
    #[test]
    fn another_tick_is_no_fresh_window(
        quota in large_quotas(),
        start in starts(),
        factor in prop::sample::select(vec![10, 100, 1_000]),
        trace in greedy_traces(60, 0..2_usize),
    ) {
        let mut quotas = vec![quota];
        quotas.extend(quota.with_amount(quota.amount() / factor).ok());
        changing(&quotas, start, &trace, 0)?;
    }
}

fn changing(quotas: &[Quota], start: u64, trace: &[Step], early: u128) -> TestCaseResult {
    let mut admitted = Admitted::default();
    let mut walk = Walk::new(start, quotas.to_vec());
    let mut state = Plain::new(&quotas[0]);
    for step in trace {
        let deed = walk.deed(step);
        let result = state.decide(&deed.quota, deed.at, deed.cost);
        if result.outcome == Outcome::Allowed {
            admitted.push(deed.at, deed.cost);
            if deed.cost > 0 {
                used_is_kept(&state, &deed.quota, quotas, deed.at, result)?;
            }
        }
        walk.note(&deed, Some(result));
    }
    admitted.keep_the_promise(quotas, early)
}

/// A sliding window that was never over its limit makes a request of cost `c` wait for the end of the
/// window and at most `⌊(c − 1) W / L⌋` ticks more.
fn wait_has_its_bound(quota: &Quota, deed: &Deed, result: ModelUsage) -> TestCaseResult {
    if quota.algorithm() == Algorithm::SlidingWindow {
        let window = quota.window().duration().as_micros();
        let tick = quota.tick().as_micros();
        let end = u128::from(deed.at) / window * window + window;
        let ticks = u128::from(deed.cost - 1) * (window / tick) / u128::from(quota.amount());
        let latest = end + ticks * tick;
        prop_assert!(u128::from(result.reset_at) <= latest, "{quota}: {result:?}");
    }
    Ok(())
}

/// Under every amount, the same is used at the instant of a charge; or more, if the amount is
/// counted in a coarser tick. A sliding window counts the running tick as elapsed, so a coarser one
/// leaves less of the previous window: by at most the share of that tick, and a fraction.
fn used_is_kept(
    state: &Plain,
    charged: &Quota,
    quotas: &[Quota],
    now: u64,
    result: ModelUsage,
) -> TestCaseResult {
    for other in quotas {
        let used = state.assess(other, now, 0).used();
        if other.tick() == charged.tick() {
            prop_assert_eq!(used, result.used, "{} became {}", charged, other);
        } else if other.tick() > charged.tick() {
            let faded = match other.algorithm() {
                Algorithm::SlidingWindow => {
                    let most = quotas.iter().map(Quota::amount).max().unwrap_or(0);
                    let window = other.window().duration().as_micros();
                    let share = u128::from(most) * other.tick().as_micros() / window;
                    u64::try_from(share).expect("at most the amount") + 1
                }
                _ => 0,
            };
            prop_assert!(used + faded >= result.used, "{} became {}", charged, other);
        }
    }
    Ok(())
}

/// What was admitted, in the order of time.
#[derive(Debug, Default)]
struct Admitted(Vec<(u64, u64)>);

impl Admitted {
    fn push(&mut self, at: u64, cost: u64) {
        self.0.push((at, cost));
    }

    /// Looks at every span from one admitted request to another, both included. What a token
    /// bucket earns may come so many microseconds early.
    fn keep_the_promise(&self, quotas: &[Quota], early: u128) -> TestCaseResult {
        let Some(first) = quotas.first() else {
            return Ok(());
        };
        let amount = quotas.iter().map(Quota::amount).max().unwrap_or(0);
        let burst = quotas.iter().map(Quota::burst).max().unwrap_or(0);
        let (amount, burst) = (u128::from(amount), u128::from(burst));
        let window = first.window().duration().as_micros();
        let tick = quotas.iter().map(|quota| quota.tick().as_micros()).max();
        let tick = tick.unwrap_or(1);
        let months = first.window().to_string().ends_with("mo");
        for (index, (from, _)) in self.0.iter().enumerate() {
            let mut sum = 0;
            for (to, cost) in &self.0[index..] {
                sum += u128::from(*cost);
                let span = u128::from(to - from);
                let within = span < window;
                let most = match first.algorithm() {
                    // Counted in window-ths of a permit, because a span may earn a fraction.
                    Algorithm::TokenBucket => burst * window + amount * (span + early),
                    Algorithm::SlidingLog | Algorithm::SlidingBuckets if within => amount * window,
                    Algorithm::SlidingWindow if span <= window => {
                        let ticks = span.div_ceil(tick) * tick;
                        (amount + (amount * ticks).div_ceil(window)) * window
                    }
                    // No aligned window is shorter than the span, unless it is a February.
                    Algorithm::FixedWindow if within && !months => 2 * amount * window,
                    _ => continue,
                };
                prop_assert!(
                    sum * window <= most,
                    "{first}: {sum} admitted from {from} to {to}",
                );
            }
        }
        self.keep_to_windows(first, amount)
    }

    /// Fixed and sliding windows: no aligned window has more than the amount.
    fn keep_to_windows(&self, quota: &Quota, amount: u128) -> TestCaseResult {
        let ends = match quota.algorithm() {
            Algorithm::FixedWindow | Algorithm::SlidingWindow => {
                |quota: &Quota, at| Plain::new(quota).assess(quota, at, 0).reset_at()
            }
            _ => return Ok(()),
        };
        for (at, _) in &self.0 {
            let same = |other: &&(u64, u64)| ends(quota, other.0) == ends(quota, *at);
            let sum: u128 = self
                .0
                .iter()
                .filter(same)
                .map(|(_, cost)| u128::from(*cost))
                .sum();
            prop_assert!(sum <= amount, "{quota}: {sum} admitted around {at}");
        }
        Ok(())
    }

    /// Whether a denial is justified: by what lies within the window, or, where the algorithm
    /// says so, within a little more.
    fn excuses(&self, quota: &Quota, now: u64, cost: u64) -> TestCaseResult {
        let window = quota.window().duration().as_micros();
        let tick = quota.tick().as_micros();
        let (amount, burst) = (u128::from(quota.amount()), u128::from(quota.burst()));
        let since = |span: u128| -> u128 {
            let recent = self.0.iter().filter(|(at, _)| u128::from(now - at) < span);
            recent.map(|(_, cost)| u128::from(*cost)).sum()
        };
        let over = |sum: u128| sum + u128::from(cost) > amount;
        let excused = match quota.algorithm() {
            Algorithm::SlidingLog => over(since(window)),
            Algorithm::SlidingBuckets => {
                over(since(window + window.div_ceil(u128::from(quota.buckets()))))
            }
            Algorithm::FixedWindow => over(since(u128::from(now) + 1)),
            Algorithm::SlidingWindow => over(since(2 * window)),
            _ => {
                // Some span is full. Time moves in ticks: one is rounded away at the start of
                // the span, one at its end, one by a bucket that was almost whole.
                let slack = if tick == 1 { 0 } else { 3 * tick };
                self.0.iter().any(|(from, _)| {
                    let span = u128::from(now - from);
                    let taken = (since(span + 1) + u128::from(cost)) * window;
                    taken + amount * slack > burst * window + amount * span
                })
            }
        };
        prop_assert!(excused, "{quota}: {cost} denied at {now}, after {self:?}");
        Ok(())
    }
}
