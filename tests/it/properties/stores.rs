//! Small stores, and a counter of each algorithm.

use proptest::prelude::*;
use tollgate::{Counter, MemoryStore};

use crate::support::store_ext::StoreExt as _;

pub(super) const QUOTAS: [&str; 5] = [
    "3/1s",
    "4/1s, fixed-window",
    "5/1s, sliding-buckets, buckets 4",
    "3/1s, sliding-log",
    "4/1s, token-bucket, burst 3",
];

pub(super) fn counters() -> Vec<Counter> {
    let counter = |text: &&str| Counter::new("rule", text.parse().expect("a valid quota"));
    QUOTAS
        .iter()
        .map(|text| counter(text).expect("a valid name"))
        .collect()
}

/// Times between requests, around the windows and buckets of [`QUOTAS`].
pub(super) fn gaps() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => Just(0),
        3 => 1..200_000_u64,
        1 => prop::sample::select(vec![249_999, 250_000, 999_999, 1_000_000, 2_500_000]),
    ]
}

/// Returns a store with the same layout in each run.
pub(super) fn store(capacity: usize, shards: usize, keys: (u64, u64)) -> MemoryStore {
    let builder = MemoryStore::builder().capacity(capacity);
    builder
        .insecure_fixed_layout(shards, keys)
        .build()
        .expect("a valid capacity")
}

pub(super) fn len(store: &MemoryStore) -> usize {
    store.len().wait().expect("memory answers")
}

/// Adds up the costs of checks on the same counter, because a batch may have each counter once.
pub(super) fn merged<S: Copy + PartialEq>(requested: &[(S, usize, u64)]) -> Vec<(S, usize, u64)> {
    let mut merged: Vec<(S, usize, u64)> = Vec::new();
    for (subject, counter, cost) in requested {
        let twin = |other: &&mut (S, usize, u64)| (other.0, other.1) == (*subject, *counter);
        match merged.iter_mut().find(twin) {
            Some(twin) => twin.2 += cost,
            None => merged.push((*subject, *counter, *cost)),
        }
    }
    merged
}
