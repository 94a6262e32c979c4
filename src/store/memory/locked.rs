//! All the shards that a batch touches, locked together.

use super::MemoryStore;
use super::several::Groups;
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
    own: MutexGuard<'s, Table>,
    /// None if it is the same.
    others: Option<MutexGuard<'s, Table>>,
    /// How many checks are of the first subject, and how many of the second.
    checks: [u8; 2],
}

impl<'s> Pair<'s> {
    /// Locks the shards of these subjects, the lower one first.
    #[inline(always)]
    pub(super) fn lock(store: &'s MemoryStore, groups: &Groups<'_>) -> Self {
        let [own, others] = groups.prints.map(|print| store.shard_of(print));
        // Which one is lower is up to chance: nothing to take turns at.
        let (low, high) = (own.min(others), own.max(others));
        let take = |shard: usize| lock(&store.shards[shard].0);
        let (mut own_guard, mut others_guard) = (take(low), None);
        if low != high {
            let mut high = take(high);
            if own > others {
                std::mem::swap(&mut own_guard, &mut high);
            }
            others_guard = Some(high);
        }
        Self {
            own: own_guard,
            others: others_guard,
            checks: groups.counts(),
        }
    }

    /// The table of the first subject.
    #[inline(always)]
    pub(super) fn own(&mut self) -> &mut Table {
        &mut self.own
    }

    /// The table of the second.
    #[inline(always)]
    pub(super) fn others(&mut self) -> &mut Table {
        self.others.as_mut().unwrap_or(&mut self.own)
    }

    /// Gives back the lock of the second. What comes second is what more share.
    #[inline(always)]
    pub(super) fn release_others(&mut self) {
        self.others = None;
    }

    /// As [`Locked::instant`].
    #[inline(always)]
    pub(super) fn instant(&mut self, now: u64) -> u64 {
        let now = self.own.instant(now);
        let Some(others) = &mut self.others else {
            return now;
        };
        self.own.latest = others.instant(now);
        self.own.latest
    }

    /// Sweeping is owed for every check to its own table. Says whether it has come to a share in
    /// one of them.
    #[inline(always)]
    pub(super) fn owes_a_share(&mut self) -> bool {
        let [own, others] = self.checks;
        let own = self.own().owes_a_share(own.into());
        self.others().owes_a_share(others.into()) || own
    }
}

impl Tables for Pair<'_> {
    #[inline(always)]
    fn table(&mut self, index: usize) -> &mut Table {
        if index < usize::from(self.checks[0]) {
            self.own()
        } else {
            self.others()
        }
    }
}
