//! Bounded cache with hashed requests as keys: [`ByFingerprint`].

use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::subject_hash::RequestFingerprint;
use crate::hashed::AlreadyHashed;

/// Cache by request. Evicts entries that are used least.
pub(super) type ByFingerprint<V> = Cache<RequestFingerprint, V, UnitWeighter, AlreadyHashed>;

/// Returns an empty cache for `capacity` requests.
pub(super) fn by_fingerprint<V: Clone>(capacity: usize) -> ByFingerprint<V> {
    Cache::with(
        capacity,
        capacity as u64,
        UnitWeighter,
        AlreadyHashed::default(),
        DefaultLifecycle::default(),
    )
}
