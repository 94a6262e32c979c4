//! One counter per aligned window. At most L per window, at most 2 L across a boundary.

use super::{allowed, denied, never};
use crate::decision::Usage;
use crate::quota::{MAX_COUNT, Quota};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FixedWindow {
    /// Where the window ends; 0 if nothing was ever counted.
    pub(crate) end: u64,
    pub(crate) count: u64,
}

impl FixedWindow {
    /// The state as it stands at `now`. A clock that went back finds the window it left.
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

    /// The step: the state after it, and what is said.
    #[inline(always)]
    pub(crate) fn step(self, quota: &Quota, now: u64, cost: u64) -> (Self, Usage) {
        let at_now = self.roll(quota, now);
        let Self { end, count } = at_now;
        if count.saturating_add(cost) <= quota.amount() {
            let count = count + cost;
            return (Self { end, count }, allowed(quota, count, end));
        }
        if cost > quota.amount() {
            return (at_now, never(quota, count, end));
        }
        (at_now, denied(quota, count, end))
    }

    #[inline]
    pub(crate) fn charge(&mut self, quota: &Quota, now: u64, cost: u64) {
        *self = self.roll(quota, now);
        self.count = self.count.saturating_add(cost).min(MAX_COUNT);
    }

    pub(crate) fn give_back(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
        *self = self.roll(quota, now);
        if quota.window().end_after(charged_at) == self.end {
            self.count = self.count.saturating_sub(cost);
        }
    }

    pub(crate) fn expires_at(self, _quota: &Quota) -> u64 {
        if self.count == 0 { 0 } else { self.end }
    }
}
