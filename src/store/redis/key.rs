//! Subjects as keys: `prefix:v1:{hash}`, all of one length.

use std::net::IpAddr;

use sha2::{Digest as _, Sha256};

use crate::error::Invalid;
use crate::key::{Subject, Value};

/// The beginning of all keys of one application.
#[derive(Clone, Debug)]
pub(super) struct Prefix(String);

impl Prefix {
    const LONGEST: usize = 64;
    /// Counters are kept in this way. Another way must not come upon them.
    const VERSION: &'static str = "v1";

    /// 1 to 64 visible ASCII characters that mean nothing in a hash tag or a pattern.
    pub(super) fn new(name: &str) -> Result<Self, Invalid> {
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"{}*?[]\\\"'".contains(&byte);
        if !(1..=Self::LONGEST).contains(&name.len()) || !name.bytes().all(plain) {
            let shown: String = name.chars().take(Self::LONGEST).collect();
            return Err(Invalid::new(
                "redis prefix",
                shown.escape_debug(),
                "1 to 64 visible ASCII characters, without quotes and without { } * ? [ ] \\",
            ));
        }
        Ok(Self(format!("{name}:{}:", Self::VERSION)))
    }

    /// The key of a subject.
    ///
    /// The hash has no secret of its own, because every process of a fleet must come to the same
    /// key, also the next version of it. 128 bits of SHA-256: nobody can find a second subject
    /// for somebody else's key, and keys do not show whose they are.
    pub(super) fn key(&self, subject: &Subject<'_>) -> String {
        // By hand: with `format!`, this would be a third of what a decision costs the caller.
        let mut key = String::with_capacity(self.0.len() + DIGITS + 2);
        key.push_str(&self.0);
        key.push('{');
        push_hex(&mut key, hash(subject));
        key.push('}');
        key
    }

    /// What a subject and a rule are found by where there is no counter.
    pub(super) fn hash_of(subject: &Subject<'_>, rule: &str) -> String {
        let mut digits = String::with_capacity(DIGITS);
        let hash = hash(subject).chain_update([0]).chain_update(rule);
        push_hex(&mut digits, hash);
        digits
    }

    /// The key of the overrides. Not one of the pattern.
    pub(super) fn of_overrides(&self) -> String {
        format!("{}overrides", self.0)
    }

    /// The pattern of all keys.
    pub(super) fn pattern(&self) -> String {
        format!("{}{{*}}", self.0)
    }
}

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

/// How much of a hash is written down, in digits of four bits.
const DIGITS: usize = 32;

fn push_hex(text: &mut String, hash: Sha256) {
    for byte in &hash.finalize()[..DIGITS / 2] {
        for digit in [byte >> 4, byte & 0xf] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
}

/// One dimension: what kind it is, then name and value, each with its length before it. So no two
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

    /// A change of these would lose every count of every fleet when it is updated: it would need
    /// another version in the key.
    #[test]
    fn keys_stay_as_they_are() {
        assert_eq!(
            key(Subject::all()),
            "app:v1:{e3b0c44298fc1c149afbf4c8996fb924}"
        );
        assert_eq!(
            key([("user", "alice")]),
            "app:v1:{2f1d1c2bb0fa366bdad1212e08b23e8d}"
        );
    }

    #[test]
    fn prefixes_are_plain() {
        for wrong in ["", "a{b", "a b", "a*", "naïve", &"x".repeat(65)] {
            let refused = Prefix::new(wrong).expect_err(wrong);
            assert_eq!(refused.field(), "redis prefix");
        }
        assert_eq!(
            Prefix::new("shop:eu").expect("plain").pattern(),
            "shop:eu:v1:{*}"
        );
    }
}
