//! Callers known by a JSON Web Token: [`Jwt`].

mod algorithm;
mod builder;
mod cache;
mod claims;
mod key_set;
mod keys;
mod token;
mod verify;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::algorithm::JwtAlgorithm;
pub use self::builder::JwtBuilder;
use self::cache::{Finding, Verified};
use self::claims::Reading;
pub use self::key_set::KeySet;
pub use self::keys::JwtKeys;
use self::token::{Found, Place};
use self::verify::Parts;
use super::source::{Asking, Identified, Identify};
use crate::clock::Timestamp;

/// A caller known by a JSON Web Token, in `Authorization: Bearer` or in a cookie.
///
/// ```
/// use tollgate::identity::Jwt;
///
/// let jwt = Jwt::hs256("9d2f…a shared secret…")
///     .issuer("https://id.example.com")
///     .tier("app_metadata.plan")
///     .tenant("tenant_id")
///     .roles("roles")
///     .build()?;
/// # let _ = jwt;
/// # Ok::<(), tollgate::Invalid>(())
/// ```
///
/// - Only the algorithms that you name are accepted, each only with a key made for it. A
///   public key cannot be taken for a secret, and there is no `none`.
/// - `exp` is required, as a number; `nbf` is honoured; `iss` and `aud` if you set them. Time
///   is the limiter's.
/// - A forged, expired or garbled token is [invalid](Identified::Invalid) and never picks a
///   counter. So are two `Authorization` headers, tokens over 8 KiB, and those that do not
///   name their user [in clear text](JwtBuilder::user). No header, or another scheme: there
///   is nothing here for this source.
/// - Verified tokens are remembered, so that a signature costs its price once per token: never
///   past `exp`, never past a [change of keys](KeySet::replace), and at most
///   [as many](JwtBuilder::remember) as you say. Wrong ones are not remembered, and push out
///   nobody.
pub struct Jwt {
    algorithms: Box<[JwtAlgorithm]>,
    keys: KeySet,
    reading: Reading,
    leeway: Duration,
    place: Place,
    verified: Verified,
}

impl Jwt {
    /// The longest token that is looked at.
    const MAX_LENGTH: usize = 8 << 10;

    /// Tokens signed by `HS256` with a shared secret.
    pub fn hs256(secret: impl AsRef<[u8]>) -> JwtBuilder {
        Self::builder()
            .algorithms([JwtAlgorithm::Hs256])
            .secret(secret)
    }

    /// Tokens signed by `RS256`, verified with an RSA public key as PEM text.
    pub fn rs256_pem(public_key: impl AsRef<[u8]>) -> JwtBuilder {
        Self::builder()
            .algorithms([JwtAlgorithm::Rs256])
            .pem(public_key)
    }

    /// Tokens of any kind: name the [`algorithms`](JwtBuilder::algorithms) and the keys.
    pub fn builder() -> JwtBuilder {
        JwtBuilder::new()
    }

    /// How many verified tokens are remembered now.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.verified.len()
    }

    /// Everything but asking: `None` for a token that is no good.
    fn verify(&self, token: &[u8], parts: &Parts<'_>, now: Timestamp) -> Option<Finding> {
        // Loaded once: what these keys have verified is remembered as theirs.
        let current = self.keys.current();
        let claims = parts.claims()?;
        let (from, until) = claims::period(&claims, self.leeway)?;
        // Refusing needs no signature, and a signature is what costs.
        if !(from..until).contains(&now)
            || !self.reading.accepts(&claims)
            || !parts.is_signed(&current.keys, &self.algorithms)
        {
            return None;
        }
        let finding = Finding {
            identity: Arc::new(self.reading.identity(&claims)?),
            from,
            until,
            generation: current.number,
        };
        self.verified.insert(token, finding.clone());
        Some(finding)
    }
}

impl Identify for Jwt {
    fn identify(&self, asking: &Asking<'_>) -> Identified {
        let token = match self.place.find(&asking.head()) {
            Found::Nothing => return Identified::Absent,
            Found::Token(token) if token.len() <= Self::MAX_LENGTH => token,
            Found::Token(_) | Found::Wrong => return Identified::Invalid,
        };
        let now = asking.now();
        if let Some(finding) = self.verified.get(token)
            && finding.generation == self.keys.current().number
        {
            if (finding.from..finding.until).contains(&now) {
                return Identified::Known(finding.identity);
            }
            self.verified.remove(token);
            return Identified::Invalid;
        }
        let Some(parts) = Parts::of(token) else {
            return Identified::Invalid;
        };
        if !asking.may_verify() {
            return Identified::Throttled;
        }
        match self.verify(token, &parts, now) {
            Some(finding) => Identified::Known(finding.identity),
            None => Identified::Invalid,
        }
    }
}

/// Shows what is accepted, and neither keys nor tokens.
impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt")
            .field("algorithms", &self.algorithms)
            .field("keys", &self.keys)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
