//! A place for each thread, where it counts alone.

use std::sync::atomic::{AtomicU64, Ordering};

/// So many threads at a time have a place of their own. The others share one.
pub(super) const OWN: usize = 64;

/// The place that is shared.
const SHARED: usize = OWN;

/// A bit for each place that is taken.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// A place that a thread has taken, and gives back when it ends.
struct Taken(usize);

impl Taken {
    fn take() -> Self {
        let mut taken = TAKEN.load(Ordering::Relaxed);
        loop {
            let free = taken.trailing_ones() as usize;
            if free >= OWN {
                return Self(SHARED);
            }
            // Acquire: what its last owner has written is seen by the next.
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            match TAKEN.compare_exchange_weak(taken, taken | 1 << free, success, failure) {
                Ok(_) => return Self(free),
                Err(changed) => taken = changed,
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.0 < OWN {
            TAKEN.fetch_and(!(1 << self.0), Ordering::Release);
        }
    }
}

thread_local! {
    static PLACE: Taken = Taken::take();
}

/// Where a thread counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::observe) struct Place(usize);

impl Place {
    /// The place of this thread. One that is just ending shares.
    #[inline]
    pub(in crate::observe) fn here() -> Self {
        Self(PLACE.try_with(|place| place.0).unwrap_or(SHARED))
    }

    #[inline]
    pub(super) const fn index(self) -> usize {
        self.0
    }

    /// Whether other threads count there, too.
    #[inline]
    pub(super) const fn is_shared(self) -> bool {
        self.0 == SHARED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_one_owner_at_a_time_and_another_afterwards() {
        let mine = Place::here();
        assert_eq!(Place::here(), mine);
        for _ in 0..1_000 {
            let other = std::thread::spawn(Place::here).join().unwrap();
            assert!(other != mine || other.is_shared());
        }
        // A thousand came and went, and none of them has kept a place. Others may have, for a while.
        let finds_one = || !std::thread::spawn(Place::here).join().unwrap().is_shared();
        assert!((0..10_000).any(|_| finds_one()));
    }
}
