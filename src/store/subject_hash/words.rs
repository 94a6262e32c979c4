//! Encoding of subjects as whole words for [`SipHash`].

use super::Fingerprint;
use crate::store::siphash::SipHash;

/// Bytes of a word.
pub(super) const WORD: u64 = 8;

/// Hash over the dimensions of a subject.
///
/// For each dimension it takes the name and the value, each starting with a word of its own, and then
/// a word with kind and lengths. Decoded from the end, no two subjects have the same words.
pub(super) struct WordHasher {
    hash: SipHash,
    /// In bytes.
    len: u64,
    /// Kind and lengths of the last dimension. Kept back for the end, where [`SipHash::finish`] has
    /// seven bytes to fill.
    tail: u64,
}

impl WordHasher {
    #[inline]
    pub(super) const fn new(hash: SipHash) -> Self {
        Self {
            hash,
            len: WORD,
            tail: 0,
        }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, word: u64) {
        self.hash = self.hash.absorb(word);
        self.len += WORD;
    }

    #[inline(always)]
    pub(super) fn dimension(&mut self, kind: u8, name: &str, value: &[u8]) {
        const FITS: usize = 1 << 24;
        if self.tail != 0 {
            self.push(self.tail);
        }
        if !name.is_empty() {
            self.bytes(name.as_bytes());
        }
        self.bytes(value);
        self.tail = if name.len() < FITS && value.len() < FITS {
            u64::from(kind) | (name.len() as u64) << 8 | (value.len() as u64) << 32
        } else {
            // Lengths over 24 bits take a word each. The upper-case kind marks them.
            self.push(name.len() as u64);
            self.push(value.len() as u64);
            u64::from(kind.to_ascii_uppercase())
        };
    }

    /// Absorbs bytes as whole words, the last of which overlaps the one before. The length is hashed
    /// too, so the overlap is as good as a shorter word, and no byte is copied on its own.
    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.push(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            self.push(match bytes.last_chunk::<8>() {
                Some(last) => u64::from_le_bytes(*last),
                None => short_word(bytes),
            });
        }
    }

    #[inline(always)]
    pub(super) fn finish(self) -> Fingerprint {
        Fingerprint::from(self.hash.finish(self.len + 7, self.tail))
    }
}

/// Hashes a text after a prefix of `len` bytes, byte for byte.
#[inline(always)]
pub(super) fn hash_text(mut hash: SipHash, len: u64, text: &str) -> Fingerprint {
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    for word in words {
        hash = hash.absorb(u64::from_le_bytes(*word));
    }
    let tail = match text.as_bytes().last_chunk::<8>() {
        // The last `rest.len()` of these eight bytes.
        Some(last) => u64::from_le_bytes(*last) >> 8 >> (56 - 8 * rest.len()),
        None => short_word(rest),
    };
    Fingerprint::from(hash.finish(len + text.len() as u64, tail))
}

/// Returns a name of up to seven bytes and its length as a word.
#[inline]
pub(super) fn short_name(name: &str) -> u64 {
    short_word(name.as_bytes()) | (name.len() as u64) << 56
}

/// Returns up to seven bytes as a word.
#[inline]
pub(super) fn short_word(bytes: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (bytes.len() - 4));
    }
    let bytes = bytes.iter().rev();
    bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
}
