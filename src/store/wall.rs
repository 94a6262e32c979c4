//! Wall-clock time for stores that decide at the monotonic `now` of their callers.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::clock::{Clock, Timestamp};

/// Clock that a store was given by [`Store::use_clock`](super::Store::use_clock).
///
/// Without one, the wall clock is taken to be the `now` of the callers.
#[derive(Debug, Default)]
pub(super) struct WallTime {
    clock: OnceLock<Arc<dyn Clock>>,
    /// The offset that was used last.
    used: AtomicI64,
    /// The `now` of the first charge that used it.
    used_since: AtomicU64,
}

impl WallTime {
    /// Keeps the clock, unless there is one already.
    pub(super) fn set(&self, clock: &Arc<dyn Clock>) {
        let _ = self.clock.set(Arc::clone(clock));
    }

    /// Returns the microseconds to add to `now` to get wall-clock time, without recording that they
    /// were used.
    #[inline]
    pub(super) fn offset(&self) -> i64 {
        self.clock.get().map_or(0, Clock::wall_offset)
    }

    /// Returns the offset for a charge at `now`, in microseconds.
    #[inline]
    pub(super) fn offset_at(&self, now: u64) -> i64 {
        let offset = self.offset();
        if self.used.load(Ordering::Relaxed) != offset {
            self.used_since.store(now, Ordering::Relaxed);
            self.used.store(offset, Ordering::Relaxed);
        }
        offset
    }

    /// Returns whether a charge at `charged_at` used another offset than charges at present do. It
    /// is then not known which calendar window was charged.
    pub(super) fn has_stepped_since(&self, charged_at: u64) -> bool {
        self.offset() != self.used.load(Ordering::Relaxed)
            || charged_at < self.used_since.load(Ordering::Relaxed)
    }

    /// Returns the wall-clock time; `None` if the store was given no clock.
    #[cfg(feature = "redis")]
    pub(super) fn now(&self) -> Option<Timestamp> {
        self.clock.get().map(|clock| self.at(clock.now()))
    }

    /// Returns the wall-clock time at `now`.
    #[cfg(feature = "redis")]
    pub(super) fn at(&self, now: Timestamp) -> Timestamp {
        now.offset_by(self.offset())
    }
}

/// Moves `micros` by `offset`, to a time that a store can count at.
#[inline]
pub(super) fn moved(micros: u64, offset: i64) -> u64 {
    const LAST: u64 = Timestamp::MAX.as_micros();
    micros.saturating_add_signed(offset).min(LAST)
}
