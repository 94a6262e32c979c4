//! Parses a token and verifies its signature.

use std::str::FromStr as _;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;

use super::super::invalid_reason::InvalidReason;
use super::algorithm::JwtAlgorithm;
use super::keys::JwtKeys;

/// Most signatures that are computed for one token.
const MAX_TRIES: usize = 8;

/// A compact JWS, split into its parts. Nothing is verified.
pub(super) struct Jws<'a> {
    /// A JSON object with `alg`.
    header: Value,
    claims: &'a [u8],
    signature: &'a [u8],
    /// The signed part: header and claims.
    message: &'a [u8],
}

impl<'a> Jws<'a> {
    /// Returns `None` if the text is not a compact JWS: three non-empty parts of base64url, the
    /// first of which is a JSON object with `alg`.
    pub(super) fn parse(token: &'a [u8]) -> Option<Self> {
        let mut parts = token.split(|byte| *byte == b'.');
        let (header, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
        let is_jws =
            parts.next().is_none() && [header, claims, signature].into_iter().all(is_base64url);
        if !is_jws {
            return None;
        }
        Some(Self {
            header: object(header)
                .filter(|header| header.get("alg").is_some_and(Value::is_string))?,
            claims,
            signature,
            message: &token[..header.len() + 1 + claims.len()],
        })
    }

    /// Returns the claims, not verified. Of a claim that is there twice, the last counts (RFC
    /// 7519, section 4).
    pub(super) fn claims(&self) -> Option<Value> {
        object(self.claims)
    }

    /// Verifies that one of the keys has signed the token with one of the algorithms.
    pub(super) fn verify_signature(
        &self,
        keys: &JwtKeys,
        algorithms: &[JwtAlgorithm],
    ) -> Result<(), InvalidReason> {
        // No critical extension (RFC 7515, section 4.1.11) is supported.
        if self.header.get("crit").is_some() {
            return Err(InvalidReason::Malformed);
        }
        let algorithm = self.header.get("alg").and_then(Value::as_str);
        let algorithm = algorithm
            .and_then(JwtAlgorithm::from_name)
            .filter(|algorithm| algorithms.contains(algorithm))
            .ok_or(InvalidReason::Algorithm)?;
        let id = match self.header.get("kid") {
            Some(id) => Some(id.as_str().ok_or(InvalidReason::Malformed)?),
            None => None,
        };
        if keys.is_empty() {
            return Err(InvalidReason::KeysUnavailable);
        }
        let signature = decoded(self.signature).ok_or(InvalidReason::Malformed)?;
        let mut reason = InvalidReason::UnknownKey;
        for key in keys.candidates(algorithm, id).take(MAX_TRIES) {
            if verifies(key, algorithm, self.message, &signature) {
                return Ok(());
            }
            reason = InvalidReason::Signature;
        }
        Err(reason)
    }
}

/// Names the provider instead of using the one of the process: that one panics if a program has
/// enabled two of them and installed none.
fn verifies(key: &DecodingKey, by: JwtAlgorithm, message: &[u8], signature: &Vec<u8>) -> bool {
    // Both types have the names of RFC 7518.
    let Ok(algorithm) = Algorithm::from_str(by.name()) else {
        return false;
    };
    (DEFAULT_PROVIDER.verifier_factory)(&algorithm, key)
        .is_ok_and(|verifier| verifier.verify(message, signature).is_ok())
}

fn object(part: &[u8]) -> Option<Value> {
    let json: Value = serde_json::from_slice(&decoded(part)?).ok()?;
    json.is_object().then_some(json)
}

/// Whether the text is made of base64url characters and has a possible length.
fn is_base64url(part: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !part.is_empty() && part.len() % 4 != 1 && part.iter().all(is_letter)
}

/// Decodes strictly: unused bits must be zero. Otherwise one signature would have several
/// spellings, each of them a token of its own.
fn decoded(part: &[u8]) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(part).ok()
}

#[cfg(test)]
mod tests {
    use super::{decoded, is_base64url};

    #[test]
    fn base64url_has_one_spelling() {
        assert_eq!(decoded(b"-_-_").unwrap(), [0xfb, 0xff, 0xbf]);
        assert_eq!(decoded(b"Zg").unwrap(), b"f");
        for text in [
            "Zg==", "Zh", "Zm9=", "Zm9", "Z", "Zm9vY", "Zm 9v", "+/+/", "Zm9v\n", "é",
        ] {
            assert_eq!(decoded(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn shape_of_base64url() {
        for text in ["Zg", "Zh", "Zm9", "-_-_"] {
            assert!(is_base64url(text.as_bytes()), "{text}");
        }
        for text in ["", "Z", "Zm9vY", "Zg==", "Zm 9v", "+/+/", "é"] {
            assert!(!is_base64url(text.as_bytes()), "{text}");
        }
    }
}
