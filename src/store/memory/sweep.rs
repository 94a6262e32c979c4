//! Removal of expired cells, a few with each request.

use super::MemoryStore;
use super::shards::LockedShards;
use super::table::{CellIndex, CellTable};
use crate::sync::{Ordering, try_lock};

impl MemoryStore {
    /// Sweeps a share of each table whose debt is due. Called after all cells are written, because
    /// sweeping moves cells.
    #[cold]
    pub(super) fn sweep_due<const N: usize>(
        &self,
        locked: &mut LockedShards<'_, N>,
        checks: usize,
    ) {
        for index in 0..checks {
            let table = locked.table(index);
            if table.is_sweep_due() {
                self.sweep_share(table);
            }
        }
    }

    /// Sweeps a share of this table and of another one, so that tables without requests are swept too.
    fn sweep_share(&self, table: &mut CellTable) {
        let mut dropped = table.sweep_share();
        let other = self.next_to_sweep.fetch_add(1, Ordering::Relaxed) % self.shards.len();
        // A table that is locked, perhaps by this batch, is in use and swept by its own requests.
        if let Some(mut other) = try_lock(&self.shards[other].0) {
            other.latest = other.latest.max(table.latest);
            dropped += other.sweep_share();
        }
        self.subtract_keys(dropped);
    }
}

impl CellTable {
    /// Adds sweeping to be done. Returns whether a share of it is due.
    #[inline]
    pub(super) fn add_sweep_debt(&mut self, work: u32) -> bool {
        self.sweep_debt += work;
        self.is_sweep_due()
    }

    #[inline]
    pub(super) fn is_sweep_due(&self) -> bool {
        // In the loom model so small that the model includes sweeping.
        const DUE: u32 = if cfg!(tollgate_loom) { 2 } else { 512 };
        self.sweep_debt >= DUE
    }

    /// Sweeps the next few buckets. Returns how many cells were dropped.
    pub(super) fn sweep_share(&mut self) -> usize {
        const SHARE: usize = 16;
        self.sweep_debt = 0;
        let before = self.len;
        for _ in 0..SHARE.min(self.buckets.len()) {
            let at = self.next_to_sweep as usize;
            self.sweep_bucket(at);
            // No table has 2^32 buckets.
            self.next_to_sweep = u32::try_from(self.after(at)).unwrap_or(0);
            if self.next_to_sweep == 0 {
                self.shrink();
                break;
            }
        }
        before - self.len
    }

    /// Drops all expired cells. Returns how many there were.
    pub(super) fn sweep_all(&mut self) -> usize {
        let dropped = self.drop_expired();
        self.shrink();
        dropped
    }

    pub(super) fn drop_expired(&mut self) -> usize {
        let before = self.len;
        for bucket in 0..self.buckets.len() {
            self.sweep_bucket(bucket);
        }
        before - self.len
    }

    fn sweep_bucket(&mut self, bucket: usize) {
        // Closing a gap may move another expired cell into the bucket.
        let expired = |table: &Self| {
            let cells = &table.buckets[bucket].cells;
            cells
                .iter()
                .position(|cell| !cell.is_empty() && table.has_expired(cell, table.latest))
        };
        while let Some(slot) = expired(self) {
            self.remove(CellIndex::new(bucket, slot));
        }
    }

    /// Frees memory that a flood has left behind.
    fn shrink(&mut self) {
        const SMALL: usize = 64;
        if self.buckets.len() > SMALL && self.len < self.room() / 8 {
            self.rebuild(self.len * 2);
            self.heap.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::algorithm::fixed_window::FixedWindow;
    use crate::key::{Counter, Subject};
    use crate::store::memory::cell::InlineState as _;
    use crate::store::memory::table::{Common, ProbeResult};
    use crate::store::subject_hash::SubjectHasher;

    fn add(table: &mut CellTable, number: u64, end: u64) {
        let counter = Counter::new("any", "9/hour".parse().expect("valid")).expect("valid");
        let print = SubjectHasher::from_keys(1, 2).fingerprint(&Subject::from(number));
        let state = FixedWindow { end, count: 1 }.pack(counter.quota(), false);
        table.reserve(1);
        let ProbeResult::Vacant(bucket) = table.find_or_vacant(print.tag(&counter)) else {
            panic!("{number} is in the table");
        };
        table.insert(bucket, print.tag(&counter), state);
    }

    /// With windows that end soon, nearly every new counter rebuilt the table, each time with too
    /// little room for the next.
    #[test]
    fn counters_that_expire_soon_do_not_cause_rebuilds() {
        let mut table = CellTable::new(Arc::new(Common {
            limit: 1_000_000,
            ..Common::default()
        }));
        for number in 0..100 {
            add(&mut table, number, 10);
        }
        let buckets = table.buckets.as_ptr();
        for number in 100..10_000 {
            table.latest = number / 10;
            add(&mut table, number, number / 10 + 5);
        }
        assert!(table.len() < 110);
        assert_eq!(table.buckets.as_ptr(), buckets);
    }
}
