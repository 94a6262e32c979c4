//! Random cases that every run repeats.

use proptest::test_runner::{Config, RngSeed};

/// Settings of a property test: as many cases as `cases`, from a fixed seed.
///
/// `PROPTEST_CASES` and `PROPTEST_RNG_SEED` override both.
pub(crate) fn property_config(cases: u32) -> Config {
    let from_env = Config::default();
    Config {
        cases: match from_env.cases {
            256 => cases,
            set => set,
        },
        rng_seed: match from_env.rng_seed {
            RngSeed::Random => RngSeed::Fixed(0x7011_6a7e),
            set @ RngSeed::Fixed(_) => set,
        },
        // A failure prints its smallest case, which then becomes a test with a name.
        failure_persistence: None,
        ..from_env
    }
}

/// Marsaglia's xorshift, because its sequence never changes and it is short in any language.
pub(crate) struct Xorshift(pub(crate) u64);

impl Xorshift {
    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
