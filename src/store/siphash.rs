//! SipHash-1-3 with 128 bits of output, over whole words.
//!
//! By hand, because a decision is so short that a general hasher, which buffers bytes until
//! they make a word, was the largest part of it. The test holds it against the `siphasher`
//! crate.

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
            v1: second ^ 0x646f_7261_6e64_6f6d ^ 0xee,
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

    /// The hash of what was absorbed, `words` whole words, and of seven bytes more: all of
    /// `tail` but its topmost byte, which must be 0.
    #[inline(always)]
    pub(super) const fn finish(self, words: u64, tail: u64) -> (u64, u64) {
        // SipHash ends with the length in bytes, modulo 256, in the topmost byte.
        let mut state = self.absorb(tail | (words * 8 + 7) << 56);
        state.v2 ^= 0xee;
        state = state.round().round().round();
        let first = state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
        state.v1 ^= 0xdd;
        state = state.round().round().round();
        (first, state.v0 ^ state.v1 ^ state.v2 ^ state.v3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siphasher::sip128::SipHasher13;

    #[test]
    fn is_siphash_1_3_128() {
        let mut word = 0x0123_4567_89ab_cdef_u64;
        for words in 0..100_u64 {
            let mut ours = SipHash::new(7, word);
            let mut bytes = Vec::new();
            let theirs = SipHasher13::new_with_keys(7, word);
            for _ in 0..words {
                word = word.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
                ours = ours.absorb(word);
                bytes.extend_from_slice(&word.to_le_bytes());
            }
            let tail = word >> 8;
            bytes.extend_from_slice(&tail.to_le_bytes()[..7]);
            let hash = theirs.hash(&bytes);
            assert_eq!(
                ours.finish(words, tail),
                (hash.h1, hash.h2),
                "{words} words"
            );
        }
    }
}
