//! Randomness for delays, so that the instances of a fleet do not act at the same instant.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

/// Returns a random number from 0 to 1.
pub(super) fn chance() -> f64 {
    let random = RandomState::new().hash_one(0);
    f64::from((random >> 32) as u32) / f64::from(u32::MAX)
}
