//! A bounded table of requests, found by what they were hashed to already.

use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::subject_hash::RequestPrint;
use crate::hashed::AlreadyHashed;

/// Something for each of so many requests; the ones least in use make way.
pub(super) type ByPrint<V> = Cache<RequestPrint, V, UnitWeighter, AlreadyHashed>;

pub(super) fn by_print<V: Clone>(capacity: usize) -> ByPrint<V> {
    Cache::with(
        capacity,
        capacity as u64,
        UnitWeighter,
        AlreadyHashed::default(),
        DefaultLifecycle::default(),
    )
}
