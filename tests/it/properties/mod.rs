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

use proptest::test_runner::{Config, RngSeed};

pub(crate) fn config(cases: u32) -> Config {
    let from_env = Config::default();
    Config {
        cases: match from_env.cases {
            256 => cases,
            asked_for => asked_for,
        },
        rng_seed: match from_env.rng_seed {
            RngSeed::Random => RngSeed::Fixed(0x7011_6a7e),
            asked_for @ RngSeed::Fixed(_) => asked_for,
        },
        // A failure prints its smallest case, which then becomes a test with a name.
        failure_persistence: None,
        ..from_env
    }
}
