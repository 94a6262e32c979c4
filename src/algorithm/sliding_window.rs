//! Two counters: `used = current + ⌊previous × (W − elapsed − 1) / W⌋`, with the window `W` and the
//! elapsed time in ticks. A request of cost `c` fits while `used + c ≤ L`.
//!
//! The running tick counts as elapsed, and the fraction is dropped. A full window therefore leaves room
//! for one request as soon as the next window starts. Bounds that follow, with `t` in whole ticks:
//!
//! - At most `L` per aligned window. A span of two windows that ends `e + 1 ≤ t` ticks into the second
//!   one has at most `P` from the first and `L − ⌊P (W − e − 1) / W⌋` from the second. With `P ≤ L`,
//!   the sum is at most `L + ⌈L t / W⌉`.
//! - While no counter exceeds `L`, a request of cost `c` waits at most `⌊(c − 1) W / L⌋` ticks beyond
//!   the end of the window.

use super::{allowed, denied, never, step};
use crate::quota::Quota;
use crate::usage::Usage;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlidingWindow {
    /// Start of the current window.
    pub(crate) start: u64,
    pub(crate) current: u64,
    pub(crate) previous: u64,
}

impl SlidingWindow {
    /// Returns the state at `now`. If the clock went back, the last window stays current.
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

    /// Returns both counters, each cut off at the largest count. The amount may have been larger when they
    /// were charged.
    #[inline(always)]
    fn counted(self, quota: &Quota) -> (u64, u64) {
        let most = quota.most_counted();
        (self.current.min(most), self.previous.min(most))
    }

    /// Returns what is used in a state that is rolled to `now`, times the window in ticks.
    ///
    /// The weight is lowered by the largest fraction of a permit: `⌊n / W⌋ = ⌈(n − (W − 1)) / W⌉`. So
    /// rounding it up, as the other algorithms do, drops the fraction.
    #[inline(always)]
    pub(crate) fn weighted(self, quota: &Quota, now: u64) -> u64 {
        let (current, previous) = self.counted(quota);
        let window = quota.by_window().value();
        let elapsed = quota
            .by_tick()
            .divide_unless_one(now.saturating_sub(self.start));
        // A rolled state is inside of its window, so `elapsed < window`. Both products are at most
        // 2^51, see `Quota::most_counted`.
        let weight = current * window + previous * (window - elapsed - 1);
        weight.saturating_sub(window - 1)
    }

    /// Charges `cost` if there is room. Returns the state and its weight after the charge, or the state at
    /// `now` if there is no room.
    #[inline(always)]
    pub(crate) fn attempt(self, quota: &Quota, now: u64, cost: u64) -> Result<(Self, u64), Self> {
        let at_now = self.roll(quota, now);
        let Some(room) = quota.amount().checked_sub(cost) else {
            return Err(at_now);
        };
        // The room is a whole number, so the weight need not be rounded up to compare them.
        let (weighted, window) = (at_now.weighted(quota, now), quota.by_window().value());
        if weighted > room * window {
            return Err(at_now);
        }
        let after = Self {
            current: at_now.current + cost,
            ..at_now
        };
        Ok((after, weighted + cost * window))
    }

    /// Converts the weight that [`attempt`](Self::attempt) returns to permits.
    #[inline(always)]
    pub(crate) const fn used_of(weighted: u64, quota: &Quota) -> u64 {
        quota.by_window().divide_up(weighted)
    }

    /// Returns what is used in a state that is rolled to `now`.
    #[inline(always)]
    pub(crate) fn used(self, quota: &Quota, now: u64) -> u64 {
        Self::used_of(self.weighted(quota, now), quota)
    }

    /// Returns the usage of an allowed request.
    #[inline(always)]
    pub(crate) fn granted(self, quota: &Quota, _now: u64, used: u64) -> Usage {
        allowed(quota, used, self.start + quota.window_micros())
    }

    /// Returns the usage of a denied request.
    #[inline(always)]
    pub(crate) fn refused(self, quota: &Quota, _now: u64, cost: u64, used: u64) -> Usage {
        let end = self.start + quota.window_micros();
        if cost > quota.amount() {
            return never(quota, used, end);
        }
        // Room comes as the previous window fades. If the current window alone has too much, it has to
        // become the previous one first.
        let room = quota.amount() - cost;
        let (current, previous) = self.counted(quota);
        let (from, counted, fading) = if current <= room {
            (self.start, current, previous)
        } else {
            (end, 0, current)
        };
        let window = quota.by_window().value();
        // The first `elapsed` with `fading × (W − elapsed − 1) < (room − counted + 1) × W`. It exists in
        // the window: `fading` is 0 in the last tick, and here it is more than there is room for.
        let left = ((room - counted + 1) * window - 1) / fading.max(1);
        denied(
            quota,
            used,
            from + (window - 1 - left) * quota.by_tick().value(),
        )
    }

    step!();

    #[inline]
    pub(crate) fn charge(&mut self, quota: &Quota, now: u64, cost: u64) {
        *self = self.roll(quota, now);
        // Never lowers the counter: under a smaller amount it may exceed the largest count already.
        let most = quota.most_counted().max(self.current);
        self.current = self.current.saturating_add(cost).min(most);
    }

    pub(crate) fn refund(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
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
