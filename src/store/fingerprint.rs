//! 128 bits instead of a string: keyed, so that nobody outside can choose where they land.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hash, Hasher};
use std::net::IpAddr;

use super::siphash::SipHash;
use crate::batch::{Batch, Check, Group, MAX_CHECKS};
use crate::key::{Counter, Subject, Value};
use crate::who::Identity;

/// In bytes.
const WORD: u64 = 8;

/// The secret of one store.
///
/// Several sorts of things are hashed, and each begins with a word that no other begins with. It is
/// absorbed when the secret is made.
#[derive(Clone)]
pub(super) struct Secret {
    text: SipHash,
    named_text: SipHash,
    named_address: SipHash,
    /// With the names that most have.
    address: SipHash,
    ip_address: SipHash,
    subject: SipHash,
    request: SipHash,
}

/// A subject under the secret.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// Never 0. Chooses the shard and the bucket, so all counters of a subject are neighbours.
    pub(super) place: u64,
    rest: u64,
}

/// A whole request: whose counters, which, at what cost, and what the limits were.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestPrint(u64, u64);

/// Half of it chooses a place; all of it is compared.
impl Hash for RequestPrint {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
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

impl Tag {
    /// Whether they are the same in the half that tells the counters of a subject apart.
    #[inline]
    pub(super) fn may_be(self, other: Self) -> bool {
        self.rest == other.rest
    }

    /// Whether it is the tag of an empty cell, which no counter has.
    #[inline]
    pub(super) fn is_nobody(self) -> bool {
        self.place == 0
    }
}

impl From<(u64, u64)> for Fingerprint {
    #[inline(always)]
    fn from((place, rest): (u64, u64)) -> Self {
        // 0 is for empty cells.
        Self {
            place: place.max(1),
            rest,
        }
    }
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
        let secret = SipHash::new(first, second);
        let named_address = secret.absorb(5);
        Self {
            text: secret.absorb(1),
            subject: secret.absorb(2),
            request: secret.absorb(3),
            named_text: secret.absorb(4),
            named_address,
            address: named_address.absorb(short_name("")),
            ip_address: named_address.absorb(short_name(Identity::IP)),
        }
    }

    /// The fingerprints of the subjects of these checks, in their order.
    pub(super) fn fingerprints(&self, checks: &[Check<'_>]) -> [Fingerprint; MAX_CHECKS] {
        let mut prints = [Fingerprint::default(); MAX_CHECKS];
        self.fill_in(&mut prints, checks);
        prints
    }

    /// The same, as many as there is room for.
    #[inline(always)]
    pub(super) fn fill_in(&self, prints: &mut [Fingerprint], checks: &[Check<'_>]) {
        let mut last: Option<(&Subject<'_>, Fingerprint)> = None;
        for (print, check) in prints.iter_mut().zip(checks) {
            let subject = check.subject();
            // Checks of one subject follow each other and point at the same one.
            *print = match last {
                Some((same, known)) if std::ptr::eq(same, subject) => known,
                _ => self.fingerprint(subject),
            };
            last = Some((subject, *print));
        }
    }

    #[inline(always)]
    pub(super) fn fingerprint(&self, subject: &Subject<'_>) -> Fingerprint {
        match subject.only() {
            Some(("", Value::Text(text))) => self.fingerprint_of_text(text),
            // In seven bytes, so that the eighth can say how many they are.
            Some((name, Value::Text(text))) if name.len() < 8 => {
                of_text(self.named_text.absorb(short_name(name)), 2 * WORD, text)
            }
            Some((name, Value::Address(address))) if name.len() < 8 => {
                self.fingerprint_of_address(name, address)
            }
            _ => self.fingerprint_of_any(subject),
        }
    }

    /// Of a text that is a whole subject.
    #[inline(always)]
    pub(super) fn fingerprint_of_text(&self, text: &str) -> Fingerprint {
        of_text(self.text, WORD, text)
    }

    /// For those who are known by where they come from.
    #[inline]
    pub(super) fn fingerprint_of_address(&self, name: &str, address: IpAddr) -> Fingerprint {
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
        let mut words = Words::new(self.subject);
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

    /// The fingerprint of a request, of whose subjects these are the fingerprints.
    #[inline]
    pub(super) fn request(&self, checks: &[Check<'_>], prints: &[Fingerprint]) -> RequestPrint {
        let (mut hash, mut len) = (self.request, WORD);
        for (check, print) in checks.iter().zip(prints) {
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
        RequestPrint(first, second)
    }

    /// The same, from the beginning.
    #[inline]
    pub(super) fn request_of(&self, batch: &Batch<'_>) -> RequestPrint {
        if let [check] = batch.checks()
            && let Some(text) = check.subject().only_text()
        {
            return self.request_of_text(text, check);
        }
        let checks = batch.checks();
        self.request(checks, &self.fingerprints(checks))
    }

    /// For what most requests are, in one go. The lengths that a text ends with are never 0, as the
    /// end of the others is, so that no two are alike.
    fn request_of_text(&self, text: &str, check: &Check<'_>) -> RequestPrint {
        let (mut words, quota) = (Words::new(self.request), check.quota());
        words.dimension(b't', "", text.as_bytes());
        for word in [
            check.counter().id(),
            check.cost(),
            quota.amount(),
            quota.burst(),
        ] {
            words.push(word);
        }
        let Fingerprint { place, rest } = words.finish();
        RequestPrint(place, rest)
    }

    /// A fingerprint that no subject has but by a chance of 2^-128.
    pub(super) fn reserved(&self, number: u64) -> Fingerprint {
        let mut words = Words::new(self.subject);
        words.dimension(b'r', "", &number.to_le_bytes());
        words.finish()
    }
}

/// For what most subjects are: the text, as it would be hashed anywhere, after `len` bytes.
#[inline(always)]
fn of_text(mut hash: SipHash, len: u64, text: &str) -> Fingerprint {
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    for word in words {
        hash = hash.absorb(u64::from_le_bytes(*word));
    }
    let tail = match text.as_bytes().last_chunk::<8>() {
        // Those of the last eight bytes that are not in a whole word.
        Some(last) => u64::from_le_bytes(*last) >> 8 >> (56 - 8 * rest.len()),
        None => short_word(rest),
    };
    Fingerprint::from(hash.finish(len + text.len() as u64, tail))
}

/// A name of up to seven bytes, and how many they are.
#[inline]
fn short_name(name: &str) -> u64 {
    short_word(name.as_bytes()) | (name.len() as u64) << 56
}

/// A subject, word by word: for each dimension its name and its value, each from a word of its
/// own, and after them their lengths. Read from the end, there is only one subject that has
/// these words.
struct Words {
    hash: SipHash,
    /// In bytes.
    len: u64,
    /// The lengths of the last dimension. They wait, because the hash has seven bytes to fill
    /// up at its end.
    tail: u64,
}

impl Words {
    #[inline]
    const fn new(hash: SipHash) -> Self {
        Self {
            hash,
            len: WORD,
            tail: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, word: u64) {
        self.hash = self.hash.absorb(word);
        self.len += WORD;
    }

    #[inline(always)]
    fn dimension(&mut self, kind: u8, name: &str, value: &[u8]) {
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
            // Whole words for lengths that nobody has, before a kind that nobody else has.
            self.push(name.len() as u64);
            self.push(value.len() as u64);
            u64::from(kind.to_ascii_uppercase())
        };
    }

    /// Whole words, the last of which overlaps the one before: with the length known, that is
    /// as good as a shorter one, and nothing has to be copied byte by byte.
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
    fn finish(self) -> Fingerprint {
        Fingerprint::from(self.hash.finish(self.len + 7, self.tail))
    }
}

/// Up to seven bytes as a word.
#[inline]
fn short_word(bytes: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (bytes.len() - 4));
    }
    let bytes = bytes.iter().rev();
    bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use siphasher::sip::SipHasher13;

    use super::*;

    /// Whose counter, which, at what cost, under what limits: all of it tells requests apart.
    #[test]
    fn requests_differ_in_all_that_matters() {
        let secret = Secret::from_keys(1, 2);
        let [hour, minute] = ["5/hour", "5/minute"].map(|quota| {
            let quota = quota.parse().expect("valid");
            Counter::new("rule", quota).expect("valid")
        });
        let more = hour.quota().with_amount(6).expect("valid");
        let subjects = [
            Subject::from("alice"),
            Subject::from("bob"),
            Subject::from([("user", "alice")]),
            Subject::from(7_u64),
        ];
        let mut prints = HashSet::new();
        for subject in &subjects {
            let check = Check::new(subject, &hour);
            let other = Check::new(subject, &minute);
            for checks in [
                vec![check],
                vec![other],
                vec![check.with_cost(2)],
                vec![check.with_quota(&more)],
                vec![check, other],
                vec![other, check],
            ] {
                let batch = Batch::new(&checks).expect("valid");
                let RequestPrint(first, second) = secret.request_of(&batch);
                prints.insert((first, second));
            }
        }
        assert_eq!(prints.len(), subjects.len() * 6);
    }

    /// A text is hashed as it is, after the word that says so.
    #[test]
    fn the_place_of_a_text_is_its_siphash() {
        let secret = Secret::from_keys(1, 2);
        let text: String = ('!'..='~').collect();
        for len in 0..text.len() {
            let text = &text[..len];
            let mut theirs = SipHasher13::new_with_keys(1, 2);
            theirs.write_u64(1);
            theirs.write(text.as_bytes());
            let ours = secret.fingerprint(&Subject::from(text));
            assert_eq!(ours.place, theirs.finish(), "{text}");
        }
    }

    /// An address is one, however it is written, and no number, text or other address; also with
    /// names that end in nothing, and with those that are too long for the short way.
    #[test]
    fn an_address_is_hashed_as_nothing_else() {
        let secret = Secret::from_keys(1, 2);
        let print = |subject: &Subject<'_>| {
            let Fingerprint { place, rest } = secret.fingerprint(subject);
            (place, rest)
        };
        let addresses = [
            "0.0.0.0",
            "1.0.0.0",
            "0.0.0.1",
            "::",
            "::1",
            "1::",
            "::1:0:0:0:0",
        ];
        let names = ["", "\0", "a", "ip", "sevenof", "eightofi", "nineofitt"];
        let mut prints = HashSet::new();
        for name in names {
            for address in addresses {
                let address: IpAddr = address.parse().unwrap();
                assert!(
                    prints.insert(print(&Subject::from([(name, address)]))),
                    "{name}"
                );
            }
            for number in [0, 1, 1 << 24, 1_u64 << 32] {
                assert!(prints.insert(print(&Subject::from([(name, number)]))));
            }
            for text in ["", "\0\0\0\0", "\0\0\0\0\0\0\0\0", "0.0.0.0", "::"] {
                assert!(
                    prints.insert(print(&Subject::from([(name, text)]))),
                    "{name}"
                );
            }
            let mapped: IpAddr = "::ffff:1.0.0.0".parse().unwrap();
            assert!(
                !prints.insert(print(&Subject::from([(name, mapped)]))),
                "{name}"
            );
        }
    }

    /// A text, something else with the same bytes, and what is said about either in a request: none
    /// is hashed as another.
    #[test]
    fn no_sort_is_taken_for_another() {
        let secret = Secret::from_keys(1, 2);
        let mut prints = HashSet::new();
        let texts = ["a", "\u{2}", "\0\0\0\0\0\0\0\0", "\u{1}\0\0\0\0\0\0\0"];
        for text in texts {
            for subject in [
                Subject::from(text),
                Subject::from([("", text), ("", "")]),
                Subject::from([(text, "")]),
                Subject::from([(text, 0_u64)]),
            ] {
                let Fingerprint { place, rest } = secret.fingerprint(&subject);
                assert!(prints.insert((place, rest)), "{text:?}");
            }
        }
        let Fingerprint { place, rest } = secret.fingerprint(&Subject::all());
        assert!(prints.insert((place, rest)));
    }

    /// Texts of every short length that differ in one place, or only in where a dimension
    /// ends: as many fingerprints as there are subjects.
    #[test]
    fn every_byte_counts() {
        let secret = Secret::from_keys(1, 2);
        let (mut subjects, mut prints) = (HashSet::new(), HashSet::new());
        for (len, at) in (0..40_usize).flat_map(|len| (0..len.max(1)).map(move |at| (len, at))) {
            let text: String = (0..len).map(|i| if i == at { 'b' } else { 'a' }).collect();
            let (left, right) = text.split_at(at);
            for dimensions in [
                vec![("", text.as_str())],
                vec![(text.as_str(), "")],
                vec![("", left), ("", right)],
                vec![(left, right)],
            ] {
                let values: Vec<_> = dimensions
                    .iter()
                    .map(|(name, value)| (*name, Value::from(*value)))
                    .collect();
                let subject = Subject::from_dimensions(&values).expect("one or two");
                let Fingerprint { place, rest } = secret.fingerprint(&subject);
                prints.insert((place, rest));
                let owned = |(name, value): &(&str, &str)| format!("{name}={value}");
                subjects.insert(dimensions.iter().map(owned).collect::<Vec<_>>());
            }
        }
        assert_eq!(prints.len(), subjects.len());
    }
}
