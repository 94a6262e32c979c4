//! Identity from a JSON Web Token: [`Jwt`].

mod algorithm;
mod builder;
mod cache;
mod claims;
mod key_set;
mod keys;
mod location;
mod verify;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

pub use self::algorithm::JwtAlgorithm;
pub use self::builder::JwtBuilder;
use self::cache::{CachedToken, TokenCache};
use self::claims::ClaimMap;
pub use self::key_set::KeySet;
pub use self::keys::JwtKeys;
use self::location::TokenLocation;
use self::verify::Jws;
use super::chain::Best;
use super::invalid_reason::InvalidReason;
use super::source::{Identified, Identify, IdentifyContext, MAX_TOKENS, Registered};
use crate::clock::Timestamp;
use crate::identity_types::Identity;

/// A token of a request, before its signature is verified.
enum RequestToken<'a> {
    /// The result is cached.
    Cached(Result<Arc<Identity>, InvalidReason>),
    /// It must be verified.
    Unverified(&'a [u8], Jws<'a>),
}

/// The distinct tokens of a request that no other source has accepted, by the index under which they
/// are registered.
type RequestTokens<'a> = [Option<RequestToken<'a>>; MAX_TOKENS];

/// Identifies callers by a JSON Web Token, in `Authorization: Bearer` or in a cookie.
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
/// # Ok::<(), tollgate::ValidationErrors>(())
/// ```
///
/// - Only the algorithms that you name are accepted, each only with a key made for it. A
///   public key cannot be used as a secret, and there is no `none`.
/// - `exp` is required, as a number; `nbf` is honoured; `iss` and `aud` if you set them. Times
///   are compared with a [leeway](JwtBuilder::leeway) of 60 seconds by default.
/// - A token that is not accepted is [invalid](Identified::Invalid) and never selects a counter.
///   The reason is a field of the event `rate_limit_token_refused` at level DEBUG and a label of
///   the metric `tollgate_invalid_credentials_total`; callers never see it.
/// - A verified token without a usable [user claim](JwtBuilder::user) makes an
///   [unauthenticated](crate::Identity::unauthenticated) caller: limited by client IP, with the
///   tenant and the roles of the token, without its tier.
/// - A value that is not a compact JWS is not a credential of this source: three non-empty parts
///   of base64url, the first a JSON object with `alg`.
/// - `Authorization` lines that differ are [ambiguous](Identified::Ambiguous); identical ones
///   count as one. Several cookies may differ: all are verified, at most 4 tokens per request.
///   Tokens of different users, more than 4 tokens, or a token in a percent-encoded cookie are
///   ambiguous. A token over [`max_token_bytes`](JwtBuilder::max_token_bytes) is
///   [too large](Identified::TooLarge).
/// - Every token is verified. Accepted tokens are cached, so that a signature is computed once
///   per token: never past `exp` and the leeway, never past a [change of keys](KeySet::replace),
///   and at most [`cache_capacity`](JwtBuilder::cache_capacity) of them. Tokens that are not accepted are
///   not cached.
pub struct Jwt {
    algorithms: Box<[JwtAlgorithm]>,
    keys: KeySet,
    claim_map: ClaimMap,
    leeway: Duration,
    location: TokenLocation,
    max_token_bytes: usize,
    cache: TokenCache,
}

impl Jwt {
    /// Accepts tokens signed by `HS256` with a shared secret.
    pub fn hs256(secret: impl AsRef<[u8]>) -> JwtBuilder {
        Self::builder()
            .algorithms([JwtAlgorithm::Hs256])
            .secret(secret)
    }

    /// Accepts tokens signed by `RS256`, verified with an RSA public key as PEM text.
    pub fn rs256_pem(public_key: impl AsRef<[u8]>) -> JwtBuilder {
        Self::builder()
            .algorithms([JwtAlgorithm::Rs256])
            .pem(public_key)
    }

    /// Starts with no algorithm and no key: set the [`algorithms`](JwtBuilder::algorithms) and the keys.
    pub fn builder() -> JwtBuilder {
        JwtBuilder::new()
    }

    /// Returns the number of verified tokens in the cache.
    #[must_use]
    pub fn cached_tokens(&self) -> usize {
        self.cache.len()
    }

    /// Verifies a token and caches it if it is accepted.
    ///
    /// The signature is verified last, because it is the expensive part.
    fn verify(
        &self,
        token: &[u8],
        jws: &Jws<'_>,
        now: Timestamp,
    ) -> Result<Arc<Identity>, InvalidReason> {
        // Loaded once: the cached result belongs to these keys.
        let current = self.keys.current();
        let claims = jws.claims().ok_or(InvalidReason::Malformed)?;
        let (from, until) = claims::period(&claims, self.leeway).ok_or(InvalidReason::Malformed)?;
        claims::within(now, from, until)?;
        let accepted = self.claim_map.accept(&claims);
        if self.claim_map.names_user(&claims) {
            accepted?;
        }
        let verified = jws.verify_signature(&current.keys, &self.algorithms);
        verified.map_err(|reason| accepted.err().unwrap_or(reason))?;
        // A key of the issuer that names no user, such as the `anon` key of Supabase: it has
        // another `iss` than the tokens of users, and no `aud`. Not accepted, but not wrong.
        accepted.map_err(|_| InvalidReason::Claims)?;
        let identity = self.claim_map.identity(&claims);
        let identity = Arc::new(identity.ok_or(InvalidReason::Claims)?);
        let cached = CachedToken {
            identity: Arc::clone(&identity),
            from,
            until,
            generation: current.number,
        };
        self.cache.insert(token, cached);
        Ok(identity)
    }

    /// Looks a token up in the cache. `None` if it has to be verified.
    fn cached(&self, token: &[u8], now: Timestamp) -> Option<Result<Arc<Identity>, InvalidReason>> {
        let cached = self.cache.get(token)?;
        if cached.generation != self.keys.current().number {
            return None;
        }
        let is_valid = claims::within(now, cached.from, cached.until);
        if is_valid.is_err() {
            self.cache.remove(token);
        }
        Some(is_valid.map(|()| cached.identity))
    }

    /// Adds a value to the tokens to verify, if it is a token. Breaks if the request has to be
    /// rejected.
    fn collect<'a>(
        &self,
        token: &'a [u8],
        context: &IdentifyContext<'a>,
        tokens: &mut RequestTokens<'a>,
    ) -> ControlFlow<Identified> {
        if token.len() > self.max_token_bytes {
            return ControlFlow::Break(Identified::TooLarge);
        }
        // A request may repeat a token hundreds of times.
        let index = context.token_index(token);
        if index.is_some_and(|index| tokens[index].is_some()) {
            return ControlFlow::Continue(());
        }
        let found = match self.cached(token, context.now()) {
            Some(cached) => RequestToken::Cached(cached),
            None => match Jws::parse(token) {
                Some(jws) => RequestToken::Unverified(token, jws),
                None => return ControlFlow::Continue(()),
            },
        };
        match context.register_token(token) {
            Registered::New(index) => tokens[index] = Some(found),
            Registered::Accepted => {}
            Registered::TooMany => return ControlFlow::Break(Identified::Ambiguous),
        }
        ControlFlow::Continue(())
    }
}

impl Identify for Jwt {
    fn identify(&self, context: &IdentifyContext<'_>) -> Identified {
        // All are collected before one is verified: a request that is rejected for the number or
        // the size of its tokens costs no verification.
        let mut tokens = RequestTokens::default();
        let rejected = self.location.visit(&context.head(), |token| {
            self.collect(token, context, &mut tokens)
        });
        if let ControlFlow::Break(rejected) = rejected {
            return rejected;
        }
        let mut best = Best::default();
        let mut is_rejected = false;
        for (index, token) in tokens.into_iter().enumerate() {
            let verified = match token {
                None => continue,
                Some(RequestToken::Cached(cached)) => cached,
                Some(RequestToken::Unverified(token, jws)) => {
                    self.verify(token, &jws, context.now())
                }
            };
            match verified {
                Ok(identity) => {
                    context.accept_token(index);
                    if !best.add(identity) {
                        return Identified::Ambiguous;
                    }
                }
                Err(reason) => {
                    context.reject_token(index, reason);
                    is_rejected = true;
                }
            }
        }
        best.into_identified(context.rejected().filter(|_| is_rejected))
    }

    fn is_token_source(&self) -> bool {
        true
    }

    fn description(&self) -> String {
        let algorithms = self.algorithms.iter().map(ToString::to_string);
        let algorithms: Vec<String> = algorithms.collect();
        format!("JWT in {} ({})", self.location, algorithms.join(", "))
    }
}

/// Shows what is accepted. Hides keys and tokens.
impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt")
            .field("algorithms", &self.algorithms)
            .field("keys", &self.keys)
            .field("claims", &self.claim_map)
            .field("leeway", &self.leeway)
            .field("location", &self.location)
            .field("max_token_bytes", &self.max_token_bytes)
            .field("cache_capacity", &self.cache.capacity())
            .finish()
    }
}
