//! Token bucket: permits that refill at a constant rate. At most `burst + L · t / W` in any time t.
//!
//! The state is what is missing from a full bucket, in permits × ticks: a permit weighs W, and
//! every tick refills L. Both are whole numbers. The interval between two permits (1/7 of a second)
//! would not be.

use super::{allowed, denied, never, step};
use crate::quota::{MAX_COUNT, Quota};
use crate::usage::Usage;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenBucket {
    /// Missing permits × ticks; at most [`MAX_LEVEL`].
    pub(crate) level: u64,
    /// Instant until which the refill is accounted for. A multiple of the tick.
    pub(crate) filled_until: u64,
    /// Tick of `level`, as a power of ten of microseconds. Another amount may have another tick.
    pub(crate) tick_power: u8,
}

/// Largest level: a debt of at least four full buckets.
pub(crate) const MAX_LEVEL: u64 = (1 << 48) - 1;

/// Returns how long the refill of `missing` takes, in microseconds.
#[inline]
fn time_to_refill(missing: u64, quota: &Quota) -> u64 {
    let ticks = quota.by_amount().divide_up(missing);
    ticks.saturating_mul(quota.by_tick().value())
}

impl TokenBucket {
    /// Returns the state at `now`. If the clock went back, the level stays as it was.
    #[inline(always)]
    pub(crate) fn roll(self, quota: &Quota, now: u64) -> Self {
        let mut at_now = self.in_ticks_of(quota);
        let tick = quota.by_tick();
        let whole = tick.multiple_below(now);
        if whole > at_now.filled_until {
            let ticks = tick.divide_unless_one(whole - at_now.filled_until);
            let refill = ticks.saturating_mul(quota.amount());
            at_now.level = at_now.level.saturating_sub(refill);
            at_now.filled_until = whole;
        }
        at_now
    }

    /// Prepares a state that is rolled to `now` for a charge of `cost`.
    #[inline(always)]
    fn before_taking(mut self, quota: &Quota, now: u64, cost: u64) -> Self {
        if cost > 0 && self.level < quota.amount() {
            // Almost full: part of the refill of the running tick would have been lost. So the refill
            // starts with the next tick, and no permit is available too early.
            let next = quota.by_tick().multiple_above(now);
            self.filled_until = self.filled_until.max(next);
        }
        self
    }

    /// Returns when a state that is rolled to `now` is full again.
    #[inline(always)]
    fn whole_at(self, quota: &Quota, now: u64) -> u64 {
        match self.level {
            0 => now,
            level => self.filled_until + time_to_refill(level, quota),
        }
    }

    /// Charges `cost` if there is room. Returns the state and its level after the charge, or the state at
    /// `now` if there is no room.
    #[inline(always)]
    pub(crate) fn attempt(self, quota: &Quota, now: u64, cost: u64) -> Result<(Self, u64), Self> {
        if self.tick_power != quota.tick_power() {
            return self.attempt_in_other_ticks(quota, now, cost);
        }
        let at_now = self.roll(quota, now);
        let weight = quota.by_window().value();
        let Some(room) = quota.burst().checked_sub(cost) else {
            return Err(at_now);
        };
        if at_now.level > room * weight {
            return Err(at_now);
        }
        // At most a full bucket is missing afterwards, so nothing overflows.
        let mut after = at_now.before_taking(quota, now, cost);
        after.level += cost * weight;
        Ok((after, after.level))
    }

    /// Converts a level to permits. A fraction of a permit counts as a whole one.
    #[inline(always)]
    pub(crate) const fn used_of(level: u64, quota: &Quota) -> u64 {
        quota.by_window().divide_up(level)
    }

    /// Returns what is used in a state that is rolled to `now`. A fraction of a permit counts as a whole
    /// one.
    #[inline(always)]
    pub(crate) fn used(self, quota: &Quota, _now: u64) -> u64 {
        if self.tick_power != quota.tick_power() {
            return self.used_in_debt(quota);
        }
        Self::used_of(self.level, quota)
    }

    /// Returns the usage of an allowed request.
    #[inline(always)]
    pub(crate) fn granted(self, quota: &Quota, now: u64, used: u64) -> Usage {
        allowed(quota, used, self.whole_at(quota, now))
    }

    /// Returns the usage of a denied request.
    #[inline(always)]
    pub(crate) fn refused(self, quota: &Quota, now: u64, cost: u64, used: u64) -> Usage {
        if self.tick_power != quota.tick_power() {
            return self.refused_in_debt(quota, now, cost, used);
        }
        if cost > quota.burst() {
            return never(quota, used, self.whole_at(quota, now));
        }
        let weight = quota.by_window().value();
        let missing = self.level + cost * weight - quota.burst() * weight;
        denied(
            quota,
            used,
            self.filled_until + time_to_refill(missing, quota),
        )
    }

    step!();

    #[inline]
    pub(crate) fn charge(&mut self, quota: &Quota, now: u64, cost: u64) {
        if let Some(factor) = self.refill_debt(quota, now) {
            // The tick of the debt divides the window as well.
            let weight = cost.saturating_mul(quota.by_window().value() / factor);
            self.level = self.level.saturating_add(weight).min(MAX_LEVEL);
        } else {
            *self = self.roll(quota, now).before_taking(quota, now, cost);
            let weight = cost.saturating_mul(quota.by_window().value());
            self.level = self.level.saturating_add(weight).min(MAX_LEVEL);
        }
    }

    /// Returns the ratio of the ticks if the level is too large for the tick of the quota.
    ///
    /// A debt under a large amount may exceed [`MAX_LEVEL`] in the finer tick of a small amount. It then
    /// stays in its own tick.
    #[inline]
    fn overflows(self, quota: &Quota) -> Option<u64> {
        if self.tick_power <= quota.tick_power() {
            return None;
        }
        let factor = 10_u64.pow(u32::from(self.tick_power - quota.tick_power()));
        (self.level.saturating_mul(factor) > MAX_LEVEL).then_some(factor)
    }

    /// Refills a debt that is too large for the tick of the quota, in its own tick. Returns the ratio of
    /// the ticks if it still is too large.
    fn refill_debt(&mut self, quota: &Quota, now: u64) -> Option<u64> {
        let factor = self.overflows(quota)?;
        let tick = quota.by_tick().value() * factor;
        let ticks = (now - now % tick).saturating_sub(self.filled_until) / tick;
        self.level = self
            .level
            .saturating_sub(ticks.saturating_mul(quota.amount()));
        self.filled_until += ticks * tick;
        self.overflows(quota)
    }

    /// [`attempt`](Self::attempt) for a level in another tick. A debt that is too large for the tick of the
    /// quota is many full buckets, so there is no room until it has shrunk.
    #[cold]
    fn attempt_in_other_ticks(
        mut self,
        quota: &Quota,
        now: u64,
        cost: u64,
    ) -> Result<(Self, u64), Self> {
        if self.refill_debt(quota, now).is_some() {
            return Err(self);
        }
        self.in_ticks_of(quota).attempt(quota, now, cost)
    }

    #[cold]
    fn used_in_debt(self, quota: &Quota) -> u64 {
        match self.overflows(quota) {
            Some(factor) => self.level.div_ceil(quota.by_window().value() / factor),
            None => quota.by_window().divide_up(self.in_ticks_of(quota).level),
        }
    }

    /// [`refused`](Self::refused) for a level in another tick.
    #[cold]
    fn refused_in_debt(self, quota: &Quota, now: u64, cost: u64, used: u64) -> Usage {
        let Some(factor) = self.overflows(quota) else {
            return self.in_ticks_of(quota).refused(quota, now, cost, used);
        };
        if cost > quota.burst() {
            return never(quota, used, self.debt_gone_at(quota, factor, 0));
        }
        let room = (quota.burst() - cost) * (quota.by_window().value() / factor);
        denied(quota, used, self.debt_gone_at(quota, factor, room))
    }

    /// Returns when at most `room` of a debt is left, in the tick of the quota.
    fn debt_gone_at(self, quota: &Quota, factor: u64, room: u64) -> u64 {
        let missing = u128::from(self.level.saturating_sub(room)) * u128::from(factor);
        let ticks = missing.div_ceil(u128::from(quota.amount()));
        let time = ticks * u128::from(quota.by_tick().value());
        self.filled_until
            .saturating_add(u64::try_from(time).unwrap_or(u64::MAX))
    }

    pub(crate) fn refund(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
        let in_debt = self.refill_debt(quota, now);
        if in_debt.is_none() {
            *self = self.roll(quota, now);
        }
        // Without the charge, the refill since might have been lost on a full bucket. So all of it,
        // including that of the running tick, counts as the refill of this charge.
        let tick = quota.by_tick();
        let ticks = tick.divide_up(now).saturating_sub(tick.divide(charged_at));
        let refilled = u128::from(ticks) * u128::from(quota.amount());
        // A cost beyond the largest count is cut off, so that the product is exact in a double as well.
        let cost = u128::from(cost.min(MAX_COUNT + 1));
        let weight = cost * u128::from(quota.by_window().value());
        let left = weight.saturating_sub(refilled) / u128::from(in_debt.unwrap_or(1));
        let left = u64::try_from(left).unwrap_or(u64::MAX);
        self.level = self.level.saturating_sub(left);
    }

    pub(crate) fn expires_at(self, quota: &Quota) -> u64 {
        if let Some(factor) = self.overflows(quota) {
            return self.debt_gone_at(quota, factor, 0);
        }
        self.in_ticks_of(quota).whole_at(quota, 0)
    }

    /// Converts the level to the tick of the quota, rounded up.
    #[inline(always)]
    fn in_ticks_of(self, quota: &Quota) -> Self {
        let power = quota.tick_power();
        if self.tick_power == power {
            return self;
        }
        let factor = 10_u64.pow(u32::from(power.abs_diff(self.tick_power)));
        let level = if power > self.tick_power {
            self.level.div_ceil(factor)
        } else {
            self.level.saturating_mul(factor).min(MAX_LEVEL)
        };
        Self {
            level,
            filled_until: quota.by_tick().multiple_above(self.filled_until),
            tick_power: power,
        }
    }
}
