//! Fixed window: one counter per aligned window. At most L per window, at most 2 L across a boundary.

use super::{allowed, denied, never, step};
use crate::quota::{MAX_COUNT, Quota};
use crate::usage::Usage;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FixedWindow {
    /// End of the window; 0 if the counter was never charged.
    pub(crate) end: u64,
    pub(crate) count: u64,
}

impl FixedWindow {
    /// Returns the state at `now`. If the clock went back, the last window stays current.
    #[inline]
    pub(crate) fn roll(self, quota: &Quota, now: u64) -> Self {
        if now < self.end {
            return self;
        }
        Self {
            end: quota.window().end_after(now),
            count: 0,
        }
    }

    /// Charges `cost` if there is room. Returns the state and the count after the charge, or the state at
    /// `now` if there is no room.
    #[inline(always)]
    pub(crate) fn attempt(self, quota: &Quota, now: u64, cost: u64) -> Result<(Self, u64), Self> {
        let at_now = self.roll(quota, now);
        let Self { end, count } = at_now;
        if count.saturating_add(cost) > quota.amount() {
            return Err(at_now);
        }
        let count = count + cost;
        Ok((Self { end, count }, count))
    }

    /// Converts the weight that [`attempt`](Self::attempt) returns to permits.
    #[inline(always)]
    pub(crate) const fn used_of(count: u64, _quota: &Quota) -> u64 {
        count
    }

    /// Returns what is used in a state that is rolled to `now`.
    #[inline(always)]
    pub(crate) fn used(self, _quota: &Quota, _now: u64) -> u64 {
        self.count
    }

    /// Returns the usage of an allowed request.
    #[inline(always)]
    pub(crate) fn granted(self, quota: &Quota, _now: u64, used: u64) -> Usage {
        allowed(quota, used, self.end)
    }

    /// Returns the usage of a denied request.
    #[inline(always)]
    pub(crate) fn refused(self, quota: &Quota, _now: u64, cost: u64, used: u64) -> Usage {
        if cost > quota.amount() {
            return never(quota, used, self.end);
        }
        denied(quota, used, self.end)
    }

    step!();

    #[inline]
    pub(crate) fn charge(&mut self, quota: &Quota, now: u64, cost: u64) {
        *self = self.roll(quota, now);
        self.count = self.count.saturating_add(cost).min(MAX_COUNT);
    }

    pub(crate) fn refund(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
        *self = self.roll(quota, now);
        if quota.window().end_after(charged_at) == self.end {
            self.count = self.count.saturating_sub(cost);
        }
    }

    pub(crate) fn expires_at(self, _quota: &Quota) -> u64 {
        if self.count == 0 { 0 } else { self.end }
    }
}
