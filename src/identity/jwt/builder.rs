//! Settings of a [`Jwt`].

use std::time::Duration;

use super::Jwt;
use super::algorithm::JwtAlgorithm;
use super::cache::TokenCache;
use super::claims::{ClaimMap, ClaimPath};
use super::key_set::KeySet;
use super::keys::JwtKeys;
use super::location::TokenLocation;
use crate::error::{ValidationError, ValidationErrors};
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
        self.claim_map.issuers.push(issuer.into().into());
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
    ///
    /// # Errors
    ///
    /// All wrong settings, each with its path: `leeway`, `issuer[1]`, `dimensions.team`.
    pub fn build(mut self) -> Result<Jwt, ValidationErrors> {
        let mut errors = ValidationErrors::default();
        self.check_claims(&mut errors);
        self.check_numbers(&mut errors);
        let key_set = self.take_keys(&mut errors);
        if self.algorithms.is_empty() {
            let expected = "the algorithms to accept, such as RS256";
            let error = ValidationError::new("JWT algorithms", "none", expected);
            errors.push(error.at("algorithms"));
        }
        let Some(key_set) = key_set else {
            return Err(errors);
        };
        let known = key_set.current();
        let is_unused = |algorithm: &&JwtAlgorithm| !known.keys.fit(**algorithm);
        // A key set may be filled later.
        if !known.keys.is_empty()
            && let Some(algorithm) = self.algorithms.iter().find(is_unused)
        {
            let expected = "algorithms that one of the keys is made for: HS… for a secret, RS… \
                            or PS… for RSA, ES256 for P-256, ES384 for P-384, EdDSA for Ed25519";
            let error = ValidationError::new("JWT algorithms", algorithm, expected);
            errors.push(error.at("algorithms"));
        }
        drop(known);
        self.claim_map.issuers.sort_unstable();
        self.claim_map.issuers.dedup();
        let capacity = self.cache_capacity.max(1);
        errors.or(Jwt {
            algorithms: self.algorithms.into(),
            keys: key_set,
            claim_map: self.claim_map,
            leeway: self.leeway,
            location: self.location,
            max_token_bytes: self.max_token_bytes,
            cache: TokenCache::new(capacity),
        })
    }

    /// Returns the key set, or the fixed keys as one.
    fn take_keys(&mut self, errors: &mut ValidationErrors) -> Option<KeySet> {
        let keys = std::mem::replace(&mut self.keys, Ok(JwtKeys::none()));
        let keys = errors.note(keys)?;
        let (found, expected) = match self.key_set.take() {
            None if !keys.is_empty() => return Some(KeySet::new(keys)),
            Some(key_set) if keys.is_empty() => return Some(key_set),
            None => ("none", "a secret, a public key, a JWK set or a key set"),
            Some(_) => ("both", "either fixed keys or a key set"),
        };
        errors.push(ValidationError::new("JWT keys", found, expected));
        None
    }

    fn check_numbers(&self, errors: &mut ValidationErrors) {
        if self.leeway > Self::MAX_LEEWAY {
            let found = format!("{:?}", self.leeway);
            let error = ValidationError::new("JWT leeway", found, "at most ten minutes");
            errors.push(error.at("leeway"));
        }
        if self.cache_capacity == 0 {
            let expected = "at least 1 token";
            let error = ValidationError::new("JWT cache_capacity", 0, expected);
            errors.push(error.at("cache_capacity"));
        }
        if !(1..=Self::MAX_TOKEN_BYTES).contains(&self.max_token_bytes) {
            let expected = "1 to 1048576 bytes";
            let error = ValidationError::new("max_token_bytes", self.max_token_bytes, expected);
            errors.push(error.at("max_token_bytes"));
        }
    }

    fn check_claims(&self, errors: &mut ValidationErrors) {
        let claim_map = &self.claim_map;
        let fixed = [
            ("user", Some(&claim_map.user)),
            ("tier", claim_map.tier.as_ref()),
            ("roles", claim_map.roles.as_ref()),
        ];
        let fixed = fixed
            .into_iter()
            .filter_map(|(key, claim)| Some((key.to_owned(), claim?)));
        let dimensions = claim_map.dimensions.iter().map(|(name, claim)| {
            let key = match &**name {
                Identity::TENANT => Identity::TENANT.to_owned(),
                name => format!("dimensions.{name}"),
            };
            (key, claim)
        });
        for (key, claim) in fixed.chain(dimensions) {
            if claim.as_str().is_empty() {
                let expected = "the name or path of a claim, such as sub or app_metadata.plan";
                errors.push(ValidationError::new("JWT claim", "", expected).at(key));
            }
        }
        for (name, _) in &claim_map.dimensions {
            if matches!(&**name, "" | Identity::USER | Identity::IP) {
                let expected = "a name other than user and ip";
                let error = ValidationError::new("JWT dimension", name, expected);
                errors.push(error.at(format!("dimensions.{name}")));
            }
        }
        for (key, names) in [
            ("issuer", &claim_map.issuers),
            ("audience", &claim_map.audiences),
        ] {
            for (index, _) in names.iter().enumerate().filter(|(_, name)| name.is_empty()) {
                let error = ValidationError::new(format!("JWT {key}"), "", "its name");
                errors.push(error.at(format!("{key}[{index}]")));
            }
        }
        if let TokenLocation::Cookie(name) = &self.location
            && (name.is_empty() || name.bytes().any(|byte| b"=; \t".contains(&byte)))
        {
            let error = ValidationError::new("JWT cookie", name, "the name of a cookie");
            errors.push(error.at("cookie"));
        }
    }
}
