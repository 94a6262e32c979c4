//! Places for newcomers, and what becomes of those who have none.

use super::MemoryStore;
use super::cell::Words;
use super::decide::Plan;
use super::locked::{Locked, Tables as _};
use super::table::Table;
use crate::batch::{Batch, MAX_CHECKS};
use crate::store::fingerprint::{Fingerprint, Tag};
use crate::sync::{Ordering, try_lock};

/// There is no place for the counter of this check.
pub(super) struct NoRoom(pub(super) usize);

/// Whose place a newcomer takes, check by check.
pub(super) type Victims = [Option<Tag>; MAX_CHECKS];

impl MemoryStore {
    /// Finds a place for every newcomer, without writing anything yet.
    pub(super) fn make_room(
        &self,
        locked: &mut Locked<'_>,
        plans: &[Plan],
        newcomers: usize,
    ) -> Result<Victims, NoRoom> {
        if newcomers == 0 {
            return Ok([None; MAX_CHECKS]);
        }
        let before = self.keys.fetch_add(newcomers, Ordering::Relaxed);
        let crowded = before + newcomers > self.capacity;
        let mut victims = [None; MAX_CHECKS];
        for (index, plan) in plans
            .iter()
            .enumerate()
            .filter(|(_, plan)| plan.is_newcomer())
        {
            let table = locked.table(index);
            if !crowded && !table.is_full() {
                continue;
            }
            let spared = |other: Tag| {
                self.is_shared(other.place)
                    || victims.contains(&Some(other))
                    || plans.iter().any(|plan| plan.tag == other)
            };
            victims[index] = table.victim(plan.tag.place, table.latest, spared);
            if victims[index].is_none() && !self.is_shared(plan.tag.place) {
                self.gone(newcomers);
                return Err(NoRoom(index));
            }
        }
        Ok(victims)
    }

    /// Whether a newcomer would find a place of its own at this instant.
    pub(super) fn has_room(&self, table: &Table, print: Fingerprint, now: u64) -> bool {
        let crowded = self.keys.load(Ordering::Relaxed) >= self.capacity || table.is_full();
        !crowded
            || table
                .victim(print.place, now, |other| self.is_shared(other.place))
                .is_some()
    }

    /// Puts a newcomer where there is room, or in the place of its victim.
    pub(super) fn settle_in(&self, table: &mut Table, tag: Tag, words: Words, victim: Option<Tag>) {
        // Another newcomer of the batch may have swept the victim away in the meantime.
        let gone = match victim.and_then(|victim| table.find(victim)) {
            None => table.insert(tag, words),
            Some(place) => {
                if !table.has_expired(table.cell(place), table.latest) {
                    self.evicted.fetch_add(1, Ordering::Relaxed);
                }
                1 + table.replace(place, tag, words)
            }
        };
        self.gone(gone);
    }

    /// A shared counter for the check at `index`, not yet taken by another of its batch.
    #[cold]
    pub(super) fn shared_counter(
        &self,
        batch: &Batch<'_>,
        prints: &[Fingerprint],
        index: usize,
    ) -> Fingerprint {
        let checks = batch.checks();
        let taken = |candidate: &Fingerprint| {
            let mut rows = checks.iter().zip(prints);
            let wanted = checks[index].counter().id();
            rows.any(|(check, print)| print == candidate && check.counter().id() == wanted)
        };
        let free = self.overflow.iter().find(|candidate| !taken(candidate));
        *free.unwrap_or(&self.overflow[0])
    }

    /// The shared counters stand in for everybody who has no place, so they keep theirs.
    pub(super) fn is_shared(&self, place: u64) -> bool {
        self.overflow.iter().any(|shared| shared.place == place)
    }

    /// A share of this table is swept, and one of another: those that nobody calls on are
    /// swept too.
    #[cold]
    pub(super) fn sweep_shares(&self, table: &mut Table) {
        let mut gone = table.sweep_share();
        let other = self.next_to_sweep.fetch_add(1, Ordering::Relaxed) % self.shards.len();
        // Held by somebody, perhaps by this very call: then it is not left alone anyway.
        if let Some(mut other) = try_lock(&self.shards[other].0) {
            other.latest = other.latest.max(table.latest);
            gone += other.sweep_share();
        }
        self.gone(gone);
    }

    #[inline]
    pub(super) fn gone(&self, count: usize) {
        if count > 0 {
            self.keys.fetch_sub(count, Ordering::Relaxed);
        }
    }
}
