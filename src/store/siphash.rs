//! SipHash-1-3 over whole words, and 64 bits more from the state that it ends with.
//!
//! By hand, because a decision is so short that a general hasher, which buffers bytes until
//! they make a word, was the largest part of it. The test holds it against the `siphasher`
//! crate.
//!
//! The first half of the output is SipHash-1-3 to the bit, as the tables of the standard library
//! use it. It alone chooses places, so all that can be seen from outside, by time or by whose
//! counter is lost, is of a hash that was made for that. The second half is only ever compared.
//! `SipHash`'s own way to 128 bits is three rounds more for it, a fifth of a decision's hash; but
//! those are for outputs that somebody looks at. After the same rounds that the first half has
//! been through, another sum of the same state is as good where nobody does: the state has
//! 256 bits, and the two sums have no bit in common but by being sums of all that went in.

/// A hash in progress, or, before anything was absorbed, a secret.
#[derive(Clone, Copy)]
pub(super) struct SipHash {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl SipHash {
    pub(super) const fn new(first: u64, second: u64) -> Self {
        Self {
            v0: first ^ 0x736f_6d65_7073_6575,
            v1: second ^ 0x646f_7261_6e64_6f6d,
            v2: first ^ 0x6c79_6765_6e65_7261,
            v3: second ^ 0x7465_6462_7974_6573,
        }
    }

    #[inline(always)]
    const fn round(self) -> Self {
        let Self {
            mut v0,
            mut v1,
            mut v2,
            mut v3,
        } = self;
        v0 = v0.wrapping_add(v1);
        v2 = v2.wrapping_add(v3);
        v1 = v1.rotate_left(13) ^ v0;
        v3 = v3.rotate_left(16) ^ v2;
        v0 = v0.rotate_left(32);
        v2 = v2.wrapping_add(v1);
        v0 = v0.wrapping_add(v3);
        v1 = v1.rotate_left(17) ^ v2;
        v3 = v3.rotate_left(21) ^ v0;
        v2 = v2.rotate_left(32);
        Self { v0, v1, v2, v3 }
    }

    #[inline(always)]
    pub(super) const fn absorb(mut self, word: u64) -> Self {
        self.v3 ^= word;
        self = self.round();
        self.v0 ^= word;
        self
    }

    /// The hash of what was absorbed and of up to seven bytes more, `len` bytes in all: `tail`,
    /// whose topmost byte must be 0.
    #[inline(always)]
    pub(super) const fn finish(self, len: u64, tail: u64) -> (u64, u64) {
        // SipHash ends with the length, modulo 256, in the topmost byte.
        let mut state = self.absorb(tail | len << 56);
        state.v2 ^= 0xff;
        state = state.round().round().round();
        let second = state.v1 ^ state.v3;
        (state.v0 ^ state.v2 ^ second, second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::Hasher as _;

    use siphasher::sip::SipHasher13;

    #[test]
    fn the_first_half_is_siphash_1_3() {
        let mut word = 0x0123_4567_89ab_cdef_u64;
        for words in 0..100_u64 {
            let mut ours = SipHash::new(7, word);
            let mut theirs = SipHasher13::new_with_keys(7, word);
            for _ in 0..words {
                word = word.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
                ours = ours.absorb(word);
                theirs.write(&word.to_le_bytes());
            }
            for rest in 0..8 {
                let tail = word & !(u64::MAX << (8 * rest));
                let mut theirs = theirs;
                theirs.write(&word.to_le_bytes()[..rest]);
                let (first, _) = ours.finish(words * 8 + rest as u64, tail);
                assert_eq!(first, theirs.finish(), "{words} words and {rest} bytes");
            }
        }
    }

    fn hash(words: &[u64], keys: (u64, u64)) -> [u64; 2] {
        let state = SipHash::new(keys.0, keys.1);
        let state = words.iter().fold(state, |state, word| state.absorb(*word));
        let (first, second) = state.finish(words.len() as u64 * 8, 0);
        [first, second]
    }

    /// Whichever bit of a message or of the key changes, every bit of both halves, and of their
    /// difference, changes half of the time. The last word has gone through the fewest rounds.
    #[test]
    fn every_bit_changes_every_bit_half_of_the_time() {
        const TIMES: u32 = 4_000;
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (random ^ random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ mixed >> 29
        };
        for bit in 0..256 {
            let mut changed = [[0_u32; 64]; 3];
            for _ in 0..TIMES {
                let mut input = [next(), next(), next(), next()];
                let of = |[a, b, c, d]: [u64; 4]| hash(&[a, b], (c, d));
                let [first, second] = of(input);
                input[bit / 64] ^= 1 << (bit % 64);
                let [other, another] = of(input);
                let (first, second) = (first ^ other, second ^ another);
                for (counts, word) in changed.iter_mut().zip([first, second, first ^ second]) {
                    for (at, count) in counts.iter_mut().enumerate() {
                        *count += u32::from(word >> at & 1 == 1);
                    }
                }
            }
            // Six standard deviations of √TIMES / 2.
            let expected = TIMES / 2 - 190..TIMES / 2 + 190;
            let off = changed
                .iter()
                .flatten()
                .find(|count| !expected.contains(count));
            assert_eq!(off, None, "bit {bit}");
        }
    }

    /// As many of either half, cut to 32 bits, meet as chance says: of 2^18 about 8.
    #[test]
    fn halves_meet_by_chance_only() {
        let messages = || (0..1_u64 << 18).map(|number| hash(&[number, number << 32], (3, 4)));
        for half in 0..2 {
            for shift in [0, 16, 32] {
                let all: HashSet<_> = messages()
                    .map(|hash| hash[half] >> shift & u64::from(u32::MAX))
                    .collect();
                let met = (1 << 18) - all.len();
                assert!(met < 30, "{met} of half {half} at {shift}");
            }
        }
    }
}
