//! Subscription tiers that have to be looked up.
