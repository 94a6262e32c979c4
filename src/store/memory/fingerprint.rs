//! 128 bits instead of a string: keyed, so that nobody outside can choose where they land.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use siphasher::sip128::{Hasher128 as _, SipHasher13};

use crate::key::{Counter, Subject};

/// The secret of one store.
#[derive(Clone)]
pub(super) struct Secret(SipHasher13);

/// A subject under the secret.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// Chooses the shard and the bucket, so all counters of a subject are neighbours.
    pub(super) place: u64,
    rest: u64,
}

/// One counter of one subject: what a cell is found by.
///
/// The 64 bits that choose the place stay as they are, so that a subject can be found as a
/// whole; the other 64 are mixed with the counter's number.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) place: u64,
    rest: u64,
}

impl Fingerprint {
    #[inline]
    pub(super) fn tag(self, counter: &Counter) -> Tag {
        Tag {
            place: self.place,
            rest: self.rest ^ counter.id(),
        }
    }
}

impl Secret {
    /// Keys from the operating system's randomness, through the standard library.
    pub(super) fn random() -> Self {
        let random = RandomState::new();
        Self::from_keys(random.hash_one(0), random.hash_one(1))
    }

    pub(super) fn from_keys(first: u64, second: u64) -> Self {
        Self(SipHasher13::new_with_keys(first, second))
    }

    #[inline]
    pub(super) fn fingerprint(&self, subject: &Subject<'_>) -> Fingerprint {
        // Most subjects are short: collected first, they are hashed in one go, which is
        // faster than piece by piece.
        let mut short = [0_u8; 128];
        let mut len = 0;
        let mut fits = true;
        subject.encode(|bytes| {
            let end = len + bytes.len();
            match short.get_mut(len..end) {
                Some(free) if fits => {
                    free.copy_from_slice(bytes);
                    len = end;
                }
                _ => fits = false,
            }
        });
        let hash = if fits {
            self.0.hash(&short[..len])
        } else {
            let mut hasher = self.0;
            subject.encode(|bytes| hasher.write(bytes));
            hasher.finish128()
        };
        Fingerprint {
            place: hash.h1,
            rest: hash.h2,
        }
    }

    /// A fingerprint that no subject has but by a chance of 2^-128.
    pub(super) fn reserved(&self, number: u64) -> Fingerprint {
        let mut hasher = self.0;
        hasher.write_u8(0); // no encoded dimension starts with 0
        hasher.write_u64(number);
        let hash = hasher.finish128();
        Fingerprint {
            place: hash.h1,
            rest: hash.h2,
        }
    }
}
