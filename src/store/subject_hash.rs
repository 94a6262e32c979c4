//! Keyed 128-bit hashes of subjects: [`SubjectHasher`] and [`Fingerprint`].

mod words;

#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hash, Hasher};
use std::net::IpAddr;

use self::words::{WORD, WordHasher, hash_text, short_name};
use super::siphash::SipHash;
use crate::batch::{Batch, Check, Group};
use crate::identity_types::Identity;
use crate::key::{Counter, Subject, Value};

/// Hasher of one store, with a random key, so that callers cannot choose where a counter is placed.
///
/// Several kinds of input are hashed. Each begins with a word that no other kind begins with; that
/// word is absorbed when the hasher is built.
#[derive(Clone)]
pub(super) struct SubjectHasher {
    text: SipHash,
    named_text: SipHash,
    named_address: SipHash,
    /// `named_address` after the empty name.
    address: SipHash,
    /// `named_address` after the name `ip`.
    ip_address: SipHash,
    subject: SipHash,
    request: SipHash,
}

/// Keyed hash of a subject.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// Selects shard and bucket, so all counters of a subject are neighbours. Never 0.
    pub(super) place: u64,
    rest: u64,
}

/// Keyed hash of a batch: subjects, counters, costs and limits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestFingerprint(u64, u64);

/// The first half selects a bucket; both halves are compared.
impl Hash for RequestFingerprint {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// Key of a cell: one counter of one subject.
///
/// `place` is that of the subject's fingerprint, so that all counters of a subject can be found. The
/// other half is combined with the id of the counter.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) place: u64,
    rest: u64,
}

impl Tag {
    /// Compares the half that distinguishes the counters of a subject.
    #[inline]
    pub(super) fn has_rest_of(self, other: Self) -> bool {
        self.rest == other.rest
    }

    /// Returns whether it is the tag of an empty cell. No counter has it.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.place == 0
    }
}

impl From<(u64, u64)> for Fingerprint {
    #[inline(always)]
    fn from((place, rest): (u64, u64)) -> Self {
        // 0 marks empty cells.
        Self {
            place: place.max(1),
            rest,
        }
    }
}

impl Fingerprint {
    /// Returns a fingerprint with this place.
    pub(super) fn with_place(self, place: u64) -> Self {
        Self::from((place, self.rest))
    }

    #[inline]
    pub(super) fn tag(self, counter: &Counter) -> Tag {
        Tag {
            place: self.place,
            rest: self.rest ^ counter.id(),
        }
    }
}

impl SubjectHasher {
    /// Takes keys from the operating system's randomness, through the standard library.
    pub(super) fn random() -> Self {
        let random = RandomState::new();
        Self::from_keys(random.hash_one(0), random.hash_one(1))
    }

    pub(super) fn from_keys(first: u64, second: u64) -> Self {
        let keyed = SipHash::new(first, second);
        let named_address = keyed.absorb(5);
        Self {
            text: keyed.absorb(1),
            subject: keyed.absorb(2),
            request: keyed.absorb(3),
            named_text: keyed.absorb(4),
            named_address,
            address: named_address.absorb(short_name("")),
            ip_address: named_address.absorb(short_name(Identity::IP)),
        }
    }

    /// Returns the fingerprints of the subjects of the first `N` checks, in their order. Checks that
    /// point at one subject hash it once.
    #[inline(always)]
    pub(super) fn fingerprints<const N: usize>(&self, checks: &[Check<'_>]) -> [Fingerprint; N] {
        let mut prints = [Fingerprint::default(); N];
        for (index, check) in checks.iter().enumerate().take(N) {
            let is_same = |other: &Check<'_>| std::ptr::eq(other.subject(), check.subject());
            prints[index] = match checks[..index].iter().rposition(is_same) {
                Some(other) => prints[other],
                None => self.fingerprint(check.subject()),
            };
        }
        prints
    }

    #[inline(always)]
    pub(super) fn fingerprint(&self, subject: &Subject<'_>) -> Fingerprint {
        match subject.only() {
            Some(("", Value::Text(text))) => hash_text(self.text, WORD, text),
            // Names of up to seven bytes fit into a word together with their length.
            Some((name, Value::Text(text))) if name.len() < 8 => {
                hash_text(self.named_text.absorb(short_name(name)), 2 * WORD, text)
            }
            Some((name, Value::Address(address))) if name.len() < 8 => {
                self.fingerprint_of_address(name, address)
            }
            _ => self.fingerprint_of_any(subject),
        }
    }

    #[inline]
    fn fingerprint_of_address(&self, name: &str, address: IpAddr) -> Fingerprint {
        let hash = match name {
            "" => self.address,
            Identity::IP => self.ip_address,
            other => self.named_address.absorb(short_name(other)),
        };
        Fingerprint::from(match address.to_canonical() {
            IpAddr::V4(v4) => hash.finish(2 * WORD + 4, v4.to_bits().into()),
            IpAddr::V6(v6) => {
                let octets = v6.octets();
                let (words, _) = octets.as_chunks::<8>();
                let words = words.iter().map(|word| u64::from_le_bytes(*word));
                words.fold(hash, SipHash::absorb).finish(4 * WORD, 0)
            }
        })
    }

    fn fingerprint_of_any(&self, subject: &Subject<'_>) -> Fingerprint {
        let mut words = WordHasher::new(self.subject);
        for (name, value) in subject.dimensions() {
            match value {
                Value::Text(text) => words.dimension(b't', name, text.as_bytes()),
                Value::Negative(number) => words.dimension(b'm', name, &number.to_le_bytes()),
                Value::Number(number) => words.dimension(b'n', name, &number.to_le_bytes()),
                Value::Address(address) => match address.to_canonical() {
                    IpAddr::V4(v4) => words.dimension(b'4', name, &v4.octets()),
                    IpAddr::V6(v6) => words.dimension(b'6', name, &v6.octets()),
                },
            }
        }
        words.finish()
    }

    /// Returns the hash of a request with these checks, whose subjects have these fingerprints.
    #[inline]
    pub(super) fn request(
        &self,
        checks: &[Check<'_>],
        prints: &[Fingerprint],
    ) -> RequestFingerprint {
        self.request_by(checks.iter().zip(prints.iter().copied()))
    }

    /// Returns the hash of a batch.
    #[inline]
    pub(super) fn request_of(&self, batch: &Batch<'_>) -> RequestFingerprint {
        let checks = batch.checks();
        let mut last: Option<(&Subject<'_>, Fingerprint)> = None;
        self.request_by(checks.iter().map(|check| {
            let print = match last {
                Some((subject, known)) if std::ptr::eq(subject, check.subject()) => known,
                _ => self.fingerprint(check.subject()),
            };
            last = Some((check.subject(), print));
            (check, print)
        }))
    }

    #[inline]
    fn request_by<'c>(
        &self,
        checks: impl Iterator<Item = (&'c Check<'c>, Fingerprint)>,
    ) -> RequestFingerprint {
        let (mut hash, mut len) = (self.request, WORD);
        for (check, print) in checks {
            let Tag { place, rest } = print.tag(check.counter());
            let quota = check.quota();
            let group = match check.group() {
                Group::Live => 0,
                Group::DryRun(number) => 1 + u64::from(number),
            };
            let (cost, amount, burst) = (check.cost(), quota.amount(), quota.burst());
            for word in [place, rest, group, cost, amount, burst] {
                hash = hash.absorb(word);
                len += WORD;
            }
        }
        let (first, second) = hash.finish(len, 0);
        RequestFingerprint(first, second)
    }

    /// Returns a fingerprint that no subject has, except with a probability of 2^-128.
    pub(super) fn reserved(&self, number: u64) -> Fingerprint {
        let mut words = WordHasher::new(self.subject);
        words.dimension(b'r', "", &number.to_le_bytes());
        words.finish()
    }
}
