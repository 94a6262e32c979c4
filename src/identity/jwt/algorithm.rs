//! Signature algorithms: [`JwtAlgorithm`].

use crate::error::named;

/// Signature algorithm of a token. There is no `none`.
///
/// ```
/// use tollgate::identity::JwtAlgorithm;
///
/// assert_eq!("ES256".parse(), Ok(JwtAlgorithm::Es256));
/// assert!("none".parse::<JwtAlgorithm>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JwtAlgorithm {
    /// HMAC with SHA-256.
    Hs256,
    /// HMAC with SHA-384.
    Hs384,
    /// HMAC with SHA-512.
    Hs512,
    /// RSA PKCS#1 1.5 with SHA-256.
    Rs256,
    /// RSA PKCS#1 1.5 with SHA-384.
    Rs384,
    /// RSA PKCS#1 1.5 with SHA-512.
    Rs512,
    /// RSA PSS with SHA-256.
    Ps256,
    /// RSA PSS with SHA-384.
    Ps384,
    /// RSA PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

named!(JwtAlgorithm, "JWT algorithm", trim {
    Hs256 => "HS256",
    Hs384 => "HS384",
    Hs512 => "HS512",
    Rs256 => "RS256",
    Rs384 => "RS384",
    Rs512 => "RS512",
    Ps256 => "PS256",
    Ps384 => "PS384",
    Ps512 => "PS512",
    Es256 => "ES256",
    Es384 => "ES384",
    EdDsa => "EdDSA",
});
