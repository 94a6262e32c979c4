//! Shards of the store, and locks over several of them.

use std::thread;

use super::MemoryStore;
use super::table::CellTable;
use crate::store::subject_hash::Fingerprint;
use crate::sync::{Mutex, MutexGuard, lock};

/// Aligned to a cache line, so that threads on neighbouring shards do not share one.
#[repr(align(64))]
pub(super) struct Shard(pub(super) Mutex<CellTable>);

/// Locks on the distinct shards of up to `N` checks.
///
/// Locks are taken in ascending order of the shards, so no two batches can wait for each other.
pub(super) struct LockedShards<'s, const N: usize> {
    guards: [Option<MutexGuard<'s, CellTable>>; N],
    /// For each check, the guard of its shard.
    guard_of: [u8; N],
}

impl<'s, const N: usize> LockedShards<'s, N> {
    /// Locks the shards of these fingerprints, of which there are at most `N`.
    #[inline(always)]
    pub(super) fn lock(store: &'s MemoryStore, prints: &[Fingerprint]) -> Self {
        let mut locked = Self {
            guards: [const { None }; N],
            guard_of: [0; N],
        };
        // No shard has the number `usize::MAX`.
        let mut shards = [usize::MAX; N];
        for (shard, print) in shards.iter_mut().zip(prints) {
            *shard = store.shard_of(*print);
        }
        let mut next = shards
            .iter()
            .fold(usize::MAX, |least, shard| least.min(*shard));
        for (number, guard) in (0_u8..).zip(&mut locked.guards) {
            let Some(shard) = store.shards.get(next) else {
                break;
            };
            *guard = Some(lock(&shard.0));
            let mut following = usize::MAX;
            for (guard_of, other) in locked.guard_of.iter_mut().zip(shards) {
                if other == next {
                    *guard_of = number;
                } else if other > next {
                    following = following.min(other);
                }
            }
            next = following;
        }
        locked
    }

    /// Returns the latest of `now` and the instants that these tables have seen.
    #[inline(always)]
    pub(super) fn latest(&self, now: u64) -> u64 {
        let tables = self.guards.iter().map_while(Option::as_ref);
        tables.map(|table| table.latest).fold(now, u64::max)
    }

    /// Calls `change` with each table.
    #[inline(always)]
    pub(super) fn each(&mut self, mut change: impl FnMut(&mut CellTable)) {
        for table in self.guards.iter_mut().map_while(Option::as_mut) {
            change(table);
        }
    }

    /// Returns the table of the check at `index`.
    #[inline(always)]
    pub(super) fn table(&mut self, index: usize) -> &mut CellTable {
        match &mut self.guards[usize::from(self.guard_of[index])] {
            Some(table) => table,
            None => unreachable!("each check has a guard"),
        }
    }
}

/// Returns the number of shards: enough for little lock contention and short rebuilds, and few enough
/// that a small store allocates little.
pub(super) fn shards_for(capacity: usize) -> usize {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let wanted = (threads * 16).max(capacity / 16_384).min(capacity / 512);
    wanted.clamp(1, 4_096).next_power_of_two()
}
