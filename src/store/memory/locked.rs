//! All the shards that a batch touches, locked together.

use super::MemoryStore;
use super::fingerprint::Fingerprint;
use super::table::Table;
use crate::batch::MAX_CHECKS;
use crate::sync::{MutexGuard, lock};

/// Guards over distinct shards, taken in ascending order. Every batch takes them so, hence no
/// two batches can wait for each other.
pub(super) struct Locked<'s> {
    guards: [Option<MutexGuard<'s, Table>>; MAX_CHECKS],
    /// Which guard each check's table is behind.
    guard_of: [u8; MAX_CHECKS],
}

impl<'s> Locked<'s> {
    #[inline]
    pub(super) fn new(store: &'s MemoryStore, prints: &[Fingerprint]) -> Self {
        let mut locked = Self {
            guards: [const { None }; MAX_CHECKS],
            guard_of: [0; MAX_CHECKS],
        };
        let shard_of = |index: usize| store.shard_of(prints[index]);
        // There are so few that choosing the next one is as quick as sorting.
        let mut taken = 0;
        let mut next = (0..prints.len()).map(shard_of).min();
        while let Some(shard) = next {
            locked.guards[usize::from(taken)] = Some(lock(&store.shards[shard].0));
            next = None;
            for index in 0..prints.len() {
                let other = shard_of(index);
                if other == shard {
                    locked.guard_of[index] = taken;
                } else if other > shard && next.is_none_or(|next| other < next) {
                    next = Some(other);
                }
            }
            taken += 1;
        }
        locked
    }

    /// The table of the check at `index`.
    #[inline]
    pub(super) fn table(&mut self, index: usize) -> &mut Table {
        match &mut self.guards[usize::from(self.guard_of[index])] {
            Some(table) => table,
            None => unreachable!("every check has a guard"),
        }
    }

    /// The instant at which everything here is decided: `now`, unless one of the tables has
    /// seen a later one. All of them have seen it from here on.
    #[inline]
    pub(super) fn instant(&mut self, now: u64) -> u64 {
        let tables = self.guards.iter().map_while(Option::as_ref);
        let latest = tables.map(|table| table.latest).fold(now, u64::max);
        for table in self.guards.iter_mut().map_while(Option::as_mut) {
            table.latest = latest;
        }
        latest
    }
}
