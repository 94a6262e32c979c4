//! Counts allocations.
//!
//! Counting costs a few nanoseconds per allocation, so a side that allocates more pays more
//! in the measured times.

use stats_alloc::Region;

use crate::HEAP;

/// How often memory is taken, or given more room, while `work` is done.
pub fn allocations(work: impl FnOnce()) -> usize {
    let region = Region::new(HEAP);
    work();
    let change = region.change();
    change.allocations + change.reallocations
}
