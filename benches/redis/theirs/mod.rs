//! Others who decide in Redis.

pub mod barnacle;
pub mod tower_rate_tier;
