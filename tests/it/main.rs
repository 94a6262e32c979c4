//! The integration tests, in one binary.

mod concurrency;
mod extremes;
mod flood;
mod layering;
mod limiter;
mod properties;
mod reference;
mod store_contract;
mod vectors;
