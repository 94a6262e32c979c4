//! Keys that verify signatures: [`JwtKeys`].

use std::fmt;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{DecodingKey, DecodingKeyKind};
use serde_json::Value;

use super::algorithm::JwtAlgorithm;
use crate::error::ValidationError;

/// Keys that verify signatures: a secret, a public key, a JWK set, or several of these.
///
/// ```
/// use tollgate::identity::JwtKeys;
///
/// let old = JwtKeys::secret("the-secret-until-yesterday-8c1f…")?;
/// let keys = JwtKeys::secret("the-secret-since-today-41d0…")?.and(old);
/// assert_eq!(keys.len(), 2);
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
///
/// The kind of a key determines its algorithms: a secret verifies `HS…`, an RSA key `RS…` and `PS…`,
/// and so on. A public key is never used as a secret.
#[derive(Clone, Default)]
#[must_use]
pub struct JwtKeys {
    keys: Vec<VerificationKey>,
}

/// One key with its name, kind and algorithm.
#[derive(Clone)]
pub(super) struct VerificationKey {
    id: Option<Box<str>>,
    /// The algorithm that the key names (`alg`). No other is used with it.
    only: Option<Box<str>>,
    kind: Kind,
    verifier: DecodingKey,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Secret,
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl JwtKeys {
    /// No key: every token is invalid. For a [`KeySet`](super::KeySet) that is filled later.
    pub const fn none() -> Self {
        Self { keys: Vec::new() }
    }

    /// A shared secret, for `HS256` and its like.
    ///
    /// A PEM text is an error: it is a public key, or a private key that must not be shared.
    pub fn secret(secret: impl AsRef<[u8]>) -> Result<Self, ValidationError> {
        const FIELD: &str = "JWT secret";
        let secret = secret.as_ref();
        if secret.is_empty() {
            return Err(ValidationError::new(FIELD, "nothing", "a secret"));
        }
        if secret.trim_ascii_start().starts_with(b"-----BEGIN ") {
            let expected = "a secret; for a public key, use pem()";
            return Err(ValidationError::new(FIELD, "a PEM text", expected));
        }
        Ok(Self::of(VerificationKey::new(
            Kind::Secret,
            DecodingKey::from_secret(secret),
        )))
    }

    /// A public key as PEM text: RSA of 2048 to 8192 bits, P-256, P-384 or Ed25519.
    pub fn pem(text: impl AsRef<[u8]>) -> Result<Self, ValidationError> {
        const FIELD: &str = "JWT public key";
        let text = text.as_ref();
        let refused = |value: &str| {
            let expected = "the PEM text of a public key: RSA (2048 bits or more), P-256, P-384 \
                            or Ed25519";
            Err(ValidationError::new(FIELD, value.to_owned(), expected))
        };
        if String::from_utf8_lossy(text).contains("PRIVATE KEY-----") {
            return refused("a private key");
        }
        let parsed = DecodingKey::from_rsa_pem(text)
            .or_else(|_| DecodingKey::from_ec_pem(text))
            .or_else(|_| DecodingKey::from_ed_pem(text));
        let Ok(key) = parsed else {
            return refused("something else");
        };
        match kind_of(&key) {
            Some(kind) => Ok(Self::of(VerificationKey::new(kind, key))),
            None => refused("a key of another size or curve"),
        }
    }

    /// The keys of a JWK set: `{"keys": […]}`.
    ///
    /// Keys for encryption, and keys of unsupported kinds or sizes, are skipped. At least one key must
    /// remain.
    pub fn jwks(json: impl AsRef<[u8]>) -> Result<Self, ValidationError> {
        const FIELD: &str = "JWK set";
        let expected =
            "JSON such as {\"keys\": [{\"kty\": \"RSA\", \"kid\": …, \"n\": …, \"e\": …}]}";
        let parsed: Value = serde_json::from_slice(json.as_ref())
            .map_err(|error| ValidationError::new(FIELD, error, expected))?;
        let Some(Value::Array(found)) = parsed.get("keys") else {
            return Err(ValidationError::new(FIELD, "no list of keys", expected));
        };
        let keys: Vec<VerificationKey> =
            found.iter().filter_map(VerificationKey::from_jwk).collect();
        if keys.is_empty() {
            let value = format!("{} keys, none of them for signatures", found.len());
            return Err(ValidationError::new(FIELD, value, expected));
        }
        Ok(Self { keys })
    }

    /// These keys and `others`.
    pub fn and(mut self, others: Self) -> Self {
        self.keys.extend(others.keys);
        self
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn of(key: VerificationKey) -> Self {
        Self { keys: vec![key] }
    }

    /// Whether any key could verify `algorithm`.
    pub(super) fn fit(&self, algorithm: JwtAlgorithm) -> bool {
        self.keys.iter().any(|key| key.fits(algorithm))
    }

    /// The keys that may have signed a token: those that it names, else those without a name;
    /// all of them if it names none.
    pub(super) fn candidates<'a>(
        &'a self,
        algorithm: JwtAlgorithm,
        id: Option<&'a str>,
    ) -> impl Iterator<Item = &'a DecodingKey> {
        let is_named = move |key: &&VerificationKey| key.id.as_deref() == id;
        let named = id.is_some() && self.keys.iter().any(|key| is_named(&key));
        let possible = move |key: &&VerificationKey| match (named, id) {
            (true, _) => is_named(key),
            (false, Some(_)) => key.id.is_none(),
            (false, None) => true,
        };
        let fitting = self.keys.iter().filter(move |key| key.fits(algorithm));
        fitting.filter(possible).map(|key| &key.verifier)
    }
}

impl VerificationKey {
    fn new(kind: Kind, verifier: DecodingKey) -> Self {
        Self {
            id: None,
            only: None,
            kind,
            verifier,
        }
    }

    fn from_jwk(json: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(json.clone()).ok()?;
        if jwk.common.public_key_use == Some(PublicKeyUse::Encryption) {
            return None;
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        let kind = kind_of(&key)?;
        let curve_is_right = match &jwk.algorithm {
            AlgorithmParameters::EllipticCurve(ec) => match kind {
                Kind::P256 => ec.curve == EllipticCurve::P256,
                Kind::P384 => ec.curve == EllipticCurve::P384,
                _ => false,
            },
            AlgorithmParameters::OctetKeyPair(pair) => pair.curve == EllipticCurve::Ed25519,
            _ => true,
        };
        curve_is_right.then(|| Self {
            id: jwk.common.key_id.map(Into::into),
            only: json.get("alg").and_then(Value::as_str).map(Into::into),
            kind,
            verifier: key,
        })
    }

    fn fits(&self, algorithm: JwtAlgorithm) -> bool {
        use JwtAlgorithm as A;

        let kind = match algorithm {
            A::Hs256 | A::Hs384 | A::Hs512 => Kind::Secret,
            A::Rs256 | A::Rs384 | A::Rs512 | A::Ps256 | A::Ps384 | A::Ps512 => Kind::Rsa,
            A::Es256 => Kind::P256,
            A::Es384 => Kind::P384,
            A::EdDsa => Kind::Ed25519,
        };
        let meant = |only: &str| only == algorithm.name();
        kind == self.kind && self.only.as_deref().is_none_or(meant)
    }
}

/// What a key is, if it is of a size that can verify anything.
fn kind_of(key: &DecodingKey) -> Option<Kind> {
    use jsonwebtoken::AlgorithmFamily as Family;

    match (key.family(), key.kind()) {
        (Family::Rsa, DecodingKeyKind::RsaModulusExponent { n, .. }) => {
            let n = &n[n.iter().position(|byte| *byte != 0)?..];
            (256..=1024).contains(&n.len()).then_some(Kind::Rsa)
        }
        // Modulus and exponent in DER: some bytes more than the modulus.
        (Family::Rsa, DecodingKeyKind::SecretOrDer(der)) => {
            (256..=1056).contains(&der.len()).then_some(Kind::Rsa)
        }
        (Family::Ec, DecodingKeyKind::SecretOrDer(point)) => match (point.first(), point.len()) {
            (Some(4), 65) => Some(Kind::P256),
            (Some(4), 97) => Some(Kind::P384),
            _ => None,
        },
        (Family::Ed, DecodingKeyKind::SecretOrDer(point)) => {
            (point.len() == 32).then_some(Kind::Ed25519)
        }
        (Family::Hmac, DecodingKeyKind::SecretOrDer(secret)) => {
            (!secret.is_empty()).then_some(Kind::Secret)
        }
        _ => None,
    }
}

/// Shows the number of keys.
impl fmt::Debug for JwtKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JwtKeys({})", self.keys.len())
    }
}
