//! For tables by what is a hash already.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`Hashed`].
pub(crate) type AlreadyHashed = BuildHasherDefault<Hashed>;

/// A map by such hashes.
pub(crate) type ByHash<V> = HashMap<u64, V, AlreadyHashed>;

/// Takes a word for its own hash: it comes from one that is keyed, and nobody outside can choose
/// it. To hash it again would protect from nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = self.0.rotate_left(8) ^ word;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
