//! Maps by numbers that are hashes already.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by hashes under a key that nobody knows: hashing them again would protect from nothing.
pub(super) type ByHash<V> = HashMap<u64, V, BuildHasherDefault<AsItIs>>;

/// Takes a number as it is.
#[derive(Debug, Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only numbers are ever written; whatever else comes is not lost either.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
