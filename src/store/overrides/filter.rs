//! Filter in front of the table of overrides: [`ValueFilter`].

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::key::{Subject, Value};

const WORDS: usize = 64;

/// 4,096 bits, indexed by hashes of the values in the subjects of overrides.
///
/// The hash has no key. A caller that chooses a value with a set bit causes a look-up in the table and
/// nothing else.
pub(super) struct ValueFilter([AtomicU64; WORDS]);

impl Default for ValueFilter {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }
}

impl ValueFilter {
    /// Replaces the filter by one for these subjects.
    ///
    /// A subject that is in the old and in the new filter is found at any time in between, because each
    /// word is replaced at once.
    pub(super) fn replace<'a>(&self, subjects: impl Iterator<Item = Subject<'a>>) {
        let mut words = [0_u64; WORDS];
        for subject in subjects {
            // An override applies to subjects that have all its dimensions, so one of them is enough.
            let first = subject.dimensions().next();
            let (word, bit) = first.map_or(NO_VALUE, |(name, value)| position(name, value));
            words[word] |= bit;
        }
        for (word, new) in self.0.iter().zip(words) {
            word.store(new, Ordering::Release);
        }
    }

    /// Returns whether one of the values, or having none, is in the filter.
    #[inline]
    pub(super) fn may_have(&self, subject: &Subject<'_>) -> bool {
        let mut positions = subject
            .dimensions()
            .map(|(name, value)| position(name, value))
            .peekable();
        if positions.peek().is_none() {
            return self.has(NO_VALUE);
        }
        positions.any(|position| self.has(position))
    }

    #[inline]
    fn has(&self, (word, bit): (usize, u64)) -> bool {
        self.0[word].load(Ordering::Acquire) & bit != 0
    }
}

/// Position of [`Subject::all`].
const NO_VALUE: (usize, u64) = (0, 1);

/// Returns the word and the bit of a value.
///
/// Of a text, the length and the first and last eight bytes are hashed. Texts that differ only between
/// those share a bit.
#[inline]
fn position(name: &str, value: Value<'_>) -> (usize, u64) {
    let word = match value {
        Value::Text(text) => match name {
            "ip" => ip_text_word(text),
            _ => text_word(text.as_bytes()),
        },
        Value::Number(number) => number,
        Value::Negative(number) => number.cast_unsigned(),
        Value::Address(address) => address_word(address),
    };
    // Multiplication mixes into the high bits: 6 for the word, 6 for the bit.
    let mixed = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (
        (mixed >> 58) as usize,
        1 << (mixed >> 52 & (u64::from(u64::BITS) - 1)),
    )
}

/// Overrides store the text of an address as an address.
fn ip_text_word(text: &str) -> u64 {
    text.parse()
        .map_or_else(|_| text_word(text.as_bytes()), address_word)
}

#[inline]
fn text_word(text: &[u8]) -> u64 {
    let len = text.len() as u64;
    match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) => {
            u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29) ^ len
        }
        _ => text
            .iter()
            .fold(len, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[inline]
fn address_word(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => {
            let octets = v6.octets();
            let (words, _) = octets.as_chunks::<8>();
            let words = words.iter().map(|word| u64::from_le_bytes(*word));
            words.fold(0, |mixed, word| mixed.rotate_left(29) ^ word)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subjects(text: &str, number: i64, address: IpAddr) -> Vec<Subject<'_>> {
        vec![
            Subject::all(),
            Subject::from(text),
            Subject::from([("user", text)]),
            Subject::from(number),
            Subject::from(address),
            Subject::from([("ip", address)]),
            Subject::from((("group", text), ("user", number))),
        ]
    }

    #[test]
    fn filter_has_each_subject_and_each_subject_with_its_first_dimension() {
        for seed in 0..256 {
            let mut random = fastrand::Rng::with_seed(seed);
            let length = random.usize(..=20);
            let text: String = (0..length).map(|_| random.char(..)).collect();
            let number = random.i64(..);
            let address = if random.bool() {
                IpAddr::from(random.u32(..).to_be_bytes())
            } else {
                IpAddr::from(random.u128(..).to_be_bytes())
            };
            let count = random.usize(..50);
            let others: Vec<_> = (0..count).map(|_| Subject::from(random.u64(..))).collect();
            let filter = ValueFilter::default();
            for subject in subjects(&text, number, address) {
                filter.replace(others.iter().copied().chain([subject]));
                assert!(filter.may_have(&subject), "seed {seed}: {subject:?}");
            }
            filter.replace([Subject::from([("tenant", text.as_str())])].into_iter());
            let with_tenant = Subject::from([("user", "alice"), ("tenant", &text)]);
            assert!(filter.may_have(&with_tenant), "{text:?}");
            let written = address.to_string();
            filter.replace([Subject::from([("ip", address)])].into_iter());
            let as_text = Subject::from([("ip", written.as_str())]);
            assert!(filter.may_have(&as_text), "{written}");
        }
    }

    #[test]
    fn few_unrelated_subjects_reach_the_table() {
        let filter = ValueFilter::default();
        filter.replace([Subject::from("unrelated")].into_iter());
        let names: Vec<String> = (0..10_000).map(|number| format!("user-{number}")).collect();
        let may_have = |name: &&String| filter.may_have(&Subject::from(name.as_str()));
        assert!(names.iter().filter(may_have).count() < 50);
        filter.replace(std::iter::empty());
        assert!(!filter.may_have(&Subject::from("unrelated")));
    }
}
