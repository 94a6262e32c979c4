//! Settings of a memory store: [`MemoryStoreBuilder`].

use std::sync::Arc;

use super::MemoryStore;
use super::shards::{Shard, shards_for};
use super::table::{CellTable, Common};
use crate::error::ValidationError;
use crate::store::epoch::Epoch;
use crate::store::overrides::Overrides;
use crate::store::subject_hash::SubjectHasher;
use crate::store::wall::WallTime;
use crate::sync::{AtomicU64, AtomicUsize, Mutex};

/// Settings of a [`MemoryStore`].
#[derive(Clone, Debug)]
#[must_use]
pub struct MemoryStoreBuilder {
    capacity: usize,
    shards: Option<usize>,
    keys: Option<(u64, u64)>,
}

impl Default for MemoryStoreBuilder {
    fn default() -> Self {
        Self {
            capacity: 1_000_000,
            shards: None,
            keys: None,
        }
    }
}

impl MemoryStoreBuilder {
    const MAX_CAPACITY: usize = u32::MAX as usize;

    /// Sets the maximum number of counters. Default: 1,000,000.
    ///
    /// A counter is one quota of one subject: 10,000 users with three quotas each have 30,000 counters.
    pub fn capacity(mut self, counters: usize) -> Self {
        self.capacity = counters;
        self
    }

    /// Sets the number of shards and the keys of the hash, for model checks and measurements. Not for
    /// production: a caller that has the keys can choose where a counter is placed.
    #[doc(hidden)]
    pub fn insecure_fixed_layout(mut self, shards: usize, keys: (u64, u64)) -> Self {
        self.shards = Some(shards.next_power_of_two());
        self.keys = Some(keys);
        self
    }

    /// Builds the store. Memory is allocated when counters are added.
    ///
    /// # Errors
    ///
    /// Rejects a capacity of 0 and one over 2^32 − 1.
    pub fn build(self) -> Result<MemoryStore, ValidationError> {
        if !(1..=Self::MAX_CAPACITY).contains(&self.capacity) {
            return Err(ValidationError::new(
                "store capacity",
                self.capacity,
                format!("1 to {} counters", Self::MAX_CAPACITY),
            ));
        }
        Ok(self.create())
    }

    pub(super) fn create(self) -> MemoryStore {
        let shards = self.shards.unwrap_or_else(|| shards_for(self.capacity));
        let hasher = self.keys.map_or_else(SubjectHasher::random, |(a, b)| {
            SubjectHasher::from_keys(a, b)
        });
        let mean = self.capacity.div_ceil(shards);
        // Spare cells, because subjects are distributed over shards at random: eight standard deviations,
        // and a sixteenth of the mean.
        let slack = if shards == 1 {
            0
        } else {
            mean / 16 + 8 * mean.isqrt()
        };
        let common = Arc::new(Common {
            limit: mean + slack,
            wall: WallTime::default(),
        });
        let shard = || Shard(Mutex::new(CellTable::new(Arc::clone(&common))));
        MemoryStore {
            shards: (0..shards).map(|_| shard()).collect(),
            overflow: hasher.reserved(0),
            hasher,
            capacity: self.capacity,
            common,
            keys: AtomicUsize::new(0),
            next_to_sweep: AtomicUsize::new(0),
            evicted: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
            overrides: Overrides::new(),
            epoch: Epoch::default(),
        }
    }
}
