//! Bounded cache with hashed requests as keys: [`ByPrint`].

use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::subject_hash::RequestPrint;
use crate::hashed::AlreadyHashed;

/// Cache by request. Evicts entries that are used least.
pub(super) type ByPrint<V> = Cache<RequestPrint, V, UnitWeighter, AlreadyHashed>;

/// Returns an empty cache for `capacity` requests.
pub(super) fn by_print<V: Clone>(capacity: usize) -> ByPrint<V> {
    Cache::with(
        capacity,
        capacity as u64,
        UnitWeighter,
        AlreadyHashed::default(),
        DefaultLifecycle::default(),
    )
}
