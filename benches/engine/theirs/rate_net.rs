//! rate-net: a token bucket per key, sharded and bounded.

use rate_net::{Eviction, RateLimiter};

use crate::work::Allowance;

/// Its keyed limiter with its default clock and algorithm.
pub struct RateNet(RateLimiter);

impl RateNet {
    pub const NAME: &'static str = "rate-net";
    pub const NOTE: &'static str = "\
rate-net: keys are borrowed (`check_bytes`). It may keep twice as many keys as there are, so that \
none is evicted.";

    pub fn new(keys: &[String], allowance: Allowance) -> Self {
        let limiter = RateLimiter::builder()
            .quota(allowance.amount, allowance.window)
            .eviction(Eviction::capacity(keys.len() * 2));
        let limiter = limiter.try_build().expect("a valid limiter");
        for key in keys {
            assert!(limiter.check_n_bytes(key, allowance.spent).is_allow());
        }
        Self(limiter)
    }

    #[inline]
    pub fn decide(&self, key: &str) -> bool {
        self.0.check_bytes(key).is_allow()
    }
}
