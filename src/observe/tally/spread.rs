//! Counters that threads do not fight over.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::place::{OWN, Place};

/// A few counters, each kept apart for every thread and added up when somebody asks.
///
/// A thread is the only one that writes to its own place, so it need not lock the bus to add:
/// it reads and writes. That is exact, and takes a nanosecond instead of six, or of a hundred
/// where processors wait for each other. Threads without a place of their own add atomically.
#[derive(Debug)]
pub(super) struct Spread<const N: usize> {
    places: [OnceLock<Box<Line<N>>>; OWN + 1],
}

/// As wide as what processors pass to each other, so that neighbours do not disturb.
#[derive(Debug)]
#[repr(align(128))]
struct Line<const N: usize>([AtomicU64; N]);

impl<const N: usize> Default for Spread<N> {
    fn default() -> Self {
        Self {
            places: [const { OnceLock::new() }; OWN + 1],
        }
    }
}

/// One thread's counters.
#[derive(Clone, Copy)]
pub(super) struct Here<'a, const N: usize> {
    line: &'a Line<N>,
    is_own: bool,
}

impl<const N: usize> Spread<N> {
    #[inline]
    pub(super) fn here(&self) -> Here<'_, N> {
        self.at(Place::here())
    }

    /// The counters of the thread that has this place.
    #[inline]
    pub(super) fn at(&self, place: Place) -> Here<'_, N> {
        let line = match self.places[place.index()].get() {
            Some(line) => line,
            None => self.begin(place),
        };
        Here {
            line,
            is_own: !place.is_shared(),
        }
    }

    #[cold]
    fn begin(&self, place: Place) -> &Line<N> {
        self.places[place.index()].get_or_init(|| Box::new(Line([const { AtomicU64::new(0) }; N])))
    }

    /// What all threads have counted.
    pub(super) fn sum(&self, which: usize) -> u64 {
        let lines = self.places.iter().filter_map(OnceLock::get);
        lines
            .map(|line| line.0[which].load(Ordering::Relaxed))
            .fold(0, u64::wrapping_add)
    }
}

impl<const N: usize> Here<'_, N> {
    /// Adds, and says what this thread had counted before.
    #[inline]
    pub(super) fn add(self, which: usize, count: u64) -> u64 {
        let counter = &self.line.0[which];
        if self.is_own {
            let before = counter.load(Ordering::Relaxed);
            counter.store(before.wrapping_add(count), Ordering::Relaxed);
            before
        } else {
            counter.fetch_add(count, Ordering::Relaxed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More threads than there are places, some at once, some after others.
    #[test]
    fn no_count_is_lost_however_many_threads_there_are() {
        const ROUNDS: u64 = 3;
        const THREADS: u64 = 3 * OWN as u64;
        const TIMES: u64 = 2_000;
        let spread = Spread::<2>::default();
        for _ in 0..ROUNDS {
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        for _ in 0..TIMES {
                            spread.here().add(0, 1);
                            spread.here().add(1, 3);
                        }
                    });
                }
            });
        }
        assert_eq!(spread.sum(0), ROUNDS * THREADS * TIMES);
        assert_eq!(spread.sum(1), 3 * ROUNDS * THREADS * TIMES);
    }
}
