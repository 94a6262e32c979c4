//! Sliding log: one entry per request. Never more than L in any window, and room again at the earliest instant.

use std::collections::VecDeque;

use super::{allowed, denied, never};
use crate::quota::{MAX_COUNT, Quota};
use crate::usage::Usage;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlidingLog {
    /// Oldest first; charges of one instant share an entry.
    entries: VecDeque<LogEntry>,
    total: u64,
    /// Instants of the first and the last entry; 0 if there are none. Copied here, so that a step on a
    /// log from which no entry has to leave reads none of the entries: that would be a cache miss.
    first_at: u64,
    last_at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogEntry {
    at: u64,
    cost: u64,
}

impl SlidingLog {
    pub(crate) fn assess(&self, quota: &Quota, now: u64, cost: u64) -> Usage {
        let window = quota.window_micros();
        let now = self.latest(now);
        let gone = self.gone(window, now);
        let used = self.total - self.costs(0..gone);
        let whole_at = || {
            if used > 0 { self.last_at + window } else { now }
        };
        if used.saturating_add(cost) <= quota.amount() {
            let whole_at = if cost > 0 { now + window } else { whole_at() };
            return allowed(quota, used + cost, whole_at);
        }
        if cost > quota.amount() {
            return never(quota, used, whole_at());
        }
        let mut left = used;
        let needed = self.entries.iter().skip(gone).find(|entry| {
            left -= entry.cost;
            left + cost <= quota.amount()
        });
        denied(quota, used, needed.map_or(now, |entry| entry.at + window))
    }

    pub(crate) fn charge(&mut self, quota: &Quota, now: u64, cost: u64) {
        let now = self.latest(now);
        self.forget(quota.window_micros(), now);
        let cost = cost.min(MAX_COUNT - self.total.min(MAX_COUNT));
        if cost == 0 {
            return;
        }
        self.total += cost;
        // Only recorded charges can overfill the log. They share the last entry, which leaves no
        // earlier than any of them should.
        let is_full = self.entries.len() as u64 >= quota.amount();
        let is_shared = is_full || self.last_at == now;
        match self.entries.back_mut() {
            Some(last) if is_shared => {
                last.at = now;
                last.cost += cost;
            }
            _ => self.entries.push_back(LogEntry { at: now, cost }),
        }
        self.last_at = now;
        if self.entries.len() == 1 {
            self.first_at = now;
        }
    }

    /// Updates the copies after entries were removed.
    fn copy_ends(&mut self) {
        let at = |entry: Option<&LogEntry>| entry.map_or(0, |entry| entry.at);
        self.first_at = at(self.entries.front());
        self.last_at = at(self.entries.back());
    }

    pub(crate) fn refund(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
        self.forget(quota.window_micros(), self.latest(now));
        let Ok(index) = self
            .entries
            .binary_search_by_key(&charged_at, |entry| entry.at)
        else {
            return;
        };
        let entry = &mut self.entries[index];
        let given = cost.min(entry.cost);
        entry.cost -= given;
        self.total -= given;
        if self.entries[index].cost == 0 {
            self.entries.remove(index);
            self.copy_ends();
        }
    }

    pub(crate) fn expires_at(&self, quota: &Quota) -> u64 {
        if self.entries.is_empty() {
            0
        } else {
            self.last_at + quota.window_micros()
        }
    }

    /// Returns `now`, or the instant of the last charge if the clock went back.
    fn latest(&self, now: u64) -> u64 {
        now.max(self.last_at)
    }

    /// Returns how many entries at the front have left the window.
    fn gone(&self, window: u64, now: u64) -> usize {
        if self.first_at + window > now {
            return 0;
        }
        // Usually one: walking is faster than searching.
        self.entries
            .iter()
            .take_while(|entry| entry.at + window <= now)
            .count()
    }

    fn costs(&self, range: std::ops::Range<usize>) -> u64 {
        self.entries.range(range).map(|entry| entry.cost).sum()
    }

    fn forget(&mut self, window: u64, now: u64) {
        let gone = self.gone(window, now);
        if gone > 0 {
            self.total -= self.costs(0..gone);
            self.entries.drain(..gone);
            self.copy_ends();
        }
        // Frees memory that a longer log has left behind.
        if self.entries.capacity() > 64 && self.entries.len() < self.entries.capacity() / 8 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }
}
