//! Which counters a full store keeps: the bit `protected` of a cell, and the choice of a victim.

use super::bucket::CELLS;
use super::table::{CellIndex, CellTable};
use crate::quota::Quota;
use crate::store::subject_hash::Tag;

/// Buckets that are searched for an expired cell.
const NEAR: usize = 4;
/// Buckets that are searched for an unprotected cell.
const FAR: usize = 64;

/// Returns whether a counter is protected after a charge of `cost`. `weight` is what is used then, in
/// units of which a permit has `permit_weight`.
///
/// A charge protects a counter that is used up, or that was charged at least twice as much as this
/// cost and either eight times as much or 1 % of the limit. Protection lasts until the counter is
/// empty: otherwise a caller could undo it with one expensive request.
#[inline(always)]
pub(super) fn is_protected_after(
    was_protected: bool,
    weight: u64,
    permit_weight: u64,
    cost: u64,
    quota: &Quota,
) -> bool {
    // A fraction counts as a whole permit, as it does in `Usage::used`.
    let has_used = |permits: u64| weight > permits.saturating_sub(1).saturating_mul(permit_weight);
    if was_protected && weight > cost.saturating_mul(permit_weight) {
        return true;
    }
    let limit = quota.burst();
    has_used(limit)
        || has_used(cost.saturating_mul(2))
            && (has_used(cost.saturating_mul(8)) || has_used(limit.div_ceil(100)))
}

impl CellTable {
    /// Returns the cell that a new counter with this tag displaces: an expired one nearby, else the
    /// latest unprotected one nearby. `None` if there is neither.
    ///
    /// The search starts in the bucket of the new counter, at the cell that was added last. During a
    /// flood that is another counter of the flood. `is_spared` excludes the cells of the same batch and
    /// the overflow counters: an overflow counter exists beyond the capacity, so a counter in its place
    /// would exceed the capacity.
    pub(super) fn victim(
        &self,
        tag: Tag,
        now: u64,
        is_spared: impl Fn(Tag) -> bool,
    ) -> Option<Tag> {
        let mut latest = None;
        let mut bucket = self.home(tag.place);
        for searched in 0..FAR.min(self.bucket_count()) {
            if searched >= NEAR && latest.is_some() {
                break;
            }
            for slot in (0..CELLS).rev() {
                let cell = self.cell(CellIndex::new(bucket, slot));
                if cell.is_empty() || is_spared(cell.tag) {
                    continue;
                }
                if self.has_expired(cell, now) {
                    return Some(cell.tag);
                }
                if latest.is_none() && !cell.is_protected() {
                    latest = Some(cell.tag);
                }
            }
            bucket = self.after(bucket);
        }
        latest
    }
}
