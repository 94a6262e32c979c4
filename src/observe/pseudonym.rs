//! What callers are called in logs.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::fmt::{self, Write as _};
use std::hash::BuildHasher;
use std::net::IpAddr;

use sha2::{Digest, Sha256};

use super::truncate::{MAX_TEXT, truncate};
use crate::key::{Subject, Value};

/// How callers are called where people read logs.
///
/// By default a keyed hash: the same caller has the same name as long as the process runs, so
/// that lines can be put together; but nobody who has only the logs can find out whose it is,
/// also not by trying all addresses there are, which takes minutes without a key.
pub(crate) enum Pseudonyms {
    /// The same names wherever the key is the same.
    Keyed(Box<[u8]>),
    /// As they are.
    Plain,
}

impl Pseudonyms {
    /// A key that nobody knows, for as long as the process runs.
    fn random() -> Self {
        let mut key = Vec::with_capacity(32);
        for _ in 0..4 {
            // Under a key that comes from the operating system, and that no other one has.
            let random = RandomState::new().hash_one(0_u8);
            key.extend_from_slice(&random.to_le_bytes());
        }
        Self::Keyed(key.into())
    }

    /// `user#9f86d081884c7d65`, or `user=alice` where they are plain. Several dimensions are
    /// joined by commas; the subject of all callers is `all`. At most 256 bytes: what is longer is cut.
    pub(super) fn of(&self, subject: &Subject<'_>) -> String {
        let mut name = String::new();
        for (dimension, value) in subject.dimensions() {
            if !name.is_empty() {
                name.push(',');
            }
            // Writing to a string cannot fail.
            let _ = match self {
                Self::Plain => write!(name, "{dimension}={}", Shown(value)),
                Self::Keyed(key) => write!(name, "{dimension}#{}", Hashed(key, dimension, value)),
            };
        }
        if name.is_empty() {
            name.push_str("all");
        }
        match truncate(&name, MAX_TEXT) {
            Cow::Borrowed(_) => name,
            Cow::Owned(cut) => cut,
        }
    }
}

impl Default for Pseudonyms {
    fn default() -> Self {
        Self::random()
    }
}

/// Shows which kind it is, and not the key.
impl fmt::Debug for Pseudonyms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keyed(_) => "Keyed(…)",
            Self::Plain => "Plain",
        })
    }
}

struct Shown<'a>(Value<'a>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Text(text) => f.write_str(text),
            Value::Number(number) => number.fmt(f),
            Value::Negative(number) => number.fmt(f),
            Value::Address(address) => address.to_canonical().fmt(f),
        }
    }
}

/// The first 64 bits of SHA-256 over key and value, each with its length.
struct Hashed<'a>(&'a [u8], &'a str, Value<'a>);

impl fmt::Display for Hashed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(key, name, value) = self;
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(key);
        part(name.as_bytes());
        match value {
            Value::Text(text) => part(text.as_bytes()),
            Value::Number(number) => part(&number.to_le_bytes()),
            Value::Negative(number) => part(&number.to_le_bytes()),
            Value::Address(address) => match address.to_canonical() {
                IpAddr::V4(address) => part(&address.octets()),
                IpAddr::V6(address) => part(&address.octets()),
            },
        }
        hash.finalize()[..8]
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_under_the_same_key_and_tell_nothing() {
        let alice = Subject::from([("user", "alice")]);
        let keyed = |key: &str| Pseudonyms::Keyed(key.as_bytes().into()).of(&alice);
        assert_eq!(keyed("a key"), keyed("a key"));
        assert_ne!(keyed("a key"), keyed("another"));
        assert_ne!(
            Pseudonyms::random().of(&alice),
            Pseudonyms::random().of(&alice)
        );
        let name = keyed("a key");
        assert!(name.starts_with("user#") && name.len() == 21, "{name}");
        assert!(!name.contains("alice"));
        let others = [
            Subject::from([("user", "alicf")]),
            Subject::from([("ip", "alice")]),
        ];
        for other in others {
            let other = Pseudonyms::Keyed((*b"a key").into()).of(&other);
            assert_ne!(other.split_once('#').unwrap().1, &name[5..]);
        }
    }

    #[test]
    fn plain_names_are_as_they_are() {
        let plain = |subject: Subject<'_>| Pseudonyms::Plain.of(&subject);
        assert_eq!(plain(Subject::from([("user", "alice")])), "user=alice");
        let member = Subject::from([("group", "g"), ("user", "u")]);
        assert_eq!(plain(member), "group=g,user=u");
        assert_eq!(plain(Subject::all()), "all");
        let long = "x".repeat(8_000);
        let cut = plain(Subject::from([("user", &*long)]));
        assert!(cut.starts_with("user=xxx") && cut.ends_with('…'), "{cut}");
        assert!(cut.len() <= MAX_TEXT);
    }
}
