//! All the shards that a batch touches, locked together.

use super::MemoryStore;
use super::table::Table;
use crate::batch::MAX_CHECKS;
use crate::store::fingerprint::Fingerprint;
use crate::sync::{MutexGuard, lock};

/// The tables of a batch, behind their locks.
pub(super) trait Tables {
    /// The table of the check at `index`.
    fn table(&mut self, index: usize) -> &mut Table;
}

/// Guards over distinct shards, taken in ascending order. Every batch takes them so, hence no
/// two batches can wait for each other.
pub(super) struct Locked<'s> {
    guards: [Option<MutexGuard<'s, Table>>; MAX_CHECKS],
    /// Which guard each check's table is behind.
    guard_of: [u8; MAX_CHECKS],
}

impl<'s> Locked<'s> {
    pub(super) const fn none() -> Self {
        Self {
            guards: [const { None }; MAX_CHECKS],
            guard_of: [0; MAX_CHECKS],
        }
    }

    /// Locks the shards of these fingerprints.
    #[inline]
    pub(super) fn lock(&mut self, store: &'s MemoryStore, prints: &[Fingerprint]) {
        let mut shards = [0; MAX_CHECKS];
        let (mut low, mut high) = (usize::MAX, 0);
        for (shard, print) in shards.iter_mut().zip(prints) {
            *shard = store.shard_of(*print);
            low = low.min(*shard);
            high = high.max(*shard);
        }
        let shards = &shards[..prints.len()];
        // Most batches are about one or two subjects.
        if !shards.iter().all(|shard| *shard == low || *shard == high) {
            return self.lock_several(store, shards);
        }
        if low <= high {
            self.guards[0] = Some(lock(&store.shards[low].0));
        }
        if low < high {
            self.guards[1] = Some(lock(&store.shards[high].0));
            for (guard_of, shard) in self.guard_of.iter_mut().zip(shards) {
                *guard_of = u8::from(*shard == high);
            }
        }
    }

    #[cold]
    fn lock_several(&mut self, store: &'s MemoryStore, shards: &[usize]) {
        let mut next = shards.iter().min();
        for (number, guard) in (0_u8..).zip(&mut self.guards) {
            let Some(shard) = next else {
                return;
            };
            *guard = Some(lock(&store.shards[*shard].0));
            for (guard_of, other) in self.guard_of.iter_mut().zip(shards) {
                if other == shard {
                    *guard_of = number;
                }
            }
            next = shards.iter().filter(|other| *other > shard).min();
        }
    }

    /// The present of these tables: `now`, unless one of them has seen a later instant.
    #[inline]
    pub(super) fn present(&self, now: u64) -> u64 {
        let tables = self.guards.iter().map_while(Option::as_ref);
        tables.map(|table| table.latest).fold(now, u64::max)
    }

    /// The instant at which everything here is decided: their present, which all of them have
    /// seen from here on.
    #[inline]
    pub(super) fn instant(&mut self, now: u64) -> u64 {
        let latest = self.present(now);
        for table in self.guards.iter_mut().map_while(Option::as_mut) {
            table.latest = latest;
        }
        latest
    }
}

impl Tables for Locked<'_> {
    #[inline]
    fn table(&mut self, index: usize) -> &mut Table {
        match &mut self.guards[usize::from(self.guard_of[index])] {
            Some(table) => table,
            None => unreachable!("every check has a guard"),
        }
    }
}

/// The one or two shards that most batches are about: the same, without anything that must be
/// filled in first.
pub(super) struct Pair<'s> {
    low: MutexGuard<'s, Table>,
    high: Option<MutexGuard<'s, Table>>,
    /// A bit for each check whose table is the higher one.
    on_high: u32,
    /// How many these are, and how many others.
    checks: [u32; 2],
}

impl<'s> Pair<'s> {
    /// Locks the shards of these fingerprints, unless they are on more than two.
    #[inline(always)]
    pub(super) fn lock(store: &'s MemoryStore, prints: &[Fingerprint]) -> Option<Self> {
        let shards = prints.iter().map(|print| store.shard_of(*print));
        let (low, high) = shards.clone().fold((usize::MAX, 0), |(low, high), shard| {
            (low.min(shard), high.max(shard))
        });
        let (mut on_high, mut checks) = (0, [0; 2]);
        for (index, shard) in shards.enumerate() {
            checks[usize::from(shard == high)] += 1;
            if shard == high {
                on_high |= 1 << index;
            } else if shard != low {
                return None;
            }
        }
        // Of no shards at all there is no lowest.
        let first = lock(&store.shards.get(low)?.0);
        Some(if low == high {
            Self {
                low: first,
                high: None,
                on_high: 0,
                checks: [checks[1], 0],
            }
        } else {
            Self {
                low: first,
                high: Some(lock(&store.shards[high].0)),
                on_high,
                checks,
            }
        })
    }

    /// As [`Locked::instant`].
    #[inline]
    pub(super) fn instant(&mut self, now: u64) -> u64 {
        let now = self.low.instant(now);
        let Some(high) = &mut self.high else {
            return now;
        };
        self.low.latest = high.instant(now);
        self.low.latest
    }
}

impl Pair<'_> {
    /// Sweeping is owed for every check to its own table. Says whether it has come to a share in
    /// one of them.
    #[inline]
    pub(super) fn owes_a_share(&mut self) -> bool {
        let [on_low, on_high] = self.checks;
        let low = self.low.owes_a_share(on_low);
        let high = self.high.as_mut();
        high.is_some_and(|high| high.owes_a_share(on_high)) || low
    }
}

impl Tables for Pair<'_> {
    #[inline(always)]
    fn table(&mut self, index: usize) -> &mut Table {
        match &mut self.high {
            Some(high) if self.on_high >> index & 1 == 1 => high,
            _ => &mut self.low,
        }
    }
}
