//! Four neighbouring cells.

use super::cell::Cell;
use crate::store::subject_hash::Tag;

pub(super) const CELLS: usize = 4;

/// Two cache lines. Occupied cells come first.
#[derive(Clone, Default)]
#[repr(align(128))]
pub(super) struct Bucket {
    pub(super) cells: [Cell; CELLS],
}

impl Bucket {
    /// Returns the slot of the cell with this tag.
    ///
    /// Compares all four before it branches, so that both cache lines are fetched at once and no
    /// branch per slot is mispredicted. Half of a tag differs between cells except with a probability
    /// of 2^-64; the other half is compared afterwards.
    #[inline]
    pub(super) fn position(&self, tag: Tag) -> Option<usize> {
        let [a, b, c, d] = &self.cells;
        let hit = |cell: &Cell, bit: u32| u32::from(cell.tag.has_rest_of(tag)) << bit;
        let hits = hit(a, 0) | hit(b, 1) | hit(c, 2) | hit(d, 3);
        if hits == 0 {
            return None;
        }
        let slot = hits.trailing_zeros() as usize % CELLS;
        if self.cells[slot].tag.place == tag.place {
            Some(slot)
        } else {
            self.exact_position(tag)
        }
    }

    #[cold]
    fn exact_position(&self, tag: Tag) -> Option<usize> {
        self.cells.iter().position(|cell| cell.tag == tag)
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        !self.cells[CELLS - 1].is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.cells
            .iter()
            .take_while(|cell| !cell.is_empty())
            .count()
    }

    /// Removes a cell and moves the last one into its slot.
    pub(super) fn take(&mut self, slot: usize) -> Cell {
        let last = self.len() - 1;
        self.cells.swap(slot, last);
        std::mem::take(&mut self.cells[last])
    }
}

/// Returns the occupied cells of these buckets.
pub(super) fn occupied(buckets: &[Bucket]) -> impl Iterator<Item = &Cell> {
    let cells = buckets.iter().flat_map(|bucket| &bucket.cells);
    cells.filter(|cell| !cell.is_empty())
}
