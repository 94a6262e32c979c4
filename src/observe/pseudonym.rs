//! Names of callers in events.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::fmt::{self, Write as _};
use std::hash::BuildHasher;
use std::net::IpAddr;

use sha2::{Digest, Sha256};

use super::truncate::{MAX_TEXT, truncate};
use crate::identity_types::Identity;
use crate::key::{Subject, Value, ValueText};

/// Names of one caller in an event.
pub(super) struct CallerNames {
    pub(super) identity: String,
    /// Name of the client IP: `ip#9f86d081884c7d65`, or the address if names are plain.
    pub(super) ip: Option<String>,
}

/// How callers are named in events.
///
/// Default: a keyed hash. A caller has one name as long as the process runs, so that its events can
/// be correlated. Without the key the caller cannot be found by trying all addresses, which would
/// take minutes for an unkeyed hash.
pub(crate) enum Pseudonyms {
    /// Hashed under this key. Processes with the same key use the same names.
    Keyed(Box<[u8]>),
    /// Not hashed.
    Plain,
}

impl Pseudonyms {
    /// Returns a hash under a random key.
    fn random() -> Self {
        let mut key = Vec::with_capacity(32);
        for _ in 0..4 {
            // The keys of `RandomState` come from the operating system.
            let random = RandomState::new().hash_one(0_u8);
            key.extend_from_slice(&random.to_le_bytes());
        }
        Self::Keyed(key.into())
    }

    /// Returns the name: `user#9f86d081884c7d65`, or `user=alice` if names are plain. Dimensions are
    /// joined by commas. The subject of all callers is `all`. Names are cut at 256 bytes.
    pub(super) fn of(&self, subject: &Subject<'_>) -> String {
        let mut name = String::new();
        for (dimension, value) in subject.dimensions() {
            if !name.is_empty() {
                name.push(',');
            }
            // Writing to a string cannot fail.
            let _ = match self {
                Self::Plain => write!(name, "{dimension}={}", ValueText(value)),
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

    /// Returns the names of a caller and of its client IP.
    pub(super) fn of_both(&self, caller: &Subject<'_>, ip: Option<IpAddr>) -> CallerNames {
        CallerNames {
            identity: self.of(caller),
            ip: ip.map(|ip| match self {
                Self::Plain => ip.to_canonical().to_string(),
                Self::Keyed(_) => self.of(&Subject::named((Identity::IP, Value::Address(ip)))),
            }),
        }
    }
}

impl Default for Pseudonyms {
    fn default() -> Self {
        Self::random()
    }
}

/// Hides the key.
impl fmt::Debug for Pseudonyms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keyed(_) => "Keyed(…)",
            Self::Plain => "Plain",
        })
    }
}

/// First 64 bits of SHA-256 over key, name and value, each with its length.
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
    fn equal_keys_give_equal_names_that_do_not_contain_the_caller() {
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
    fn plain_names_show_the_caller_up_to_256_bytes() {
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
