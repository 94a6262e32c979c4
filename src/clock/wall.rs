//! Difference between the wall clock and the monotonic time line of a [`SystemClock`].
//!
//! [`SystemClock`]: super::SystemClock

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::Timestamp;

/// Microseconds of monotonic time between two measurements of the offset.
const REFRESH_AFTER: u64 = 500;
/// Microseconds that a measurement may take. A slower one (the thread was preempted between two
/// readings) is discarded.
const MAX_MEASUREMENT: u64 = 1_000;
/// Changes of the offset below this many microseconds are ignored. It is ten times the error of a
/// measurement, so that reset times do not jitter.
const MIN_STEP: u64 = 10_000;

/// Offset of the wall clock, measured at a bounded rate.
pub(super) struct WallOffset {
    read: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// Microseconds to add to monotonic time.
    offset: AtomicI64,
    /// Monotonic time of the last measurement.
    measured_at: AtomicU64,
    /// Held during a measurement. Measurements are therefore stored in the order in which they were
    /// made; a caller that finds it locked keeps the stored offset.
    measuring: Mutex<()>,
}

impl WallOffset {
    /// Creates an offset of zero. `read` returns the time on the wall clock.
    pub(super) fn new(read: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            read: Box::new(read),
            offset: AtomicI64::new(0),
            measured_at: AtomicU64::new(0),
            measuring: Mutex::new(()),
        }
    }

    /// Returns the offset as last measured.
    #[inline]
    pub(super) fn get(&self) -> i64 {
        self.offset.load(Ordering::Relaxed)
    }

    /// Measures the offset again if the last measurement is at least [`REFRESH_AFTER`] old. `now` is
    /// the monotonic time, and `monotonic` reads it.
    pub(super) fn refresh(&self, now: u64, monotonic: impl Fn() -> u64) {
        if now.saturating_sub(self.measured_at.load(Ordering::Relaxed)) < REFRESH_AFTER {
            return;
        }
        let Ok(_measuring) = self.measuring.try_lock() else {
            return;
        };
        let before = monotonic();
        let wall = (self.read)().as_micros();
        let after = monotonic();
        self.measured_at.store(after, Ordering::Relaxed);
        if after.saturating_sub(before) > MAX_MEASUREMENT {
            return;
        }
        // Both are below 2^53.
        let offset = wall.cast_signed() - before.cast_signed();
        if offset.abs_diff(self.get()) >= MIN_STEP {
            self.offset.store(offset, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for WallOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WallOffset")
            .field("micros", &self.get())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    const START: u64 = 1_735_689_600_000_000;

    /// A wall clock that a test sets, and the number of times that it was read.
    fn wall() -> (WallOffset, Arc<AtomicU64>, Arc<AtomicUsize>) {
        let (shown, reads) = (Arc::new(AtomicU64::new(START)), Arc::default());
        let (source, count) = (Arc::clone(&shown), Arc::<AtomicUsize>::clone(&reads));
        let offset = WallOffset::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Timestamp::from_micros(source.load(Ordering::Relaxed))
        });
        (offset, shown, reads)
    }

    #[test]
    fn wall_clock_is_read_at_most_once_per_interval() {
        let (offset, _, reads) = wall();
        for micros in 0..10_000 {
            offset.refresh(START + micros, || START + micros);
        }
        assert_eq!(reads.load(Ordering::Relaxed), 20);
    }

    #[test]
    fn small_changes_are_ignored_and_steps_are_followed() {
        let (offset, shown, _) = wall();
        let mut now = START;
        let mut measure = |difference: i64| {
            now += REFRESH_AFTER;
            shown.store(now.saturating_add_signed(difference), Ordering::Relaxed);
            offset.refresh(now, || now);
            offset.get()
        };
        assert_eq!(measure(9_999), 0);
        assert_eq!(measure(-9_999), 0);
        assert_eq!(measure(10_000), 10_000);
        assert_eq!(measure(1), 10_000);
        assert_eq!(measure(-7_200_000_000), -7_200_000_000);
        assert_eq!(measure(86_400_000_000), 86_400_000_000);
    }

    #[test]
    fn measurement_that_was_interrupted_is_discarded() {
        let (offset, shown, _) = wall();
        shown.store(START + 3_600_000_000, Ordering::Relaxed);
        let slow = AtomicU64::new(START);
        offset.refresh(START, || slow.fetch_add(2_000, Ordering::Relaxed));
        assert_eq!(offset.get(), 0);
    }
}
