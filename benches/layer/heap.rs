//! Counts allocations.
//!
//! Counting costs those who allocate more than those who do not, a few nanoseconds each time, and
//! the times tell that, too.

use stats_alloc::Region;

use crate::HEAP;

/// How often memory is taken, or given more room, while `work` is done.
pub fn allocations(work: impl FnOnce()) -> usize {
    let region = Region::new(HEAP);
    work();
    let change = region.change();
    change.allocations + change.reallocations
}
