//! A bucket of permits that refills steadily: at most `burst + L · t / W` in any time t.
//!
//! The state is what is missing from a full bucket, in permits × ticks: a permit weighs W, and
//! every tick refills L. Both are whole numbers, while an interval between two permits (1/7 of
//! a second) is not.

use super::settle;
use crate::decision::Usage;
use crate::quota::Quota;

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
    missing
        .div_ceil(quota.amount())
        .saturating_mul(quota.tick_micros())
}

impl TokenBucket {
    /// The state as it stands at `now`. A clock that went back finds the level it left.
    #[inline]
    pub(crate) fn roll(self, quota: &Quota, now: u64) -> Self {
        let mut at_now = self.in_ticks_of(quota);
        let tick = quota.tick_micros();
        let whole = now - now % tick;
        if whole > at_now.filled_until {
            let ticks = (whole - at_now.filled_until) / tick;
            at_now.level = at_now
                .level
                .saturating_sub(ticks.saturating_mul(quota.amount()));
            at_now.filled_until = whole;
        }
        if at_now.level == 0 {
            // A full bucket starts to refill at the next tick after it was taken from, not at
            // the tick before: no permit comes earlier than its time.
            at_now.filled_until = now.next_multiple_of(tick);
        }
        at_now
    }

    #[inline]
    pub(crate) fn assess(self, quota: &Quota, now: u64, cost: u64) -> Usage {
        let at_now = self.roll(quota, now);
        let weight = quota.window_ticks();
        let used = at_now.level.div_ceil(weight);
        let fits = used.saturating_add(cost) <= quota.burst();
        let level = |cost| at_now.level + cost * weight;
        let refilled = |missing: u64| match missing {
            0 => now,
            _ => at_now.filled_until + time_to_refill(missing, quota),
        };
        let reset = || refilled(level(if fits { cost } else { 0 }));
        let retry = || refilled(level(cost) - quota.burst() * weight);
        settle(quota, used, cost, fits, reset, retry)
    }

    #[inline]
    pub(crate) fn charge(&mut self, quota: &Quota, now: u64, cost: u64) {
        *self = self.roll(quota, now);
        let weight = cost.saturating_mul(quota.window_ticks());
        self.level = self.level.saturating_add(weight).min(MAX_LEVEL);
    }

    pub(crate) fn give_back(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
        *self = self.roll(quota, now);
        let tick = quota.tick_micros();
        // Had the charge not been made, the refill since might have been lost on a full
        // bucket: so all of it is held to have refilled this charge.
        let ticks = now.div_ceil(tick).saturating_sub(charged_at / tick);
        let refilled = ticks.saturating_mul(quota.amount());
        let weight = cost.saturating_mul(quota.window_ticks());
        self.level = self.level.saturating_sub(weight.saturating_sub(refilled));
    }

    pub(crate) fn expires_at(self, quota: &Quota) -> u64 {
        let this = self.in_ticks_of(quota);
        match this.level {
            0 => 0,
            level => this.filled_until + time_to_refill(level, quota),
        }
    }

    /// The same level in the quota's tick, rounded up.
    #[inline]
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
            filled_until: self.filled_until.next_multiple_of(quota.tick_micros()),
            tick_power: power,
        }
    }
}
