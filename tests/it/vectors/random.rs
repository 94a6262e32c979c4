//! Long traces from a fixed generator, so that they never change.

use tollgate::{Algorithm, Outcome, Quota};

use super::Case;
use crate::properties::counters::{Deed, Op};
use crate::properties::traces::NEW_YEAR;
use crate::reference::Reference;
use crate::support::random::Xorshift;

const STEPS: usize = 120;

pub(super) fn cases(algorithm: Algorithm) -> Vec<Case> {
    let quotas: [&str; 3] = match algorithm {
        Algorithm::FixedWindow => [
            "7/1s, fixed-window",
            "5/13us, fixed-window",
            "3/1mo, fixed-window",
        ],
        Algorithm::SlidingBuckets => [
            "7/1s, sliding-buckets",
            "5/13us, sliding-buckets, buckets 4",
            "300/1h, sliding-buckets, buckets 7",
        ],
        Algorithm::SlidingLog => [
            "7/1s, sliding-log",
            "5/13us, sliding-log",
            "12/1d, sliding-log",
        ],
        Algorithm::TokenBucket => [
            "7/1s, token-bucket",
            "5/13us, token-bucket, burst 3",
            "4000000000/1h, token-bucket, burst 6000000000",
        ],
        _ => ["7/1s", "5/13us", "4000000000/1h"],
    };
    let quotas = quotas.iter().zip(1..);
    quotas
        .map(|(text, seed)| trace(&text.parse().expect("a valid quota"), seed))
        .collect()
}

fn trace(quota: &Quota, seed: u64) -> Case {
    let mut random = Xorshift(seed);
    let mut reference = Reference::default();
    let (mut now, mut free, mut charge) = (NEW_YEAR, NEW_YEAR, None);
    let mut deeds = Vec::new();
    while deeds.len() < STEPS {
        now = random.later(now, free, quota);
        let quota = random.tier(quota);
        let deed = random.deed(quota, now, charge);
        let result = deed.apply(&mut reference);
        match (deed.op, result) {
            (Op::Decide, Some(result)) if result.outcome == Outcome::Allowed => {
                charge = Some((now, deed.cost));
            }
            (Op::Refund(_), _) => charge = None,
            _ => {}
        }
        free = result.map_or(free, |result| result.reset_at);
        deeds.push(deed);
    }
    Case {
        name: format!("a long trace, number {seed}"),
        quota: *quota,
        deeds,
    }
}

impl Xorshift {
    fn later(&mut self, now: u64, free: u64, quota: &Quota) -> u64 {
        let window = u64::try_from(quota.window().duration().as_micros()).expect("small");
        let next = match self.below(10) {
            0..=3 => now,
            4 => now + 1,
            5 => now + self.below(window / 8 + 1),
            6 => now + self.below(2 * window),
            7 => (now / window + 1) * window - self.below(2),
            // A microsecond too early, on time, a microsecond late.
            _ => free + self.below(3) - 1,
        };
        next.max(now)
    }

    /// Sometimes another amount. What a token bucket has refilled meanwhile follows from the
    /// amount of the check, so it keeps to one.
    fn tier(&mut self, quota: &Quota) -> Quota {
        let amount = match self.below(12) {
            0 => quota.amount() / 2,
            1 => quota.amount() + 1,
            _ => return *quota,
        };
        let plain = quota.algorithm() != Algorithm::TokenBucket;
        let other = quota.with_amount(amount).ok();
        other
            .filter(|other| plain && other.tick() == quota.tick())
            .unwrap_or(*quota)
    }

    fn deed(&mut self, quota: Quota, at: u64, charge: Option<(u64, u64)>) -> Deed {
        let limit = quota.burst();
        let cost = match self.below(6) {
            0 => self.below(limit + 2),
            1 => limit / 2,
            2 if limit > 1_000 => limit / 3 * 2 + self.below(limit / 3),
            _ => self.below(3),
        };
        let (op, cost) = match (self.below(10), charge) {
            (0, _) => (Op::Peek, cost),
            (1, _) => (Op::Record, cost.min(limit / 2)),
            (2, Some((at, cost))) if quota.tick().as_micros() == 1 => (Op::Refund(at), cost),
            _ => (Op::Decide, cost),
        };
        Deed {
            op,
            quota,
            at,
            cost,
        }
    }
}
