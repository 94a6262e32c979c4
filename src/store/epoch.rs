//! Number that changes when counters are reset: [`Epoch`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Source of [`StoreAdmin::epoch`](super::StoreAdmin::epoch). Clones share the number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Epoch(Arc<AtomicU64>);

impl Epoch {
    #[inline]
    pub(crate) fn current(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Begins a change. The number changes now and again when the guard is dropped, because a
    /// reply that arrives in between can be from before or after the change.
    pub(crate) fn begin_change(&self) -> EpochChange {
        self.0.fetch_add(1, Ordering::AcqRel);
        EpochChange(self.clone())
    }
}

/// A change in progress; see [`Epoch::begin_change`].
#[derive(Debug)]
pub(crate) struct EpochChange(Epoch);

impl Drop for EpochChange {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::AcqRel);
    }
}
