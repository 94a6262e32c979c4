//! Open-addressing table of cells, four to a bucket. The layout minimises cache misses per decision.
//!
//! The home bucket of a tag follows from its place. If it is full, the next buckets are used in order.
//! Removing a cell closes the gap with a later cell, so a search ends at the first bucket that is not
//! full, and there are no markers for deleted cells.

use std::sync::Arc;

use super::bucket::{Bucket, CELLS, occupied};
use super::cell::{Cell, PackedState};
use super::heap::Heap;
use crate::store::subject_hash::Tag;
use crate::store::wall::{WallTime, moved};

/// Position of a cell. Valid until a cell is removed or the table is rebuilt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CellIndex(usize);

impl CellIndex {
    #[inline]
    pub(super) const fn new(bucket: usize, slot: usize) -> Self {
        Self(bucket * CELLS + slot)
    }

    #[inline]
    const fn bucket(self) -> usize {
        self.0 / CELLS
    }

    #[inline]
    const fn slot(self) -> usize {
        self.0 % CELLS
    }
}

/// Result of [`CellTable::find_or_vacant`].
pub(super) enum ProbeResult {
    Found(CellIndex),
    /// The tag is not in the table; this is the bucket to insert it into.
    Vacant(usize),
}

/// What all tables of a store share.
#[derive(Debug, Default)]
pub(super) struct Common {
    /// Maximum number of cells of a table, overflow counters excluded.
    pub(super) limit: usize,
    pub(super) wall: WallTime,
}

/// Counters of one shard. One cache line together with its lock.
pub(super) struct CellTable {
    pub(super) buckets: Box<[Bucket]>,
    /// The latest instant of a charge. If the clock goes back, this stays.
    pub(super) latest: u64,
    /// Sweeping that is due, and the bucket where it continues.
    pub(super) sweep_debt: u32,
    pub(super) next_to_sweep: u32,
    pub(super) len: usize,
    common: Arc<Common>,
    pub(super) heap: Heap,
}

impl CellTable {
    pub(super) fn new(common: Arc<Common>) -> Self {
        Self {
            buckets: Box::default(),
            latest: 0,
            sweep_debt: 0,
            next_to_sweep: 0,
            len: 0,
            common,
            heap: Heap::default(),
        }
    }

    pub(super) fn wall(&self) -> &WallTime {
        &self.common.wall
    }

    /// Returns whether a cell is equivalent to a new one at `now`. The end of a calendar window is
    /// wall-clock time: compared with `now`, a window would reopen after the wall clock was set back.
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

    pub(super) fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// Returns whether it has as many cells as it may.
    pub(super) fn is_full(&self) -> bool {
        self.len >= self.common.limit
    }

    pub(super) fn clear(&mut self) {
        *self = Self {
            latest: self.latest,
            ..Self::new(Arc::clone(&self.common))
        };
    }

    /// Returns the home bucket of a place.
    #[inline]
    pub(super) fn home(&self, place: u64) -> usize {
        home_of(place, self.buckets.len())
    }

    #[inline]
    pub(super) fn after(&self, bucket: usize) -> usize {
        let next = bucket + 1;
        if next == self.buckets.len() { 0 } else { next }
    }

    /// Finds the cell with this tag, or the bucket to insert it into, in one probe.
    ///
    /// A table without buckets returns a bucket that does not exist. Insert only after
    /// [`reserve`](Self::reserve).
    #[inline(always)]
    pub(super) fn find_or_vacant(&self, tag: Tag) -> ProbeResult {
        let mut at = self.home(tag.place);
        let Some(mut bucket) = self.buckets.get(at) else {
            return ProbeResult::Vacant(0);
        };
        loop {
            if let Some(slot) = bucket.position(tag) {
                return ProbeResult::Found(CellIndex::new(at, slot));
            }
            if !bucket.is_full() {
                return ProbeResult::Vacant(at);
            }
            at = self.after(at);
            bucket = &self.buckets[at];
        }
    }

    pub(super) fn find(&self, tag: Tag) -> Option<CellIndex> {
        match self.find_or_vacant(tag) {
            ProbeResult::Found(index) => Some(index),
            ProbeResult::Vacant(_) => None,
        }
    }

    #[inline]
    pub(super) fn cell(&self, index: CellIndex) -> &Cell {
        &self.buckets[index.bucket()].cells[index.slot()]
    }

    #[inline]
    pub(super) fn cell_mut(&mut self, index: CellIndex) -> &mut Cell {
        &mut self.buckets[index.bucket()].cells[index.slot()]
    }

    /// Makes room for so many more cells, so that inserting them moves no other cell. Returns how many
    /// expired cells were dropped; `None` if there was room and no cell has moved.
    #[inline]
    pub(super) fn reserve(&mut self, more: usize) -> Option<usize> {
        (self.len + more > self.room()).then(|| self.grow(more))
    }

    /// Inserts a cell whose tag is not in the table, into the bucket that
    /// [`find_or_vacant`](Self::find_or_vacant) returned for it or a later one. No cell may have been
    /// removed since. Other cells may have been inserted.
    #[inline]
    pub(super) fn insert(&mut self, bucket: usize, tag: Tag, state: PackedState) {
        place_from(&mut self.buckets, bucket, Cell { tag, state });
        self.len += 1;
    }

    /// Replaces a cell by one with another tag. May move other cells.
    pub(super) fn replace(&mut self, old: CellIndex, tag: Tag, state: PackedState) {
        let home = self.home(tag.place);
        if old.bucket() == home {
            let old = std::mem::replace(self.cell_mut(old), Cell { tag, state });
            self.free(&old);
        } else {
            self.remove(old);
            self.insert(home, tag, state);
        }
    }

    /// Returns how many cells fit: 13 of 16. With more, too many cells are outside of their home
    /// bucket, and each further bucket is a cache miss.
    #[inline]
    pub(super) fn room(&self) -> usize {
        self.buckets.len() * CELLS * 13 / 16
    }

    /// Adds an eighth, unless dropping expired cells is enough. The step is small because a smaller
    /// table stays in the caches; on average a cell is moved eight times until the table has its final
    /// size.
    #[cold]
    fn grow(&mut self, more: usize) -> usize {
        let expired = occupied(&self.buckets)
            .filter(|cell| self.has_expired(cell, self.latest))
            .count();
        if expired > self.len / 8 && expired >= more {
            // The size stays: without spare cells, the table would be rebuilt again soon.
            return self.drop_expired();
        }
        let alive = self.len - expired;
        // Overflow counters exceed the limit.
        let most = self.common.limit + self.common.limit / 64 + 64;
        let wanted = (alive + alive / 8).min(most).max(alive + alive / 64);
        self.rebuild(wanted + more)
    }

    /// Rebuilds the table with room for `cells`, without expired cells.
    pub(super) fn rebuild(&mut self, cells: usize) -> usize {
        let count = (cells * 16).div_ceil(13 * CELLS);
        let mut buckets = vec![Bucket::default(); count].into_boxed_slice();
        let old = std::mem::take(&mut self.buckets);
        let before = std::mem::take(&mut self.len);
        for cell in occupied(&old) {
            if self.has_expired(cell, self.latest) {
                self.free(cell);
            } else {
                place_from(&mut buckets, home_of(cell.tag.place, count), *cell);
                self.len += 1;
            }
        }
        self.buckets = buckets;
        self.next_to_sweep = 0;
        before - self.len
    }

    fn free(&mut self, cell: &Cell) {
        if let Some(index) = cell.heap_index() {
            self.heap.remove(index);
        }
    }

    pub(super) fn remove(&mut self, index: CellIndex) {
        let mut gap = index.bucket();
        let was_full = self.buckets[gap].is_full();
        let cell = self.buckets[gap].take(index.slot());
        self.free(&cell);
        self.len -= 1;
        if !was_full {
            return;
        }
        // A later cell whose probe sequence includes the bucket with the gap moves into it.
        let mut at = self.after(gap);
        while at != gap {
            let count = self.buckets.len();
            let distance = |from: usize| (at + count - from) % count;
            let full = self.buckets[at].is_full();
            let moves = self.buckets[at].cells.iter().position(|cell| {
                !cell.is_empty() && distance(home_of(cell.tag.place, count)) >= distance(gap)
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

    /// Removes every counter of the subject with this place. Returns how many there were.
    pub(super) fn remove_subject(&mut self, place: u64) -> usize {
        let before = self.len;
        while let Some(index) = self.find_any(place) {
            self.remove(index);
        }
        before - self.len
    }

    fn find_any(&self, place: u64) -> Option<CellIndex> {
        let mut at = self.home(place);
        let mut bucket = self.buckets.get(at)?;
        loop {
            let mut cells = bucket.cells.iter();
            if let Some(slot) = cells.position(|cell| cell.tag.place == place) {
                return Some(CellIndex::new(at, slot));
            }
            if !bucket.is_full() {
                return None;
            }
            at = self.after(at);
            bucket = &self.buckets[at];
        }
    }
}

/// Returns the home bucket of a place among so many buckets.
#[inline]
fn home_of(place: u64, buckets: usize) -> usize {
    // The high half of the product is uniform in 0..buckets, also if that is no power of two.
    #[expect(clippy::cast_possible_truncation, reason = "less than `buckets`")]
    let home = ((u128::from(place) * buckets as u128) >> 64) as usize;
    home
}

/// Puts a cell into the first bucket with a free cell, from bucket `at` on.
#[inline]
fn place_from(buckets: &mut [Bucket], mut at: usize, cell: Cell) {
    while buckets[at].is_full() {
        at = if at + 1 == buckets.len() { 0 } else { at + 1 };
    }
    let slot = buckets[at].len();
    buckets[at].cells[slot] = cell;
}
