//! Settings of a [`Leased`].

use std::sync::Arc;
use std::time::Duration;

use super::Leased;
use super::registry::{LeaseRegistry, Settings};
use crate::error::{ValidationError, ValidationErrors};
use crate::store::Store;

/// Settings of a [`Leased`].
#[derive(Debug)]
#[must_use]
pub struct LeasedBuilder {
    store: Arc<dyn Store>,
    block_size: u64,
    max_ttl: Duration,
    capacity: usize,
}

impl LeasedBuilder {
    const MAX_BLOCK_SIZE: u64 = 1_000_000;
    const LONGEST_TTL: Duration = Duration::from_mins(1);

    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            block_size: 16,
            max_ttl: Duration::from_millis(250),
            capacity: 4_096,
        }
    }

    /// Sets how many requests a block is for at most: 1 to 1,000,000. Default: 16. A value of 1
    /// turns leases off. A process holds up to two blocks of each kind of request.
    pub fn block_size(mut self, requests: u64) -> Self {
        self.block_size = requests;
        self
    }

    /// Sets how long credits can be spent at most: up to 60 seconds. Default: 250 ms.
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.max_ttl = max_ttl;
        self
    }

    /// Sets for how many kinds of requests leases are kept: at least 1. Default: 4,096.
    pub fn capacity(mut self, kinds: usize) -> Self {
        self.capacity = kinds;
        self
    }

    /// Validates the settings and creates the decorator.
    ///
    /// # Errors
    ///
    /// All wrong settings, each with its path: `block_size`, `max_ttl`, `capacity`.
    pub fn build(self) -> Result<Leased, ValidationErrors> {
        let mut errors = ValidationErrors::default();
        if !(1..=Self::MAX_BLOCK_SIZE).contains(&self.block_size) {
            let expected = format!("1 to {} requests", Self::MAX_BLOCK_SIZE);
            let error = ValidationError::new("lease block_size", self.block_size, expected);
            errors.push(error.at("block_size"));
        }
        if self.max_ttl.is_zero() || self.max_ttl > Self::LONGEST_TTL {
            let found = format!("{:?}", self.max_ttl);
            let error = ValidationError::new("lease max_ttl", found, "up to 60 seconds");
            errors.push(error.at("max_ttl"));
        }
        if self.capacity == 0 {
            let expected = "at least one kind of request";
            let error = ValidationError::new("lease capacity", self.capacity, expected);
            errors.push(error.at("capacity"));
        }
        Ok(errors.or(self)?.create())
    }

    pub(super) fn create(self) -> Leased {
        let settings = Settings {
            block_size: self.block_size,
            max_ttl: self.max_ttl,
        };
        Leased {
            registry: Arc::new(LeaseRegistry::new(self.store, settings, self.capacity)),
        }
    }
}
