//! Counts allocations.
//!
//! Each counted allocation costs a few nanoseconds, which the measured times include.

use stats_alloc::Region;

use crate::HEAP;

/// Returns the number of allocations and reallocations during `work`.
pub fn allocations(work: impl FnOnce()) -> usize {
    let region = Region::new(HEAP);
    work();
    let change = region.change();
    change.allocations + change.reallocations
}
