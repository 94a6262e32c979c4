//! A bucket of permits that refills steadily: at most `burst + L · t / W` in any time t.
//!
//! The state is what is missing from a full bucket, in permits × ticks: a permit weighs W, and
//! every tick refills L. Both are whole numbers, while an interval between two permits (1/7 of
//! a second) is not.

use super::{allowed, denied, never, step};
use crate::quota::{MAX_COUNT, Quota};
use crate::usage::Usage;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenBucket {
    /// What is missing, in permits × ticks; at most [`MAX_LEVEL`].
    pub(crate) level: u64,
    /// Until when refilling is accounted for: a multiple of the tick.
    pub(crate) filled_until: u64,
    /// The tick that `level` is counted in. An amount that changes may change the tick.
    pub(crate) tick_power: u8,
}

/// A level stops here: at a debt of at least four full buckets.
pub(crate) const MAX_LEVEL: u64 = (1 << 48) - 1;

/// How long it takes to refill what is missing, in microseconds.
#[inline]
fn time_to_refill(missing: u64, quota: &Quota) -> u64 {
    let ticks = quota.by_amount().divide_up(missing);
    ticks.saturating_mul(quota.by_tick().value())
}

impl TokenBucket {
    /// The state as it stands at `now`. A clock that went back finds the level it left.
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

    /// A state that stands at `now`, from which `cost` is about to be taken.
    #[inline(always)]
    fn before_taking(mut self, quota: &Quota, now: u64, cost: u64) -> Self {
        if cost > 0 && self.level < quota.amount() {
            // All but full: part of the running tick's refill would have been lost. So the
            // refill starts with the next tick, and no permit comes before its time.
            let next = quota.by_tick().multiple_above(now);
            self.filled_until = self.filled_until.max(next);
        }
        self
    }

    /// When a state that stands at `now` is whole again.
    #[inline(always)]
    fn whole_at(self, quota: &Quota, now: u64) -> u64 {
        match self.level {
            0 => now,
            level => self.filled_until + time_to_refill(level, quota),
        }
    }

    /// The state with `cost` taken from it, and its level then; or, if there is not as much, as it
    /// stands at `now`.
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
        // What is missing then is at most a full bucket, so nothing overflows.
        let mut after = at_now.before_taking(quota, now, cost);
        after.level += cost * weight;
        Ok((after, after.level))
    }

    /// What is used, by what an [attempt](Self::attempt) says. Part of a permit counts as a whole.
    #[inline(always)]
    pub(crate) const fn used_of(level: u64, quota: &Quota) -> u64 {
        quota.by_window().divide_up(level)
    }

    /// What is used in a state that stands at `now`. Part of a permit counts as a whole.
    #[inline(always)]
    pub(crate) fn used(self, quota: &Quota, _now: u64) -> u64 {
        if self.tick_power != quota.tick_power() {
            return self.used_in_debt(quota);
        }
        Self::used_of(self.level, quota)
    }

    /// What is said when there was room.
    #[inline(always)]
    pub(crate) fn granted(self, quota: &Quota, now: u64, used: u64) -> Usage {
        allowed(quota, used, self.whole_at(quota, now))
    }

    /// What is said when there was none.
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
            // The tick that the debt is counted in divides the window, too.
            let weight = cost.saturating_mul(quota.by_window().value() / factor);
            self.level = self.level.saturating_add(weight).min(MAX_LEVEL);
        } else {
            *self = self.roll(quota, now).before_taking(quota, now, cost);
            let weight = cost.saturating_mul(quota.by_window().value());
            self.level = self.level.saturating_add(weight).min(MAX_LEVEL);
        }
    }

    /// A debt under a large amount may be more than a small amount's ticks can count. Then it
    /// stays in its own ticks, each of which is this many of the quota's.
    #[inline]
    fn overflows(self, quota: &Quota) -> Option<u64> {
        if self.tick_power <= quota.tick_power() {
            return None;
        }
        let factor = 10_u64.pow(u32::from(self.tick_power - quota.tick_power()));
        (self.level.saturating_mul(factor) > MAX_LEVEL).then_some(factor)
    }

    /// Refills a debt that the quota cannot count, in its own ticks. Says if it still cannot.
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

    /// A level that was counted under an amount with another tick. A debt that the quota cannot
    /// count is many buckets, so there is no room, unless it has shrunk in the meantime.
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

    /// What is said about a debt that the quota cannot count.
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

    /// When no more than `room` of a debt is left, to the quota's tick.
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
        // Had the charge not been made, the refill since might have been lost on a full
        // bucket: so all of it, the running tick's too, is held to have refilled this charge.
        let tick = quota.by_tick();
        let ticks = tick.divide_up(now).saturating_sub(tick.divide(charged_at));
        let refilled = u128::from(ticks) * u128::from(quota.amount());
        // More than any counter holds is as good as a little more, also for those who count in
        // doubles.
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

    /// The same level in the quota's tick, rounded up.
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
