//! A little randomness, so that a fleet does not march in step.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

/// Anything from 0 to 1, by the operating system's randomness.
pub(super) fn chance() -> f64 {
    let random = RandomState::new().hash_one(0);
    f64::from((random >> 32) as u32) / f64::from(u32::MAX)
}
