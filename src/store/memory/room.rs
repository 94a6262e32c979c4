//! Places for new counters: new cells, victims and overflow counters.

use super::MemoryStore;
use super::evaluate::{CellTarget, CheckStep, Mode};
use super::shards::LockedShards;
use super::table::CellTable;
use crate::batch::Check;
use crate::store::subject_hash::{Fingerprint, Tag};
use crate::sync::Ordering;

impl MemoryStore {
    /// Grows the tables if there is not enough room for the new cells, and looks the cells up again if
    /// that has moved them.
    #[inline]
    pub(super) fn reserve<const N: usize>(
        &self,
        locked: &mut LockedShards<'_, N>,
        steps: &mut [CheckStep],
    ) {
        let mut has_moved = false;
        locked.each(|table| {
            // Room for all checks, because growing drops expired cells, also those of this batch.
            if let Some(dropped) = table.reserve(steps.len()) {
                self.subtract_keys(dropped);
                has_moved = true;
            }
        });
        if has_moved {
            self.look_up_again(locked, steps);
        }
    }

    #[cold]
    fn look_up_again<const N: usize>(
        &self,
        locked: &mut LockedShards<'_, N>,
        steps: &mut [CheckStep],
    ) {
        for (index, step) in steps.iter_mut().enumerate() {
            let was_found = matches!(step.target, CellTarget::Found(_));
            if was_found || matches!(step.target, CellTarget::Vacant(_)) {
                step.target = locked.table(index).find_or_vacant(step.tag).into();
            }
            if was_found && matches!(step.target, CellTarget::Vacant(_)) {
                // Its cell had expired and was dropped.
                self.keys.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Gives each missing counter a place: a new cell if the store has room, else the cell of a victim,
    /// else the overflow counter of its shard.
    ///
    /// Adds each new cell to the number of keys, unless this is a peek.
    #[inline(never)]
    pub(super) fn make_room<const N: usize>(
        &self,
        locked: &mut LockedShards<'_, N>,
        steps: &mut [CheckStep],
        checks: &[Check<'_>],
        prints: &[Fingerprint; N],
        now: u64,
        mode: Mode,
    ) {
        let mut peeked = 0;
        for index in 0..steps.len() {
            if !matches!(steps[index].target, CellTarget::Vacant(_)) {
                continue;
            }
            let table = locked.table(index);
            let has_room = !table.is_full()
                && match mode {
                    Mode::Peek => self.keys.load(Ordering::Relaxed) + peeked < self.capacity,
                    Mode::Decide | Mode::Record => self.try_add_key(),
                };
            if has_room {
                peeked += 1;
                continue;
            }
            let overflow = self.overflow_place(prints[index]);
            let is_spared = |tag: Tag| {
                tag.place == overflow
                    || steps.iter().any(|step| match step.target {
                        CellTarget::Victim(victim) => victim == tag,
                        _ => step.tag == tag,
                    })
            };
            if let Some(victim) = table.victim(steps[index].tag, now, is_spared) {
                steps[index].target = CellTarget::Victim(victim);
            } else {
                self.use_overflow(table, steps, index, &checks[index], prints[index], mode);
            }
        }
    }

    /// Counts the check at `index` in the overflow counter of its quota and shard.
    ///
    /// Two subjects of one batch with the same quota use two overflow counters: each check is evaluated
    /// on its own, so they must not write to the same cell.
    #[cold]
    fn use_overflow(
        &self,
        table: &CellTable,
        steps: &mut [CheckStep],
        index: usize,
        check: &Check<'_>,
        print: Fingerprint,
        mode: Mode,
    ) {
        let place = self.overflow_place(print);
        let tag = |number| {
            let reserved = self.hasher.reserved(number).with_place(place);
            reserved.tag(check.counter())
        };
        let is_free = |tag: &Tag| steps.iter().all(|step| step.tag != *tag);
        let numbers = 0..steps.len() as u64;
        let tag = numbers.map(tag).find(is_free).unwrap_or_default();
        steps[index].tag = tag;
        if mode != Mode::Peek {
            self.overflowed.fetch_add(1, Ordering::Relaxed);
        }
        steps[index].target = table.find_or_vacant(tag).into();
        if matches!(steps[index].target, CellTarget::Vacant(_)) && mode != Mode::Peek {
            // Beyond the capacity: one for each quota and shard.
            self.keys.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the place of the overflow counters in the shard of this fingerprint. It is the same in all
    /// shards, except for the bits that select the shard.
    fn overflow_place(&self, print: Fingerprint) -> u64 {
        let shard_mask = self.shards.len() as u64 - 1;
        self.overflow.place & !shard_mask | print.place & shard_mask
    }

    /// Adds a key, unless the store is full.
    fn try_add_key(&self) -> bool {
        if self.keys.load(Ordering::Relaxed) >= self.capacity {
            return false;
        }
        let is_added = self.keys.fetch_add(1, Ordering::Relaxed) < self.capacity;
        if !is_added {
            self.subtract_keys(1);
        }
        is_added
    }

    #[inline]
    pub(super) fn subtract_keys(&self, count: usize) {
        if count > 0 {
            self.keys.fetch_sub(count, Ordering::Relaxed);
        }
    }
}
