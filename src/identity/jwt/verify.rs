//! One token, from its text to what it says.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER;
use serde_json::Value;

use super::algorithm::JwtAlgorithm;
use super::keys::JwtKeys;

/// How many signatures are computed for one token, at most.
const MAX_TRIES: usize = 8;

/// A token cut into its parts, nothing verified.
pub(super) struct Parts<'a> {
    header: &'a [u8],
    claims: &'a [u8],
    signature: &'a [u8],
    /// What has been signed: header and claims.
    message: &'a [u8],
}

impl<'a> Parts<'a> {
    /// `None` if it has not the shape of a token.
    pub(super) fn of(token: &'a [u8]) -> Option<Self> {
        let mut parts = token.split(|byte| *byte == b'.');
        let (header, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
        let whole = parts.next().is_none() && ![header, claims, signature].contains(&&[][..]);
        whole.then(|| Self {
            header,
            claims,
            signature,
            message: &token[..header.len() + 1 + claims.len()],
        })
    }

    /// The claims, as yet nobody's word. Of a claim that stands there twice, the last counts,
    /// as RFC 7519 has it.
    pub(super) fn claims(&self) -> Option<Value> {
        object(self.claims)
    }

    /// Whether one of the keys has signed it by one of the algorithms.
    pub(super) fn is_signed(&self, keys: &JwtKeys, algorithms: &[JwtAlgorithm]) -> bool {
        self.signed(keys, algorithms).is_some()
    }

    fn signed(&self, keys: &JwtKeys, algorithms: &[JwtAlgorithm]) -> Option<()> {
        let header = object(self.header)?;
        // Whoever marks something as critical wants it understood. Nothing is, here.
        if header.get("crit").is_some() {
            return None;
        }
        let algorithm = JwtAlgorithm::named(header.get("alg")?.as_str()?)?;
        if !algorithms.contains(&algorithm) {
            return None;
        }
        let id = match header.get("kid") {
            Some(id) => Some(id.as_str()?),
            None => None,
        };
        let signature = decoded(self.signature)?;
        let mut candidates = keys.candidates(algorithm, id).take(MAX_TRIES);
        candidates
            .any(|key| verifies(key, algorithm, self.message, &signature))
            .then_some(())
    }
}

/// The provider is named, not the one of the process: that one panics where a program has
/// enabled two of them and installed none.
fn verifies(key: &DecodingKey, by: JwtAlgorithm, message: &[u8], signature: &Vec<u8>) -> bool {
    (DEFAULT_PROVIDER.verifier_factory)(&by.outside(), key)
        .is_ok_and(|verifier| verifier.verify(message, signature).is_ok())
}

fn object(part: &[u8]) -> Option<Value> {
    let json: Value = serde_json::from_slice(&decoded(part)?).ok()?;
    json.is_object().then_some(json)
}

/// Strictly: bits that are left over must be zero, else one signature would have several
/// spellings, each a token of its own.
fn decoded(part: &[u8]) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(part).ok()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn one_spelling_only() {
        assert_eq!(decoded(b"-_-_").unwrap(), [0xfb, 0xff, 0xbf]);
        assert_eq!(decoded(b"Zg").unwrap(), b"f");
        for text in [
            "Zg==", "Zh", "Zm9=", "Zm9", "Z", "Zm9vY", "Zm 9v", "+/+/", "Zm9v\n", "é",
        ] {
            assert_eq!(decoded(text.as_bytes()), None, "{text}");
        }
    }
}
