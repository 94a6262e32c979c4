//! axum_gcra: the limiter below its middleware.

use std::hash::Hash;
use std::num::NonZeroU64;
use std::time::Instant;

use ahash::RandomState;
use axum_gcra::gcra::{Quota, RateLimiter};

use crate::work::Allowance;

/// Its limiter with the hasher that its middleware takes.
pub struct AxumGcra<K: Eq + Hash> {
    limiter: RateLimiter<K, RandomState>,
    quota: Quota,
}

impl<K: Eq + Hash + Clone> AxumGcra<K> {
    pub const NAME: &'static str = "axum_gcra";
    pub const NOTE: &'static str = "\
axum_gcra: takes keys by value; where time is measured they are borrowed strings, so that no \
clone is counted, and where bytes are measured they are owned. It has no bound.";

    pub fn new(keys: impl Iterator<Item = K>, allowance: Allowance) -> Self {
        let burst = NonZeroU64::new(allowance.amount.into()).expect("not zero");
        let this = Self {
            limiter: RateLimiter::default(),
            quota: Quota::new(allowance.interval(), burst),
        };
        for key in keys {
            assert!(this.decide(key.clone()));
            this.limiter
                .penalize_sync(&key, allowance.interval() * (allowance.spent - 1));
        }
        this
    }

    #[inline]
    pub fn decide(&self, key: K) -> bool {
        self.limiter
            .req_sync(key, self.quota, Instant::now())
            .is_ok()
    }
}
