//! Maps whose keys are keyed hashes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Builds a [`PassThroughHasher`].
pub(crate) type AlreadyHashed = BuildHasherDefault<PassThroughHasher>;

/// A map by keyed hash.
pub(crate) type ByHash<V> = HashMap<u64, V, AlreadyHashed>;

/// Uses the key as its own hash.
///
/// The key is the output of a keyed hash, which clients cannot choose. Another hash would add cost and
/// no protection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PassThroughHasher(u64);

impl Hasher for PassThroughHasher {
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
