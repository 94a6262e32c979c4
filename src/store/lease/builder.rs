//! Settings of a [`Leased`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use super::{LeaseRegistry, Leased, Settings};
use crate::error::Invalid;
use crate::store::by_print::by_print;
use crate::store::fingerprint::Secret;
use crate::store::{Store, epoch_of};
use crate::sync::Mutex;

/// Settings of a [`Leased`].
#[derive(Debug)]
#[must_use]
pub struct LeasedBuilder {
    store: Arc<dyn Store>,
    block: u64,
    max_ttl: Duration,
    capacity: usize,
}

impl LeasedBuilder {
    const LARGEST_BLOCK: u64 = 1_000_000;
    const LONGEST: Duration = Duration::from_mins(1);

    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            block: 16,
            max_ttl: Duration::from_millis(250),
            capacity: 4_096,
        }
    }

    /// How many requests of a kind are in a block at most; 16 by default, and 1 takes nothing ahead.
    /// Of what is hot, twice as many may be taken and not spent; and up to 32 times as many of what
    /// spends two blocks within a round trip, as long as sixteen times as much is left.
    pub fn block_size(mut self, requests: u64) -> Self {
        self.block = requests;
        self
    }

    /// For how long what was taken can be spent at most; a quarter of a second by default. What
    /// is hot is spent much sooner.
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.max_ttl = max_ttl;
        self
    }

    /// Of how many kinds of requests it is noted how hot they are; 4,096 by default.
    pub fn capacity(mut self, kinds: usize) -> Self {
        self.capacity = kinds;
        self
    }

    /// Checks the settings and builds the store.
    pub fn build(self) -> Result<Leased, Invalid> {
        if !(1..=Self::LARGEST_BLOCK).contains(&self.block) {
            let expected = format!("1 to {} requests", Self::LARGEST_BLOCK);
            return Err(Invalid::new("lease block", self.block, expected));
        }
        if self.max_ttl.is_zero() || self.max_ttl > Self::LONGEST {
            let found = format!("{:?}", self.max_ttl);
            return Err(Invalid::new("lease time", found, "up to 60 seconds"));
        }
        if self.capacity == 0 {
            let expected = "at least one kind of request";
            return Err(Invalid::new("lease capacity", self.capacity, expected));
        }
        Ok(self.create())
    }

    pub(super) fn create(self) -> Leased {
        let settings = Settings {
            block: self.block,
            max_ttl: self.max_ttl,
        };
        Leased {
            shared: Arc::new(LeaseRegistry {
                epoch: AtomicU64::new(epoch_of(&*self.store)),
                store: self.store,
                settings,
                secret: Secret::random(),
                pool: by_print(self.capacity),
                taken: Mutex::new(VecDeque::new()),
                is_closed: AtomicBool::new(false),
            }),
        }
    }
}
