//! Redis keys: `prefix:v2:{tag}` per subject, `prefix:v2:{tag}:id` per log of a subject.

use std::fmt::Write as _;
use std::net::IpAddr;

use sha2::{Digest as _, Sha256};

use crate::error::ValidationError;
use crate::key::{Subject, Value};

/// Beginning of all keys of one application.
#[derive(Clone, Debug)]
pub(super) struct Prefix(String);

impl Prefix {
    pub(super) const DEFAULT: &'static str = "tollgate";
    const MAX_LEN: usize = 64;
    /// Version of the format. Keys of other versions are neither read nor removed.
    const VERSION: &'static str = "v2";

    /// Accepts 1 to 64 visible ASCII characters without a meaning in a hash tag or a pattern.
    pub(super) fn new(name: &str) -> Result<Self, ValidationError> {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"{}*?[]\\\"'".contains(&byte);
        if !(1..=Self::MAX_LEN).contains(&name.len()) || !name.bytes().all(is_plain) {
            let shown: String = name.chars().take(Self::MAX_LEN).collect();
            return Err(ValidationError::new(
                "redis prefix",
                shown.escape_debug(),
                "1 to 64 visible ASCII characters, without quotes and without { } * ? [ ] \\",
            ));
        }
        Ok(Self(format!("{name}:{}:", Self::VERSION)))
    }

    pub(super) fn is_default(&self) -> bool {
        self.name() == Self::DEFAULT
    }

    fn name(&self) -> &str {
        let version = Self::VERSION.len() + 2;
        self.0.get(..self.0.len() - version).unwrap_or_default()
    }

    /// Returns the pattern of all keys under the prefix, of every version.
    pub(super) fn pattern_of_application(&self) -> String {
        format!("{}:*", self.name())
    }

    /// Returns whether a key is one of this crate, of any version.
    pub(super) fn is_own_key(&self, key: &str) -> bool {
        let Some(rest) = key.strip_prefix(&self.0) else {
            let rest = key.strip_prefix(self.name()).unwrap_or_default();
            return rest.starts_with(":v1:");
        };
        let tag = rest.strip_prefix('{').and_then(|tag| tag.split_once('}'));
        let is_tag = |tag: &str| {
            let is_digit = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            tag.len() == TAG_CHARS && tag.chars().all(is_digit)
        };
        rest == OVERRIDES || tag.is_some_and(|(tag, _)| is_tag(tag))
    }

    /// Returns the key of a subject.
    ///
    /// The tag is a hash without a secret, because all processes of a fleet, and their next versions,
    /// must compute the same key. 128 bits of SHA-256: a second subject with the same key cannot be
    /// found, and a key does not show its subject.
    pub(super) fn key(&self, subject: &Subject<'_>) -> String {
        // Without `format!`, which would be a third of the client's cost of a decision.
        let mut key = String::with_capacity(self.0.len() + TAG_CHARS + 2);
        key.push_str(&self.0);
        key.push('{');
        push_tag(&mut key, hash(subject));
        key.push('}');
        key
    }

    /// Returns the key of a log of a subject. It has the subject's hash tag, so it is in its slot.
    pub(super) fn log_key(subject_key: &str, id: &[u8]) -> String {
        let mut key = String::with_capacity(subject_key.len() + 1 + 2 * id.len());
        key.push_str(subject_key);
        key.push(':');
        for byte in id {
            let _ = write!(key, "{byte:02x}");
        }
        key
    }

    /// Returns a hash of a subject and a rule, the hash field of an override.
    pub(super) fn hash_of(subject: &Subject<'_>, rule: &str) -> String {
        let mut tag = String::with_capacity(TAG_CHARS);
        let hash = hash(subject).chain_update([0]).chain_update(rule);
        push_tag(&mut tag, hash);
        tag
    }

    /// Returns the key of the overrides. No pattern below matches it.
    pub(super) fn of_overrides(&self) -> String {
        format!("{}{OVERRIDES}", self.0)
    }

    /// Returns the key on which commands are tried out. It does not exist.
    pub(super) fn of_verification(&self) -> String {
        format!("{}verification", self.0)
    }

    /// Returns the pattern of the keys of all subjects, without logs.
    pub(super) fn pattern(&self) -> String {
        format!("{}{{*}}", self.0)
    }

    /// Returns the pattern of the keys of all subjects and logs.
    pub(super) fn pattern_with_logs(&self) -> String {
        format!("{}{{*", self.0)
    }
}

/// Name of the key of the overrides.
const OVERRIDES: &str = "overrides";

fn hash(subject: &Subject<'_>) -> Sha256 {
    let mut hash = Sha256::new();
    for (name, value) in subject.dimensions() {
        match value {
            Value::Text(text) => dimension(&mut hash, b't', name, text.as_bytes()),
            Value::Number(number) => dimension(&mut hash, b'n', name, &number.to_le_bytes()),
            Value::Negative(number) => dimension(&mut hash, b'm', name, &number.to_le_bytes()),
            Value::Address(address) => match address.to_canonical() {
                IpAddr::V4(v4) => dimension(&mut hash, b'4', name, &v4.octets()),
                IpAddr::V6(v6) => dimension(&mut hash, b'6', name, &v6.octets()),
            },
        }
    }
    hash
}

/// Length of a tag: 21 characters of 6 bits, and one with the last two of 128.
const TAG_CHARS: usize = 22;

/// Appends 128 bits of the hash in base64url without padding.
fn push_tag(text: &mut String, hash: Sha256) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digest = hash.finalize();
    for three in digest[..16].chunks(3) {
        let bits = three
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (24 - 8 * three.len());
        for place in 0..=three.len() {
            let digit = bits >> (18 - 6 * place) & 0x3f;
            text.push(char::from(ALPHABET[digit as usize]));
        }
    }
}

/// Hashes one dimension: its kind, then name and value, each with its length before it. So no two
/// subjects have the same bytes.
fn dimension(hash: &mut Sha256, kind: u8, name: &str, value: &[u8]) {
    hash.update([kind]);
    for part in [name.as_bytes(), value] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(subject: impl Into<Subject<'static>>) -> String {
        Prefix::new("app").expect("plain").key(&subject.into())
    }

    /// Other keys would lose all counts of a fleet when it is updated: they need another version.
    #[test]
    fn keys_do_not_change() {
        assert_eq!(key(Subject::all()), "app:v2:{47DEQpj8HBSa-_TImW-5JA}");
        assert_eq!(key([("user", "alice")]), "app:v2:{Lx0cK7D6Nmva0SEuCLI-jQ}");
        let log = Prefix::log_key(&key(Subject::all()), &[0, 1, 0xab, 0x7f, 0xff]);
        assert_eq!(log, "app:v2:{47DEQpj8HBSa-_TImW-5JA}:0001ab7fff");
    }

    #[test]
    fn own_keys_are_distinguished_from_foreign_ones() {
        let prefix = Prefix::new("app").expect("plain");
        let subject = key(7);
        for own in [
            subject.clone(),
            Prefix::log_key(&subject, &[1, 2]),
            prefix.of_overrides(),
            "app:v1:anything".to_owned(),
        ] {
            assert!(prefix.is_own_key(&own), "{own}");
        }
        for foreign in ["app:", "app:v2:", "app:session", "app:v2:{x}", "app:v2:{}y"] {
            assert!(!prefix.is_own_key(foreign), "{foreign}");
        }
        assert!(!prefix.is_default());
        assert!(Prefix::new(Prefix::DEFAULT).expect("plain").is_default());
    }

    #[test]
    fn prefix_without_special_characters_is_accepted() {
        for wrong in ["", "a{b", "a b", "a*", "naïve", &"x".repeat(65)] {
            let rejected = Prefix::new(wrong).expect_err(wrong);
            assert_eq!(rejected.field(), "redis prefix");
        }
        let prefix = Prefix::new("shop:eu").expect("plain");
        assert_eq!(prefix.pattern(), "shop:eu:v2:{*}");
        assert_eq!(prefix.pattern_with_logs(), "shop:eu:v2:{*");
    }
}
