//! Settings of a [`Jwt`].

use std::time::Duration;

use super::Jwt;
use super::algorithm::JwtAlgorithm;
use super::cache::TokenCache;
use super::claims::{ClaimMap, ClaimPath};
use super::key_set::KeySet;
use super::keys::JwtKeys;
use super::location::TokenLocation;
use crate::error::ValidationError;
use crate::identity_types::Identity;

/// Settings of a [`Jwt`]. Algorithms and keys are required.
#[derive(Debug)]
#[must_use]
pub struct JwtBuilder {
    algorithms: Vec<JwtAlgorithm>,
    /// Fixed keys, or the error of the first invalid one.
    keys: Result<JwtKeys, ValidationError>,
    key_set: Option<KeySet>,
    claim_map: ClaimMap,
    leeway: Duration,
    location: TokenLocation,
    max_token_bytes: usize,
    cache_capacity: usize,
}

impl JwtBuilder {
    /// As in `jsonwebtoken`: an application with its default settings accepts the same tokens.
    const LEEWAY: Duration = Duration::from_mins(1);
    const MAX_LEEWAY: Duration = Duration::from_mins(10);
    const CACHE_CAPACITY: usize = 10_000;
    const DEFAULT_MAX_TOKEN_BYTES: usize = 16 << 10;
    const MAX_TOKEN_BYTES: usize = 1 << 20;

    pub(super) fn new() -> Self {
        Self {
            algorithms: Vec::new(),
            keys: Ok(JwtKeys::none()),
            key_set: None,
            claim_map: ClaimMap {
                user: ClaimPath::new("sub"),
                tier: None,
                roles: None,
                dimensions: Vec::new(),
                issuers: Vec::new(),
                audiences: Vec::new(),
            },
            leeway: Self::LEEWAY,
            location: TokenLocation::Bearer,
            max_token_bytes: Self::DEFAULT_MAX_TOKEN_BYTES,
            cache_capacity: Self::CACHE_CAPACITY,
        }
    }

    /// Sets the accepted algorithms. Required: which ones are safe depends on the keys.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = JwtAlgorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Adds a key: a shared secret, for `HS256` and its like.
    pub fn secret(self, secret: impl AsRef<[u8]>) -> Self {
        self.add(JwtKeys::secret(secret))
    }

    /// Adds a key: a public key as PEM text.
    pub fn pem(self, text: impl AsRef<[u8]>) -> Self {
        self.add(JwtKeys::pem(text))
    }

    /// Adds keys: a JWK set as JSON text.
    ///
    /// A token that names its key (`kid`) is verified with that key; if no key has the name, with the
    /// keys that have none. A token without `kid` is verified with all keys that fit its algorithm, at
    /// most 8.
    pub fn jwks(self, json: impl AsRef<[u8]>) -> Self {
        self.add(JwtKeys::jwks(json))
    }

    /// Uses keys that can be replaced at run time, instead of fixed ones.
    pub fn key_set(mut self, keys: &KeySet) -> Self {
        self.key_set = Some(keys.clone());
        self
    }

    fn add(mut self, more: Result<JwtKeys, ValidationError>) -> Self {
        self.keys = match (self.keys, more) {
            (Ok(keys), Ok(more)) => Ok(keys.and(more)),
            (Err(first), _) | (Ok(_), Err(first)) => Err(first),
        };
        self
    }

    /// Adds an accepted issuer (`iss`). Default: every issuer.
    ///
    /// With exactly one issuer, users are identified by the bare claim. With several, or none, users
    /// are [qualified by their issuer](Identity::of_issuer): one name from two issuers is two users.
    /// Tenants and other dimensions are not qualified.
    ///
    /// Exemptions and tiers in a policy apply to a name from every accepted issuer. If users can choose
    /// their names, accept only one issuer.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        let issuer = issuer.into().into_boxed_str();
        if !self.claim_map.issuers.contains(&issuer) {
            self.claim_map.issuers.push(issuer);
        }
        self
    }

    /// Adds an accepted audience (`aud`, a text or a list). Default: `aud` is not checked.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.claim_map.audiences.push(audience.into().into());
        self
    }

    /// Sets how far clocks may differ, at most 10 minutes. Default: 60 seconds, as in `jsonwebtoken`.
    /// A token is valid from `nbf` minus the leeway until `exp` plus the leeway, in whole seconds.
    ///
    /// Set it to the leeway of the application: a token that the application accepts and the
    /// limiter does not makes the caller unauthenticated for the limiter only.
    pub const fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway;
        self
    }

    /// Sets the claim of the user. Default: `sub`.
    ///
    /// Claims are named by path: `app_metadata.plan` is `plan` inside `app_metadata`, unless
    /// there is a claim with exactly this name, including dots. The user is a text of 1 to 256 bytes
    /// that is not only white space, or a whole number, which is its decimal text. Without such
    /// a value, the caller is [unauthenticated](Identity::unauthenticated).
    pub fn user(mut self, path: impl Into<String>) -> Self {
        self.claim_map.user = ClaimPath::new(path);
        self
    }

    /// Sets the claim of the subscription tier. A value that is not text is ignored.
    pub fn tier(mut self, path: impl Into<String>) -> Self {
        self.claim_map.tier = Some(ClaimPath::new(path));
        self
    }

    /// Sets the claim of the tenant. It may be missing. Any value other than a text of 1 to
    /// 256 bytes or a whole number makes the token invalid.
    pub fn tenant(self, path: impl Into<String>) -> Self {
        self.dimension(Identity::TENANT, path)
    }

    /// Sets the claim of the roles: a text or a list of texts. At most 64 are read.
    pub fn roles(mut self, path: impl Into<String>) -> Self {
        self.claim_map.roles = Some(ClaimPath::new(path));
        self
    }

    /// Adds a dimension for rules, and its claim, with the requirements of
    /// [`tenant`](JwtBuilder::tenant).
    pub fn dimension(mut self, name: impl Into<String>, path: impl Into<String>) -> Self {
        let dimension = (name.into().into(), ClaimPath::new(path));
        self.claim_map.dimensions.push(dimension);
        self
    }

    /// Reads the token from the cookie `name`, instead of `Authorization: Bearer`.
    ///
    /// If there are several cookies of that name, all are verified, at most 4 tokens per
    /// request. Tokens of different users are ambiguous: the request gets 401.
    pub fn cookie(mut self, name: impl Into<String>) -> Self {
        self.location = TokenLocation::Cookie(name.into().into());
        self
    }

    /// Sets the largest token that is verified, 1 byte to 1 MiB. Default: 16 KiB. A request with a
    /// larger one gets 401.
    pub const fn max_token_bytes(mut self, bytes: usize) -> Self {
        self.max_token_bytes = bytes;
        self
    }

    /// Sets how many verified tokens are cached. Default: 10,000.
    ///
    /// The cache stores whole tokens. It holds at most this number times
    /// [`max_token_bytes`](Self::max_token_bytes), with the defaults 160 MiB, and the identities
    /// besides. Only tokens that your keys have signed are cached. They usually have less than 1 KiB:
    /// 10 MiB for 10,000.
    pub const fn cache_capacity(mut self, tokens: usize) -> Self {
        self.cache_capacity = tokens;
        self
    }

    /// Validates the settings.
    pub fn build(self) -> Result<Jwt, ValidationError> {
        self.check_claims()?;
        let keys = self.keys?;
        let key_set = match self.key_set {
            None if keys.is_empty() => {
                let expected = "a secret, a public key, a JWK set or a key set";
                return Err(ValidationError::new("JWT keys", "none", expected));
            }
            None => KeySet::new(keys),
            Some(_) if !keys.is_empty() => {
                let expected = "either fixed keys or a key set";
                return Err(ValidationError::new("JWT keys", "both", expected));
            }
            Some(key_set) => key_set,
        };
        if self.algorithms.is_empty() {
            let expected = "the algorithms to accept, such as RS256";
            return Err(ValidationError::new("JWT algorithms", "none", expected));
        }
        let known = key_set.current();
        let is_unused = |algorithm: &&JwtAlgorithm| !known.keys.fit(**algorithm);
        // A key set may be filled later.
        if !known.keys.is_empty()
            && let Some(algorithm) = self.algorithms.iter().find(is_unused)
        {
            let expected = "algorithms that one of the keys is made for: HS… for a secret, RS… \
                            or PS… for RSA, ES256 for P-256, ES384 for P-384, EdDSA for Ed25519";
            return Err(ValidationError::new("JWT algorithms", algorithm, expected));
        }
        drop(known);
        if self.leeway > Self::MAX_LEEWAY {
            let shown = format!("{:?}", self.leeway);
            return Err(ValidationError::new(
                "JWT leeway",
                shown,
                "at most ten minutes",
            ));
        }
        if self.cache_capacity == 0 {
            let expected = "at least 1 token";
            return Err(ValidationError::new("JWT cache_capacity", 0, expected));
        }
        if !(1..=Self::MAX_TOKEN_BYTES).contains(&self.max_token_bytes) {
            let expected = "1 to 1048576 bytes";
            return Err(ValidationError::new(
                "max_token_bytes",
                self.max_token_bytes,
                expected,
            ));
        }
        Ok(Jwt {
            algorithms: self.algorithms.into(),
            keys: key_set,
            claim_map: self.claim_map,
            leeway: self.leeway,
            location: self.location,
            max_token_bytes: self.max_token_bytes,
            cache: TokenCache::new(self.cache_capacity),
        })
    }

    fn check_claims(&self) -> Result<(), ValidationError> {
        let claim_map = &self.claim_map;
        let paths = [&claim_map.tier, &claim_map.roles].into_iter().flatten();
        let paths = paths.chain(claim_map.dimensions.iter().map(|(_, path)| path));
        let mut paths = paths.chain([&claim_map.user]);
        if paths.any(|path| path.as_str().is_empty()) {
            let expected = "the name or path of a claim, such as sub or app_metadata.plan";
            return Err(ValidationError::new("JWT claim", "", expected));
        }
        for (name, _) in &claim_map.dimensions {
            if matches!(&**name, "" | Identity::USER | Identity::IP) {
                let expected = "a name other than user and ip";
                return Err(ValidationError::new("JWT dimension", name, expected));
            }
        }
        let accepted = claim_map.issuers.iter().chain(&claim_map.audiences);
        if accepted.into_iter().any(|text| text.is_empty()) {
            return Err(ValidationError::new(
                "JWT issuer or audience",
                "",
                "its name",
            ));
        }
        if let TokenLocation::Cookie(name) = &self.location
            && (name.is_empty() || name.bytes().any(|byte| b"=; \t".contains(&byte)))
        {
            return Err(ValidationError::new(
                "JWT cookie",
                name,
                "the name of a cookie",
            ));
        }
        Ok(())
    }
}
