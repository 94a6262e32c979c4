//! Signs tokens from the bytes of their parts, valid and invalid ones.

use http::Request;
use jsonwebtoken::{Algorithm, EncodingKey, crypto};

/// The present of the tests with tokens: 2025-01-01, in seconds.
pub(crate) const NOW: u64 = 1_735_689_600;

pub(crate) const SECRET: &str = "a shared secret, for tests only";

macro_rules! pem {
    ($name:literal) => {
        include_str!(concat!("keys/test-", $name, ".pem"))
    };
}

pub(crate) const RSA_1: &str = pem!("rsa-1.public");
pub(crate) const RSA_2: &str = pem!("rsa-2.public");
pub(crate) const RSA_1_PRIVATE: &str = pem!("rsa-1.private");
pub(crate) const RSA_2_PRIVATE: &str = pem!("rsa-2.private");
pub(crate) const RSA_TOO_SMALL: &str = pem!("rsa-too-small.public");
pub(crate) const P256: &str = pem!("p256.public");
pub(crate) const P256_PRIVATE: &str = pem!("p256.private");
pub(crate) const P384: &str = pem!("p384.public");
pub(crate) const P384_PRIVATE: &str = pem!("p384.private");
pub(crate) const ED25519: &str = pem!("ed25519.public");
pub(crate) const ED25519_PRIVATE: &str = pem!("ed25519.private");

pub(crate) fn base64url(bytes: impl AsRef<[u8]>) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in bytes.as_ref().chunks(3) {
        let mut word = [0; 4];
        word[1..=group.len()].copy_from_slice(group);
        let word = u32::from_be_bytes(word);
        for place in 0..=group.len() {
            text.push(LETTERS[(word >> (18 - 6 * place)) as usize & 63].into());
        }
    }
    text
}

/// Signs a header and claims.
pub(crate) fn sign(header: &str, claims: &str, by: Algorithm, key: &EncodingKey) -> String {
    let message = format!("{}.{}", base64url(header), base64url(claims));
    let signature = crypto::sign(message.as_bytes(), key, by).unwrap();
    format!("{message}.{signature}")
}

/// Signs claims with HS256 and [`SECRET`].
pub(crate) fn hs256(claims: &str) -> String {
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    sign(
        r#"{"alg":"HS256","typ":"JWT"}"#,
        claims,
        Algorithm::HS256,
        &key,
    )
}

/// Signs claims with RS256. The header has `kid` if it is not empty.
pub(crate) fn rs256(private: &str, kid: &str, claims: &str) -> String {
    let key = EncodingKey::from_rsa_pem(private.as_bytes()).unwrap();
    let header = if kid.is_empty() {
        r#"{"alg":"RS256"}"#.to_owned()
    } else {
        format!(r#"{{"alg":"RS256","kid":"{kid}"}}"#)
    };
    sign(&header, claims, Algorithm::RS256, &key)
}

/// Replaces the signature of a token by another one of the same form.
pub(crate) fn tampered(token: &str) -> String {
    let (message, signature) = token.rsplit_once('.').unwrap();
    let other = if signature.starts_with('A') { "B" } else { "A" };
    format!("{message}.{other}{}", &signature[1..])
}

/// Returns the claims of a user, valid for an hour.
pub(crate) fn claims(sub: &str) -> String {
    let exp = NOW + 3_600;
    format!(r#"{{"sub":"{sub}","exp":{exp}}}"#)
}

/// Returns a request for `/` with these headers.
pub(crate) fn request(headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::get("/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

pub(crate) fn bearer(token: &str) -> Request<()> {
    request(&[("authorization", &format!("Bearer {token}"))])
}

/// Converts the public part of an RSA key, as PEM text, to a JWK.
pub(crate) fn rsa_jwk(private: &str, more: &str) -> String {
    use jsonwebtoken::jwk::{AlgorithmParameters, Jwk};

    let key = EncodingKey::from_rsa_pem(private.as_bytes()).unwrap();
    let jwk = Jwk::from_encoding_key(&key, Algorithm::RS256).unwrap();
    let AlgorithmParameters::RSA(rsa) = jwk.algorithm else {
        panic!("an RSA key");
    };
    format!(r#"{{"kty":"RSA","n":"{}","e":"{}"{more}}}"#, rsa.n, rsa.e)
}

pub(crate) fn jwks(keys: &[String]) -> String {
    format!(r#"{{"keys":[{}]}}"#, keys.join(","))
}
