//! Tiers that have to be looked up.
