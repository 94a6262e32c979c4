//! Random jitter, so that clients do not send in step.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// `SplitMix64` generator. Not cryptographic: only waits depend on it.
#[derive(Debug)]
pub(super) struct Jitter(AtomicU64);

impl Jitter {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Returns a generator with a random seed.
    pub(super) fn new() -> Self {
        Self::seeded(RandomState::new().hash_one(0))
    }

    /// Returns a generator with this seed, for tests.
    pub(super) const fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Returns a random number in `0.0..1.0`.
    pub(super) fn fraction(&self) -> f64 {
        let state = self.0.fetch_add(Self::STEP, Ordering::Relaxed);
        let mut mixed = state.wrapping_add(Self::STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        f64::from((mixed >> 32) as u32) / 4_294_967_296.0
    }

    /// Returns a random part of `max`.
    pub(super) fn part_of(&self, max: Duration) -> Duration {
        multiply(max, self.fraction())
    }
}

/// Multiplies a duration. Saturates at `Duration::MAX`.
pub(super) fn multiply(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_uniform() {
        let jitter = Jitter::seeded(7);
        let mut parts = [0_u32; 10];
        for _ in 0..10_000 {
            let micros = jitter.part_of(Duration::from_micros(10)).as_nanos() / 1_000;
            parts[usize::try_from(micros).unwrap()] += 1;
        }
        assert!(
            parts.iter().all(|count| (850..1_150).contains(count)),
            "{parts:?}"
        );
    }

    #[test]
    fn multiples_do_not_overflow() {
        assert_eq!(multiply(Duration::MAX, 2.0), Duration::MAX);
        assert_eq!(
            multiply(Duration::from_secs(1), f64::INFINITY),
            Duration::MAX
        );
        assert_eq!(multiply(Duration::ZERO, f64::INFINITY), Duration::MAX);
        assert_eq!(
            multiply(Duration::from_secs(2), 0.5),
            Duration::from_secs(1)
        );
    }
}
