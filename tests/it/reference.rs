//! Reference model: an independent implementation of the documented guarantees, which all other
//! implementations are compared with.
//!
//! It stores every charge and computes each result from the whole history, in 128-bit integers. No
//! state is rolled forward, and instants are found by search instead of a formula. It is simple and
//! slow on purpose.

use jiff::civil::date;
use jiff::tz::TimeZone;
use tollgate::{Algorithm, Outcome, Quota, Usage};

/// Usage as the model computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelUsage {
    pub(crate) outcome: Outcome,
    pub(crate) limit: u64,
    pub(crate) used: u64,
    pub(crate) reset_at: u64,
}

impl From<Usage> for ModelUsage {
    fn from(usage: Usage) -> Self {
        Self {
            outcome: usage.outcome(),
            limit: usage.limit(),
            used: usage.used(),
            reset_at: usage.reset_at().as_micros(),
        }
    }
}

/// One counter, as its whole history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    /// Oldest first.
    charges: Vec<Charge>,
    /// Latest instant of a call other than a peek. Earlier instants are raised to it, so that a
    /// clock that goes back stands still.
    latest: u64,
}

#[derive(Clone, Copy, Debug)]
struct Charge {
    at: u64,
    slot: Slot,
    /// The amount may differ from charge to charge.
    quota: Quota,
    /// Cost × window, so that a share of it is a whole number. Negative if refunded to a
    /// token bucket.
    weight: i128,
}

impl Reference {
    /// Charges `cost` if there is room for it.
    pub(crate) fn decide(&mut self, quota: &Quota, now: u64, cost: u64) -> ModelUsage {
        let now = self.at_least_latest(now);
        let result = self.assess(quota, now, cost);
        if result.outcome == Outcome::Allowed {
            self.charge(quota, now, cost);
        }
        result
    }

    /// Returns the outcome of `decide`, with the usage before the charge. Does not advance the
    /// latest instant.
    pub(crate) fn peek(&self, quota: &Quota, now: u64, cost: u64) -> ModelUsage {
        let now = self.latest.max(now);
        let result = self.assess(quota, now, cost);
        match result.outcome {
            Outcome::Allowed => self.assess(quota, now, 0),
            _ => result,
        }
    }

    /// Charges `cost` without a limit check.
    pub(crate) fn record(&mut self, quota: &Quota, now: u64, cost: u64) -> ModelUsage {
        let now = self.at_least_latest(now);
        self.charge(quota, now, cost);
        self.assess(quota, now, 0)
    }

    /// Takes `cost` out of what was charged at `charged_at`, as far as it is there.
    pub(crate) fn refund(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
        let now = self.at_least_latest(now);
        let mut weight = i128::from(cost) * window(quota);
        if quota.algorithm() == Algorithm::TokenBucket {
            // It is unknown which part of the refill since then belongs to this charge. The model
            // assumes all of it, which never refunds too much.
            let refilled = next_tick(quota, now) - last_tick(quota, charged_at);
            weight = (weight - amount(quota) * refilled.max(0)).max(0);
            self.push(quota, now, -weight);
            return;
        }
        let from = slot(quota, charged_at);
        for charge in self.charges.iter_mut().filter(|charge| charge.slot == from) {
            let given = weight.min(charge.weight);
            charge.weight -= given;
            weight -= given;
        }
    }

    fn at_least_latest(&mut self, now: u64) -> u64 {
        self.latest = self.latest.max(now);
        self.latest
    }

    fn charge(&mut self, quota: &Quota, now: u64, cost: u64) {
        if cost == 0 {
            return;
        }
        if quota.algorithm() == Algorithm::SlidingLog {
            self.make_room_in_log(quota, now);
        }
        self.push(quota, now, i128::from(cost) * window(quota));
    }

    fn push(&mut self, quota: &Quota, at: u64, weight: i128) {
        self.charges.push(Charge {
            at,
            slot: slot(quota, at),
            quota: *quota,
            weight,
        });
    }

    /// A log holds no more instants than the amount. Only `record` can come upon a full one;
    /// what it charges and what came last are from then on held to be of one instant.
    fn make_room_in_log(&mut self, quota: &Quota, now: u64) {
        let counts = |charge: &&Charge| charge.weight > 0 && counts_at(quota, charge.slot, now);
        let mut instants: Vec<u64> = self.charges.iter().filter(counts).map(|c| c.at).collect();
        instants.dedup();
        if instants.len() as u64 >= quota.amount() {
            let last = instants.last().copied();
            let moved = self.charges.iter_mut().filter(|c| Some(c.at) == last);
            moved.for_each(|charge| {
                charge.at = now;
                charge.slot = slot(quota, now);
            });
        }
    }

    fn assess(&self, quota: &Quota, now: u64, cost: u64) -> ModelUsage {
        let limit = quota.burst();
        let room = (i128::from(limit) - i128::from(cost)) * window(quota);
        let result = |outcome, history: &Self, reset_at| ModelUsage {
            outcome,
            limit,
            used: history.used(quota, now),
            reset_at,
        };
        if cost > limit {
            result(Outcome::ExceedsCapacity, self, self.reset(quota, now))
        } else if self.weight(quota, now) <= room {
            let mut after = self.clone();
            after.charge(quota, now, cost);
            result(Outcome::Allowed, &after, after.reset(quota, now))
        } else {
            let free = first_instant(now, |at| self.weight(quota, at) <= room);
            result(Outcome::Denied, self, free)
        }
    }

    /// Returns the end of the window for fixed and sliding windows, otherwise the instant at which
    /// nothing is used any more.
    fn reset(&self, quota: &Quota, now: u64) -> u64 {
        match quota.algorithm() {
            Algorithm::FixedWindow | Algorithm::SlidingWindow => slot(quota, now).end,
            _ => first_instant(now, |at| self.weight(quota, at) == 0),
        }
    }

    /// A fraction of a permit counts as a whole one.
    fn used(&self, quota: &Quota, now: u64) -> u64 {
        let whole = (self.weight(quota, now) + window(quota) - 1) / window(quota);
        u64::try_from(whole).expect("a use is no less than nothing")
    }

    /// Returns what is used at `now`, times the window.
    fn weight(&self, quota: &Quota, now: u64) -> i128 {
        let sum_where = |counts: &dyn Fn(&Charge) -> bool| -> i128 {
            let counted = self.charges.iter().filter(|charge| counts(charge));
            counted.map(|charge| charge.weight).sum()
        };
        match quota.algorithm() {
            Algorithm::SlidingWindow => {
                let current = slot(quota, now);
                let elapsed = last_tick(quota, now) - i128::from(current.start);
                let previous = sum_where(&|charge| charge.slot.end == current.start);
                // Divided by the window once for the cost, once for the share, and multiplied again:
                // the share is a whole number of permits.
                let share = previous / window(quota) * (window(quota) - elapsed - tick(quota));
                sum_where(&|charge| charge.slot == current) + share / window(quota) * window(quota)
            }
            Algorithm::TokenBucket => self.missing(quota, now),
            _ => sum_where(&|charge| counts_at(quota, charge.slot, now)),
        }
    }

    /// Returns what is missing from a token bucket, times the window.
    fn missing(&self, quota: &Quota, now: u64) -> i128 {
        let mut bucket = Bucket::default();
        for charge in &self.charges {
            bucket.refill(&charge.quota, charge.at);
            bucket.change(&charge.quota, charge.at, charge.weight);
        }
        bucket.refill(quota, now);
        bucket.missing
    }
}

/// A bucket that is walked through its history, in permits × microseconds.
#[derive(Default)]
struct Bucket {
    missing: i128,
    refilled_until: i128,
}

impl Bucket {
    fn refill(&mut self, quota: &Quota, now: u64) {
        let until = last_tick(quota, now);
        if until > self.refilled_until {
            let refill = amount(quota) * (until - self.refilled_until);
            self.missing = (self.missing - refill).max(0);
            self.refilled_until = until;
        }
    }

    fn change(&mut self, quota: &Quota, now: u64, weight: i128) {
        // A bucket that the next tick makes whole anyway loses the rest of that tick: what is
        // taken now starts to refill there, and no permit comes earlier than its time.
        if weight > 0 && self.missing < amount(quota) * tick(quota) {
            self.refilled_until = next_tick(quota, now);
        }
        self.missing = (self.missing + weight).max(0);
    }
}

/// Unit of time whose charges are counted together: an aligned window, a bucket or an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    start: u64,
    end: u64,
}

fn slot(quota: &Quota, at: u64) -> Slot {
    let aligned = |width: u64| Slot {
        start: at - at % width,
        end: at - at % width + width,
    };
    let window = micros(quota.window().duration());
    match quota.algorithm() {
        Algorithm::FixedWindow => months(quota).map_or_else(
            || aligned(window),
            |months| Slot {
                start: first_of_block(at, months, 0),
                end: first_of_block(at, months, 1),
            },
        ),
        Algorithm::SlidingWindow => aligned(window),
        Algorithm::SlidingBuckets => aligned(window.div_ceil(u64::from(quota.buckets()))),
        _ => aligned(1),
    }
}

/// Whether what happened in `slot` counts at `now`: in a fixed window, if it is the same one;
/// else until the last instant of the slot is a whole window ago.
fn counts_at(quota: &Quota, slot: Slot, now: u64) -> bool {
    match quota.algorithm() {
        Algorithm::FixedWindow => (slot.start..slot.end).contains(&now),
        _ => now < slot.end - 1 + micros(quota.window().duration()),
    }
}

/// How many calendar months a window is, if it is in months.
fn months(quota: &Quota) -> Option<i64> {
    let text = quota.window().to_string();
    let count = text.strip_suffix("mo")?;
    Some(count.parse().expect("a number of months"))
}

/// Where the block of `months` calendar months around `at` starts, or the one `later`.
fn first_of_block(at: u64, months: i64, later: i64) -> u64 {
    let at = jiff::Timestamp::from_microsecond(i64::try_from(at).expect("in range"));
    let day = at.expect("in range").to_zoned(TimeZone::UTC).date();
    let since_1970 = i64::from(day.year() - 1970) * 12 + i64::from(day.month() - 1);
    let block = (since_1970 / months + later) * months;
    let year = i16::try_from(1970 + block / 12).expect("in range");
    let month = i8::try_from(block % 12 + 1).expect("in range");
    let first = date(year, month, 1).to_zoned(TimeZone::UTC).expect("UTC");
    u64::try_from(first.timestamp().as_microsecond()).expect("after 1970")
}

/// The first instant from `from` on at which something holds that, once it does, goes on to.
fn first_instant(from: u64, holds: impl Fn(u64) -> bool) -> u64 {
    if holds(from) {
        return from;
    }
    let (mut before, mut step) = (from, 1);
    while !holds(before + step) {
        before += step;
        step *= 2;
    }
    let mut after = before + step;
    while after - before > 1 {
        let middle = before + (after - before) / 2;
        if holds(middle) {
            after = middle;
        } else {
            before = middle;
        }
    }
    after
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("at most ten years")
}

fn window(quota: &Quota) -> i128 {
    i128::from(micros(quota.window().duration()))
}

fn amount(quota: &Quota) -> i128 {
    i128::from(quota.amount())
}

fn tick(quota: &Quota) -> i128 {
    i128::from(micros(quota.tick()))
}

fn last_tick(quota: &Quota, at: u64) -> i128 {
    i128::from(at) / tick(quota) * tick(quota)
}

fn next_tick(quota: &Quota, at: u64) -> i128 {
    -(-i128::from(at)).div_euclid(tick(quota)) * tick(quota)
}

/// Checks the model against results that were calculated by hand.
#[test]
fn model_agrees_with_results_calculated_by_hand() {
    const SECOND: u64 = 1_000_000;
    let quota: Quota = "6/60s".parse().expect("valid");
    let mut reference = Reference::default();
    let mut assess = |at: u64, cost| {
        let result = reference.decide(&quota, at * SECOND, cost);
        (result.outcome, result.used, result.reset_at / SECOND)
    };
    assert_eq!(assess(30, 6), (Outcome::Allowed, 6, 60));
    // In the first tick of the next window less than six are left, which counts as five.
    assert_eq!(assess(60, 2), (Outcome::Denied, 5, 70));
    assert_eq!(assess(60, 1), (Outcome::Allowed, 6, 120));
    assert_eq!(assess(69, 1), (Outcome::Denied, 6, 70));
    assert_eq!(assess(70, 1), (Outcome::Allowed, 6, 120));
    // The two of this window keep a cost of six waiting until less than one of them is left.
    assert_eq!(assess(70, 6), (Outcome::Denied, 6, 150));
    assert_eq!(assess(70, 7), (Outcome::ExceedsCapacity, 6, 120));

    let quota: Quota = "6/60s, sliding-buckets, buckets 6".parse().expect("valid");
    let mut reference = Reference::default();
    let mut assess = |at: u64, cost| reference.decide(&quota, at * SECOND, cost);
    assert_eq!(assess(5, 6).reset_at, 70 * SECOND - 1);
    assert_eq!(assess(69, 1).outcome, Outcome::Denied);
    assert_eq!(assess(70, 1).outcome, Outcome::Allowed);

    let quota: Quota = "6/60s, sliding-log".parse().expect("valid");
    let mut reference = Reference::default();
    let mut assess = |at: u64, cost| reference.decide(&quota, at * SECOND, cost);
    assert_eq!(assess(5, 2).reset_at, 65 * SECOND);
    assert_eq!(assess(10, 4).reset_at, 70 * SECOND);
    assert_eq!(assess(11, 2).reset_at, 65 * SECOND);
    assert_eq!(assess(11, 3).reset_at, 70 * SECOND);

    let quota: Quota = "6/60s, token-bucket, burst 2".parse().expect("valid");
    let mut reference = Reference::default();
    let mut assess = |at: u64, cost| reference.decide(&quota, at * SECOND, cost);
    assert_eq!(assess(5, 2).reset_at, 25 * SECOND);
    assert_eq!(assess(10, 1).reset_at, 15 * SECOND);
    assert_eq!(assess(15, 1).reset_at, 35 * SECOND);

    let quota: Quota = "1/month, fixed-window".parse().expect("valid");
    let (first, leap_day) = (1_704_067_200, 1_709_208_000);
    let mut reference = Reference::default();
    assert_eq!(
        reference.decide(&quota, first * SECOND, 1).reset_at,
        1_706_745_600 * SECOND
    );
    assert_eq!(
        reference.decide(&quota, leap_day * SECOND, 1).reset_at,
        1_709_251_200 * SECOND
    );
}
