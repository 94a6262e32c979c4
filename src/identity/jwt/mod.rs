//! Callers known by a JSON Web Token: [`Jwt`].

mod algorithm;
mod builder;
mod cache;
mod claims;
mod key_set;
mod keys;
mod refusal;
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
use self::refusal::Refusal;
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
/// - Why a token was not believed is told in the log, as `rate_limit_token_refused` at level
///   DEBUG, and never to the caller.
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

    /// Everything but asking.
    fn verify(&self, token: &[u8], parts: &Parts<'_>, now: Timestamp) -> Result<Finding, Refusal> {
        // Loaded once: what these keys have verified is remembered as theirs.
        let current = self.keys.current();
        let claims = parts.claims().ok_or(Refusal::Garbled)?;
        let (from, until) = claims::period(&claims, self.leeway).ok_or(Refusal::NoTimes)?;
        // Refusing needs no signature, and a signature is what costs.
        claims::within(now, from, until)?;
        self.reading.accept(&claims)?;
        if !parts.is_signed(&current.keys, &self.algorithms) {
            return Err(Refusal::Signature);
        }
        let identity = self.reading.identity(&claims).ok_or(Refusal::Nobody)?;
        let finding = Finding {
            identity: Arc::new(identity),
            from,
            until,
            generation: current.number,
        };
        self.verified.insert(token, finding.clone());
        Ok(finding)
    }
}

impl Identify for Jwt {
    fn identify(&self, asking: &Asking<'_>) -> Identified {
        let token = match self.place.find(&asking.head()) {
            Found::Nothing => return Identified::Absent,
            Found::Token(token) if token.len() <= Self::MAX_LENGTH => token,
            Found::Token(_) => return Refusal::TooLong.told(),
            Found::Wrong => return Refusal::NotOne.told(),
        };
        let now = asking.now();
        if let Some(finding) = self.verified.get(token)
            && finding.generation == self.keys.current().number
        {
            let Err(refusal) = claims::within(now, finding.from, finding.until) else {
                return Identified::Known(finding.identity);
            };
            self.verified.remove(token);
            return refusal.told();
        }
        let Some(parts) = Parts::of(token) else {
            return Refusal::Garbled.told();
        };
        if !asking.may_verify() {
            return Identified::Throttled;
        }
        match self.verify(token, &parts, now) {
            Ok(finding) => Identified::Known(finding.identity),
            Err(refusal) => refusal.told(),
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
