//! All the shards that a batch touches, locked together.

use super::MemoryStore;
use super::fingerprint::Fingerprint;
use super::table::Table;
use crate::batch::MAX_CHECKS;
use crate::sync::{MutexGuard, lock};

/// Guards over distinct shards, taken in ascending order. Every batch takes them so, hence no
/// two batches can wait for each other.
pub(super) struct Locked<'s> {
    guards: [Option<(usize, MutexGuard<'s, Table>)>; MAX_CHECKS],
}

impl<'s> Locked<'s> {
    #[inline]
    pub(super) fn new(store: &'s MemoryStore, prints: &[Fingerprint]) -> Self {
        let mut guards = [const { None }; MAX_CHECKS];
        if let [only] = prints {
            let shard = store.shard_of(*only);
            guards[0] = Some((shard, lock(&store.shards[shard].0)));
            return Self { guards };
        }
        let mut shards = [usize::MAX; MAX_CHECKS];
        for (shard, print) in shards.iter_mut().zip(prints) {
            *shard = store.shard_of(*print);
        }
        let shards = &mut shards[..prints.len()];
        shards.sort_unstable();
        let mut taken = 0;
        for (index, shard) in shards.iter().enumerate() {
            if index == 0 || shards[index - 1] != *shard {
                guards[taken] = Some((*shard, lock(&store.shards[*shard].0)));
                taken += 1;
            }
        }
        Self { guards }
    }

    /// The table of a shard that was among the fingerprints.
    #[inline]
    pub(super) fn table(&mut self, shard: usize) -> &mut Table {
        let mut guards = self.guards.iter_mut().flatten();
        match guards.find(|(number, _)| *number == shard) {
            Some((_, table)) => table,
            None => unreachable!("every shard of the batch was locked"),
        }
    }

    /// The instant at which everything here is decided: `now`, unless one of the tables has
    /// seen a later one. All of them have seen it from here on.
    #[inline]
    pub(super) fn instant(&mut self, now: u64) -> u64 {
        let tables = || self.guards.iter().flatten();
        let latest = tables().map(|(_, table)| table.latest).fold(now, u64::max);
        for (_, table) in self.guards.iter_mut().flatten() {
            table.latest = latest;
        }
        latest
    }
}
