//! Documented bounds of each algorithm, verified on the admitted requests without a model: no span
//! admits more than its bound, and no request is denied that the bound has room for.

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
    fn no_span_admits_more_than_its_bound(
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
                    admitted.verify_denial(&quota, deed.at, deed.cost)?;
                    verify_wait(&quota, &deed, result)?;
                }
                _ => {}
            }
            walk.note(&deed, Some(result));
        }
        admitted.verify_spans(&[quota], 0)?;
    }

    /// Amounts are raised and lowered. A counter never admits more than the largest of its amounts
    /// would have.
    #[test]
    fn changed_amount_opens_no_new_window(
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

    /// Amounts that are so far apart that they are counted in different ticks.
    #[test]
    fn changed_tick_opens_no_new_window(
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
                verify_used_is_kept(&state, &deed.quota, quotas, deed.at, result)?;
            }
        }
        walk.note(&deed, Some(result));
    }
    admitted.verify_spans(quotas, early)
}

/// A sliding window that was never over its limit makes a request of cost `c` wait for the end of the
/// window and at most `⌊(c − 1) W / L⌋` ticks more.
fn verify_wait(quota: &Quota, deed: &Deed, result: ModelUsage) -> TestCaseResult {
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
fn verify_used_is_kept(
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

/// Admitted requests, oldest first.
#[derive(Debug, Default)]
struct Admitted(Vec<(u64, u64)>);

impl Admitted {
    fn push(&mut self, at: u64, cost: u64) {
        self.0.push((at, cost));
    }

    /// Verifies every span from one admitted request to another, both included. A token bucket may
    /// refill `early` microseconds too soon.
    fn verify_spans(&self, quotas: &[Quota], early: u128) -> TestCaseResult {
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
        self.verify_aligned_windows(first, amount)
    }

    /// Fixed and sliding windows: no aligned window has more than the amount.
    fn verify_aligned_windows(&self, quota: &Quota, amount: u128) -> TestCaseResult {
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

    /// Verifies that a denial is justified by the charges within the window, or within a slightly
    /// longer one if the algorithm documents it.
    fn verify_denial(&self, quota: &Quota, now: u64, cost: u64) -> TestCaseResult {
        let window = quota.window().duration().as_micros();
        let tick = quota.tick().as_micros();
        let (amount, burst) = (u128::from(quota.amount()), u128::from(quota.burst()));
        let since = |span: u128| -> u128 {
            let recent = self.0.iter().filter(|(at, _)| u128::from(now - at) < span);
            recent.map(|(_, cost)| u128::from(*cost)).sum()
        };
        let over = |sum: u128| sum + u128::from(cost) > amount;
        let is_justified = match quota.algorithm() {
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
        prop_assert!(
            is_justified,
            "{quota}: {cost} denied at {now}, after {self:?}"
        );
        Ok(())
    }
}
