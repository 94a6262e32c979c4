//! The integration tests, in one binary.

mod concurrency;
mod flood;
mod layering;
mod limiter;
mod store_contract;
