//! The promises as properties: thousands of quotas and traces, against the reference model or
//! against what the promise says in so many words.
//!
//! Every run sees the same cases. `PROPTEST_RNG_SEED` and `PROPTEST_CASES` look elsewhere and
//! further.

mod agreement;
mod bounds;
pub(crate) mod counters;
mod decorators;
mod flood;
mod map;
mod quotas;
mod refund;
mod scripts;
mod sliding_bounds;
mod store;
mod stores;
mod stories;
mod text;
mod time;
pub(crate) mod traces;

pub(crate) use crate::support::random::property_config as config;
