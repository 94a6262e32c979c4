//! Counters that threads update without contention: [`StripedCounters`].

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Number of stripes. More threads than this share them.
const STRIPES: usize = 16;

/// The stripe that a thread adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::observe) struct Stripe(usize);

impl Stripe {
    /// Returns the stripe of this thread. Stripes are assigned round robin.
    #[inline]
    pub(in crate::observe) fn current() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static STRIPE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
        }
        // `try_with` fails while the thread ends.
        Self(STRIPE.try_with(|stripe| *stripe).unwrap_or(0))
    }
}

/// `N` counters, each of them the sum of 16 stripes.
#[derive(Debug)]
pub(super) struct StripedCounters<const N: usize> {
    stripes: [PaddedCounters<N>; STRIPES],
}

/// Two cache lines, which processors fetch in pairs, so that stripes do not share one.
#[derive(Debug)]
#[repr(align(128))]
struct PaddedCounters<const N: usize>([AtomicU64; N]);

impl<const N: usize> Default for StripedCounters<N> {
    fn default() -> Self {
        const { assert!(N <= 16, "one stripe is 128 bytes") };
        Self {
            stripes: [const { PaddedCounters([const { AtomicU64::new(0) }; N]) }; STRIPES],
        }
    }
}

impl<const N: usize> StripedCounters<N> {
    /// Adds to a counter. Returns its value before, in this stripe.
    #[inline]
    pub(super) fn add(&self, stripe: Stripe, counter: usize, count: u64) -> u64 {
        self.stripes[stripe.0].0[counter].fetch_add(count, Ordering::Relaxed)
    }

    pub(super) fn sum(&self, counter: usize) -> u64 {
        let stripes = self.stripes.iter();
        stripes
            .map(|stripe| stripe.0[counter].load(Ordering::Relaxed))
            .fold(0, u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_count_is_lost_with_more_threads_than_stripes() {
        const THREADS: u64 = 3 * STRIPES as u64;
        const TIMES: u64 = 2_000;
        let counters = StripedCounters::<2>::default();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..TIMES {
                        counters.add(Stripe::current(), 0, 1);
                        counters.add(Stripe::current(), 1, 3);
                    }
                });
            }
        });
        assert_eq!(counters.sum(0), THREADS * TIMES);
        assert_eq!(counters.sum(1), 3 * THREADS * TIMES);
    }
}
