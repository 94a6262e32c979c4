//! Property tests of the guarantees: random quotas and traces, compared with the reference model or
//! with the guarantee itself.
//!
//! Every run has the same cases, unless `PROPTEST_RNG_SEED` or `PROPTEST_CASES` is set.

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
