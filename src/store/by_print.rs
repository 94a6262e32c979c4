//! A bounded table of requests, found by what they were hashed to already.

use std::hash::{BuildHasherDefault, Hasher};

use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::fingerprint::RequestPrint;

/// Something for each of so many requests; the ones least in use make way.
pub(super) type ByPrint<V> = Cache<RequestPrint, V, UnitWeighter, BuildHasherDefault<Hashed>>;

pub(super) fn by_print<V: Clone>(capacity: usize) -> ByPrint<V> {
    Cache::with(
        capacity,
        capacity as u64,
        UnitWeighter,
        BuildHasherDefault::default(),
        DefaultLifecycle::default(),
    )
}

/// Takes a word for its own hash: it comes from one that is keyed, and nobody outside can choose
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hashed(u64);

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
