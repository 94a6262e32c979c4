//! Two counters: `current + previous × (1 − elapsed / W)`.
//!
//! Everything is multiplied by the window in ticks, so that no fraction is ever rounded: a
//! request fits while `(current + cost) × W + previous × (W − elapsed) ≤ L × W`.

use super::{allowed, denied, never};
use crate::decision::Usage;
use crate::quota::Quota;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlidingWindow {
    /// Where the current window starts.
    pub(crate) start: u64,
    pub(crate) current: u64,
    pub(crate) previous: u64,
}

impl SlidingWindow {
    /// The state as it stands at `now`. A clock that went back finds the window it left.
    #[inline]
    pub(crate) fn roll(self, quota: &Quota, now: u64) -> Self {
        let window = quota.window_micros();
        if now < self.start.saturating_add(window) {
            return self;
        }
        let start = now - now % window;
        let adjacent = start == self.start + window;
        Self {
            start,
            current: 0,
            previous: if adjacent { self.current } else { 0 },
        }
    }

    /// The step: the state after it, and what is said.
    #[inline(always)]
    pub(crate) fn step(self, quota: &Quota, now: u64, cost: u64) -> (Self, Usage) {
        let at_now = self.roll(quota, now);
        let most = quota.most_counted();
        let (current, previous) = (at_now.current.min(most), at_now.previous.min(most));
        let window = quota.by_window();
        let elapsed = quota.by_tick().divide(now.saturating_sub(at_now.start));
        let weighted = current * window.value() + previous * (window.value() - elapsed);
        let used = window.divide_up(weighted);
        let end = at_now.start + quota.window_micros();
        if used.saturating_add(cost) <= quota.amount() {
            let after = Self {
                current: at_now.current + cost,
                ..at_now
            };
            return (after, allowed(quota, used + cost, end));
        }
        if cost > quota.amount() {
            return (at_now, never(quota, used, end));
        }
        // There is room while the previous window fades, or, failing that, while the current
        // one does.
        let room = quota.amount() - cost;
        let (from, counted, fading) = if current <= room {
            (at_now.start, current, previous)
        } else {
            (end, 0, current)
        };
        let faded = window.value() - (room - counted) * window.value() / fading.max(1);
        (
            at_now,
            denied(quota, used, from + faded * quota.by_tick().value()),
        )
    }

    #[inline]
    pub(crate) fn charge(&mut self, quota: &Quota, now: u64, cost: u64) {
        *self = self.roll(quota, now);
        // Never less than it was: under a smaller amount the counter may be past its largest
        // number already.
        let most = quota.most_counted().max(self.current);
        self.current = self.current.saturating_add(cost).min(most);
    }

    pub(crate) fn give_back(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
        *self = self.roll(quota, now);
        let window = quota.window_micros();
        let charged_in = charged_at - charged_at % window;
        if charged_in == self.start {
            self.current = self.current.saturating_sub(cost);
        } else if charged_in + window == self.start {
            self.previous = self.previous.saturating_sub(cost);
        }
    }

    pub(crate) fn expires_at(self, quota: &Quota) -> u64 {
        let windows = match (self.current, self.previous) {
            (0, 0) => return 0,
            (0, _) => 1,
            _ => 2,
        };
        self.start + windows * quota.window_micros()
    }
}
