//! An open-addressing table of cells, four to a bucket, made for one thing: as few cache
//! misses per decision as possible.
//!
//! A tag's first bucket follows from its place; if that is full, the next ones are tried in
//! order. Within a bucket, occupied cells come first. Removing a cell closes the gap from
//! behind, so a search ends at the first bucket that is not full, and nothing is ever marked
//! as deleted.

use std::sync::Arc;

use super::bucket::{Bucket, CELLS, occupied};
use super::cell::{Cell, Rank, Words};
use super::heap::Heap;
use crate::store::fingerprint::Tag;
use crate::store::wall::{WallTime, moved};

/// Where a cell is. Good until the table changes.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    bucket: usize,
    slot: usize,
}

/// What all tables of a store have in common.
#[derive(Debug, Default)]
pub(super) struct Common {
    /// The most cells that one table may keep; growing stops there.
    pub(super) limit: usize,
    pub(super) wall: WallTime,
}

/// Together with its lock, one cache line.
pub(super) struct Table {
    buckets: Box<[Bucket]>,
    /// The latest instant it has seen: a clock that goes back stands still here.
    pub(super) latest: u64,
    /// How much sweeping is owed, and where it goes on.
    owed: u32,
    hand: u32,
    len: usize,
    common: Arc<Common>,
    /// States that do not fit into a cell.
    pub(super) heap: Heap,
}

impl Table {
    pub(super) fn new(common: Arc<Common>) -> Self {
        Self {
            buckets: Box::default(),
            latest: 0,
            owed: 0,
            hand: 0,
            len: 0,
            common,
            heap: Heap::default(),
        }
    }

    /// Returns the offset of the wall clock for a charge at `now`, in microseconds.
    pub(super) fn wall_offset_at(&self, now: u64) -> i64 {
        self.common.wall.offset_at(now)
    }

    /// Returns whether the wall clock was stepped after a charge at `charged_at`.
    pub(super) fn has_stepped_since(&self, charged_at: u64) -> bool {
        self.common.wall.has_stepped_since(charged_at)
    }

    /// Returns whether a cell is worth no more than a fresh one at `now`. The end of a calendar
    /// window is wall-clock time: by `now` alone, a window would reopen after a step back.
    pub(super) fn has_expired(&self, cell: &Cell, now: u64) -> bool {
        let now = if cell.is_calendar() {
            moved(now, self.common.wall.offset())
        } else {
            now
        };
        cell.expires_at() <= now
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether it keeps as many cells as it may.
    pub(super) fn is_full(&self) -> bool {
        self.len >= self.common.limit
    }

    pub(super) fn clear(&mut self) {
        *self = Self {
            latest: self.latest,
            ..Self::new(Arc::clone(&self.common))
        };
    }

    #[inline]
    fn home(place: u64, buckets: usize) -> usize {
        // The high half of the product: a fraction of the table, whatever its size.
        #[expect(clippy::cast_possible_truncation, reason = "less than `buckets`")]
        let home = ((u128::from(place) * buckets as u128) >> 64) as usize;
        home
    }

    #[inline]
    fn after(&self, bucket: usize) -> usize {
        let next = bucket + 1;
        if next == self.buckets.len() { 0 } else { next }
    }

    #[inline(always)]
    pub(super) fn find(&self, tag: Tag) -> Option<Place> {
        self.probe(tag.place, |bucket| bucket.position(tag))
    }

    /// The same for a tag that may well be where another was found: all of a subject are
    /// neighbours. A tag is in the table but once, so wherever it turns up is its place.
    #[inline(always)]
    pub(super) fn find_near(&self, other: Place, tag: Tag) -> Option<Place> {
        let near = self.buckets.get(other.bucket)?;
        match near.position(tag) {
            Some(slot) => Some(Place { slot, ..other }),
            None => self.find(tag),
        }
    }

    /// Asks one bucket after the other, from the home of `place` on, for a slot.
    #[inline(always)]
    fn probe(&self, place: u64, position: impl Fn(&Bucket) -> Option<usize>) -> Option<Place> {
        let mut at = Self::home(place, self.buckets.len());
        // Of no buckets at all there is not even the first.
        let mut bucket = self.buckets.get(at)?;
        loop {
            if let Some(slot) = position(bucket) {
                return Some(Place { bucket: at, slot });
            }
            if !bucket.is_full() {
                return None;
            }
            at = self.after(at);
            bucket = &self.buckets[at];
        }
    }

    #[inline]
    pub(super) fn cell(&self, place: Place) -> &Cell {
        &self.buckets[place.bucket].cells[place.slot % CELLS]
    }

    #[inline]
    pub(super) fn cell_mut(&mut self, place: Place) -> &mut Cell {
        &mut self.buckets[place.bucket].cells[place.slot % CELLS]
    }

    /// Adds a cell whose tag is not there yet, growing if need be. Returns how many expired
    /// cells were dropped on the way.
    pub(super) fn insert(&mut self, tag: Tag, words: Words) -> usize {
        let dropped = if self.len >= self.room() {
            self.grow()
        } else {
            0
        };
        Self::place(&mut self.buckets, Cell { tag, words });
        self.len += 1;
        dropped
    }

    /// How many cells fit before it gets crowded: thirteen of sixteen. With more, counters are
    /// pushed out of their own bucket too often, and each bucket more is a cache miss more.
    fn room(&self) -> usize {
        self.buckets.len() * CELLS * 13 / 16
    }

    fn place(buckets: &mut [Bucket], cell: Cell) {
        let mut at = Self::home(cell.tag.place, buckets.len());
        while buckets[at].is_full() {
            at = if at + 1 == buckets.len() { 0 } else { at + 1 };
        }
        let slot = buckets[at].len();
        buckets[at].cells[slot] = cell;
    }

    /// An eighth more cells, unless dropping expired ones is enough. So little at a time,
    /// because memory that is not taken is what the caches have room for; a cell is moved eight
    /// times on average until a table is as large as it gets, from one end to the other.
    fn grow(&mut self) -> usize {
        let expired = occupied(&self.buckets)
            .filter(|cell| self.has_expired(cell, self.latest))
            .count();
        if expired > self.len / 8 {
            // Where counters come and go all the time, the table stays as it is: one made to
            // measure would soon be too small.
            return self.drop_expired();
        }
        let alive = self.len - expired;
        self.rebuild(alive + alive / 8 + 1)
    }

    /// A table with room for `cells`, without what has expired.
    fn rebuild(&mut self, cells: usize) -> usize {
        // Beyond the limit there is room for a few cells that must not be refused.
        let most = self.common.limit + self.common.limit / 64 + 64;
        let wanted = cells.min(most.max(self.len + 1)) * 16;
        let count = wanted.div_ceil(13 * CELLS);
        let mut buckets = vec![Bucket::default(); count].into_boxed_slice();
        let old = std::mem::take(&mut self.buckets);
        let before = std::mem::take(&mut self.len);
        for cell in occupied(&old) {
            if self.has_expired(cell, self.latest) {
                self.free(cell);
            } else {
                Self::place(&mut buckets, *cell);
                self.len += 1;
            }
        }
        self.buckets = buckets;
        self.hand = 0;
        before - self.len
    }

    fn free(&mut self, cell: &Cell) {
        if let Some(index) = cell.heap_index() {
            self.heap.remove(index);
        }
    }

    pub(super) fn remove(&mut self, place: Place) {
        let mut gap = place.bucket;
        let was_full = self.buckets[gap].is_full();
        let cell = self.buckets[gap].take(place.slot);
        self.free(&cell);
        self.len -= 1;
        if !was_full {
            return;
        }
        // Cells that had to go on past the bucket with the gap may move back into it.
        let mut at = self.after(gap);
        while at != gap {
            let count = self.buckets.len();
            let distance = |from: usize| (at + count - from) % count;
            let full = self.buckets[at].is_full();
            let moves = self.buckets[at].cells.iter().position(|cell| {
                !cell.is_empty() && distance(Self::home(cell.tag.place, count)) >= distance(gap)
            });
            if let Some(slot) = moves {
                let cell = self.buckets[at].take(slot);
                let free = self.buckets[gap].len();
                self.buckets[gap].cells[free] = cell;
                gap = at;
            }
            if !full {
                return;
            }
            at = self.after(at);
        }
    }

    /// Forgets every counter of the subject at this place; says how many.
    pub(super) fn remove_subject(&mut self, place: u64) -> usize {
        let before = self.len;
        let any = |bucket: &Bucket| {
            let mut cells = bucket.cells.iter();
            cells.position(|cell| !cell.is_empty() && cell.tag.place == place)
        };
        while let Some(found) = self.probe(place, any) {
            self.remove(found);
        }
        before - self.len
    }

    /// Who has to go, so that a newcomer at `place` can stay: near its home, what has expired,
    /// else what forgives least; nobody that is blocked.
    ///
    /// Of equals in the newcomer's own bucket it is the one that came last, which in a flood
    /// is another of the flood.
    pub(super) fn victim(&self, place: u64, now: u64, spared: impl Fn(Tag) -> bool) -> Option<Tag> {
        const NEAR: usize = 4;
        const FAR: usize = 64;
        if self.buckets.is_empty() {
            return None;
        }
        let mut best: Option<(Rank, Tag)> = None;
        let mut at = Self::home(place, self.buckets.len());
        for looked_at in 0..FAR.min(self.buckets.len()) {
            if looked_at >= NEAR && best.is_some() {
                break;
            }
            for cell in self.buckets[at].cells.iter().rev() {
                if cell.is_empty() || spared(cell.tag) {
                    continue;
                }
                if self.has_expired(cell, now) {
                    return Some(cell.tag);
                }
                let less = best.is_none_or(|(rank, _)| cell.rank() < rank);
                if cell.rank() != Rank::BLOCKED && less {
                    best = Some((cell.rank(), cell.tag));
                }
            }
            at = self.after(at);
        }
        best.map(|(_, tag)| tag)
    }

    /// Puts a newcomer in the place of another. Returns how many expired cells were dropped
    /// besides.
    pub(super) fn replace(&mut self, place: Place, tag: Tag, words: Words) -> usize {
        if place.bucket == Self::home(tag.place, self.buckets.len()) {
            let old = std::mem::replace(self.cell_mut(place), Cell { tag, words });
            self.free(&old);
            return 0;
        }
        self.remove(place);
        self.insert(tag, words)
    }

    /// The instant at which something is decided here: `now`, unless a later one was seen.
    #[inline]
    pub(super) fn instant(&mut self, now: u64) -> u64 {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Notes that sweeping is owed.
    #[inline]
    pub(super) fn owe(&mut self, work: u32) {
        self.owed += work;
    }

    /// A little sweeping is owed for every check. Says whether it has come to a share.
    #[inline]
    pub(super) fn owes_a_share(&mut self, checks: u32) -> bool {
        self.owe(checks);
        self.is_due()
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        // In the model, so soon that sweeping is part of it.
        const DUE: u32 = if cfg!(tollgate_loom) { 2 } else { 512 };
        self.owed >= DUE
    }

    /// Sweeps the next few buckets. Returns how many cells were dropped.
    pub(super) fn sweep_share(&mut self) -> usize {
        const SHARE: usize = 16;
        self.owed = 0;
        let before = self.len;
        for _ in 0..SHARE.min(self.buckets.len()) {
            let at = self.hand as usize;
            self.sweep_bucket(at);
            // No table has 2^32 buckets; one that had would be swept as far as that.
            self.hand = u32::try_from(self.after(at)).unwrap_or(0);
            if self.hand == 0 {
                self.shrink();
                break;
            }
        }
        before - self.len
    }

    /// Sweeps everything.
    pub(super) fn sweep_all(&mut self) -> usize {
        let gone = self.drop_expired();
        self.shrink();
        gone
    }

    fn drop_expired(&mut self) -> usize {
        let before = self.len;
        for bucket in 0..self.buckets.len() {
            self.sweep_bucket(bucket);
        }
        before - self.len
    }

    fn sweep_bucket(&mut self, bucket: usize) {
        // Closing a gap may bring another expired cell in.
        let expired = |table: &Self| {
            let cells = &table.buckets[bucket].cells;
            cells
                .iter()
                .position(|cell| !cell.is_empty() && table.has_expired(cell, table.latest))
        };
        while let Some(slot) = expired(self) {
            self.remove(Place { bucket, slot });
        }
    }

    /// Gives memory back after a flood has passed.
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
    use super::*;
    use crate::algorithm::fixed_window::FixedWindow;
    use crate::key::{Counter, Subject};
    use crate::store::fingerprint::Secret;
    use crate::store::memory::cell::Small as _;

    fn add(table: &mut Table, number: u64, end: u64) {
        let counter = Counter::new("any", "9/hour".parse().expect("valid")).expect("valid");
        let print = Secret::from_keys(1, 2).fingerprint(&Subject::from(number));
        let words = FixedWindow { end, count: 1 }.write(counter.quota(), 0);
        table.insert(print.tag(&counter), words);
    }

    /// Where all that is counted is over soon, a table was built anew for nearly every newcomer,
    /// each time a little too small for the next.
    #[test]
    fn counters_that_come_and_go_leave_the_table_as_it_is() {
        let mut table = Table::new(Arc::new(Common {
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
