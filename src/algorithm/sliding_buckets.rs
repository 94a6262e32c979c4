//! Sliding buckets: the window in n buckets. Every bucket that overlaps the last W counts in full.
//!
//! So there are never more than L in any W, and capacity is freed up to one bucket late. If n does
//! not divide the window, the buckets are rounded up to a microsecond.

use super::{allowed, denied, never};
use crate::quota::{MAX_COUNT, Quota};
use crate::usage::Usage;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlidingBuckets {
    /// Ring buffer: bucket `i` since the epoch is at `i % counts.len()`. Empty until the first charge.
    counts: Box<[u64]>,
    /// Number of the latest bucket since the epoch.
    newest: u64,
    total: u64,
}

/// Returns the length of the ring: one bucket more than fit into the window, because the oldest and the
/// newest overlap it in part.
fn ring(quota: &Quota) -> usize {
    let ring = (quota.window_micros() - 1) / quota.bucket_micros() + 2;
    usize::try_from(ring).unwrap_or(usize::MAX)
}

impl SlidingBuckets {
    /// Returns whether the ring has the length that the quota needs.
    pub(crate) fn is_for(&self, quota: &Quota) -> bool {
        quota.buckets() > 0 && (self.counts.is_empty() || self.counts.len() == ring(quota))
    }

    pub(crate) fn assess(&self, quota: &Quota, now: u64, cost: u64) -> Usage {
        let now = self.latest(quota, now);
        let first = first_alive(quota, now);
        let gone: u64 = (self.oldest()..first.min(self.newest + 1))
            .map(|i| self.count(i))
            .sum();
        let used = self.total - gone;
        let mut alive = first.max(self.oldest())..self.newest + 1;
        let whole_at = || {
            let last = alive.clone().rev().find(|i| self.count(*i) > 0);
            last.map_or(now, |i| leaves_at(quota, i))
        };
        if used.saturating_add(cost) <= quota.amount() {
            let whole_at = match cost {
                0 => whole_at(),
                _ => leaves_at(quota, now / quota.bucket_micros()),
            };
            return allowed(quota, used + cost, whole_at);
        }
        if cost > quota.amount() {
            return never(quota, used, whole_at());
        }
        let mut left = used;
        let needed = alive.find(|i| {
            left -= self.count(*i);
            left + cost <= quota.amount()
        });
        denied(quota, used, needed.map_or(now, |i| leaves_at(quota, i)))
    }

    pub(crate) fn charge(&mut self, quota: &Quota, now: u64, cost: u64) {
        self.roll(quota, now);
        if self.counts.is_empty() {
            self.counts = vec![0; ring(quota)].into_boxed_slice();
        }
        let cost = cost.min(MAX_COUNT - self.total);
        self.total += cost;
        *self.count_mut(self.newest) += cost;
    }

    pub(crate) fn refund(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
        self.roll(quota, now);
        let bucket = charged_at / quota.bucket_micros();
        if (self.oldest()..=self.newest).contains(&bucket) {
            let given = cost.min(self.count(bucket));
            *self.count_mut(bucket) -= given;
            self.total -= given;
        }
    }

    pub(crate) fn expires_at(&self, quota: &Quota) -> u64 {
        if self.total == 0 {
            0
        } else {
            leaves_at(quota, self.newest)
        }
    }

    /// Advances the ring to `now` and drops buckets that have left the window.
    fn roll(&mut self, quota: &Quota, now: u64) {
        let gone = self.oldest()..first_alive(quota, now).min(self.newest + 1);
        for i in gone {
            self.total -= std::mem::take(self.count_mut(i));
        }
        let newest = now / quota.bucket_micros();
        if newest <= self.newest {
            return;
        }
        let steps = newest - self.newest;
        if steps >= self.counts.len() as u64 {
            self.counts.fill(0);
            self.total = 0;
        } else {
            for i in self.newest + 1..=newest {
                self.total -= std::mem::take(self.count_mut(i));
            }
        }
        self.newest = newest;
    }

    /// Returns `now`, or the start of the newest bucket if the clock went back.
    fn latest(&self, quota: &Quota, now: u64) -> u64 {
        now.max(self.newest * quota.bucket_micros())
    }

    fn oldest(&self) -> u64 {
        (self.newest + 1).saturating_sub(self.counts.len() as u64)
    }

    fn slot(&self, bucket: u64) -> usize {
        usize::try_from(bucket % self.counts.len() as u64).unwrap_or_default()
    }

    fn count(&self, bucket: u64) -> u64 {
        self.counts[self.slot(bucket)]
    }

    fn count_mut(&mut self, bucket: u64) -> &mut u64 {
        let slot = self.slot(bucket);
        &mut self.counts[slot]
    }
}

/// Returns when the last instant of a bucket leaves the window.
fn leaves_at(quota: &Quota, bucket: u64) -> u64 {
    (bucket + 1) * quota.bucket_micros() - 1 + quota.window_micros()
}

/// Returns the oldest bucket that is in the window at `now`.
fn first_alive(quota: &Quota, now: u64) -> u64 {
    (now + 1).saturating_sub(quota.window_micros()) / quota.bucket_micros()
}
