//! Reads claims: times, issuer, audience, and the parts of an identity.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use super::super::invalid_reason::InvalidReason;
use crate::clock::Timestamp;
use crate::identity_types::Identity;

/// Longest value that becomes part of an identity, in bytes.
const MAX_VALUE: usize = 256;
/// Most roles that are read.
const MAX_ROLES: usize = 64;

/// Path of a claim: `sub`, `app_metadata.plan`, `https://example.com/plan`.
#[derive(Clone, Debug)]
pub(super) struct ClaimPath(Box<str>);

impl ClaimPath {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the claim of exactly this name, else the one at the end of the path. `null` is treated
    /// as missing.
    fn find<'a>(&self, claims: &'a Value) -> Option<&'a Value> {
        let whole = claims.get(&*self.0);
        let found = whole.or_else(|| {
            self.0
                .split('.')
                .try_fold(claims, |inside, name| inside.get(name))
        });
        found.filter(|value| !value.is_null())
    }
}

/// Claims that form the identity, and the issuers and audiences that are accepted.
#[derive(Clone, Debug)]
pub(super) struct ClaimMap {
    pub(super) user: ClaimPath,
    pub(super) tier: Option<ClaimPath>,
    pub(super) roles: Option<ClaimPath>,
    /// `tenant` and other dimensions of rules.
    pub(super) dimensions: Vec<(Box<str>, ClaimPath)>,
    pub(super) issuers: Vec<Box<str>>,
    pub(super) audiences: Vec<Box<str>>,
}

impl ClaimMap {
    /// Checks that the issuer and the audience are accepted.
    pub(super) fn accept(&self, claims: &Value) -> Result<(), InvalidReason> {
        let issuer = claims.get("iss");
        let from = self.issuers.is_empty()
            || issuer
                .and_then(Value::as_str)
                .is_some_and(|issuer| self.issuers.iter().any(|known| **known == *issuer));
        let meant = |audience: &Value| {
            let audience = audience.as_str();
            audience.is_some_and(|name| self.audiences.iter().any(|known| **known == *name))
        };
        let for_us = self.audiences.is_empty()
            || match claims.get("aud") {
                Some(Value::Array(several)) => several.iter().any(meant),
                Some(one) => meant(one),
                None => false,
            };
        match (from, for_us) {
            (true, true) => Ok(()),
            (false, _) => Err(InvalidReason::Issuer),
            (true, false) => Err(InvalidReason::Audience),
        }
    }

    /// Returns whether the token names a user.
    pub(super) fn names_user(&self, claims: &Value) -> bool {
        self.user_of(claims).is_some()
    }

    fn user_of<'a>(&self, claims: &'a Value) -> Option<Cow<'a, str>> {
        self.user.find(claims).and_then(text_or_number)
    }

    /// Returns the identity; an unauthenticated one if no user is named. `None` if the issuer or
    /// another dimension has an unusable value.
    pub(super) fn identity(&self, claims: &Value) -> Option<Identity> {
        let mut identity = match self.user_of(claims) {
            Some(user) => Identity::user(user),
            None => Identity::unauthenticated(),
        };
        // With exactly one issuer, all users are of that one.
        if self.issuers.len() != 1
            && let Some(issuer) = claims.get("iss")
        {
            identity = identity.of_issuer(text(issuer)?);
        }
        for (dimension, path) in &self.dimensions {
            if let Some(value) = path.find(claims) {
                identity = identity.with(&**dimension, text_or_number(value)?);
            }
        }
        if identity.is_authenticated()
            && let Some(tier) = self.tier.as_ref().and_then(|path| path.find(claims))
            && let Some(tier) = text(tier)
        {
            identity = identity.tier(tier);
        }
        let roles = self.roles.as_ref().and_then(|path| path.find(claims));
        let roles = match roles {
            Some(Value::Array(several)) => several.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        for role in roles.iter().filter_map(text).take(MAX_ROLES) {
            identity = identity.role(role);
        }
        Some(identity)
    }
}

/// Returns text that may become part of an identity: 1 to 256 bytes, not only white space.
fn text(value: &Value) -> Option<&str> {
    let text = value.as_str()?;
    let fits = text.len() <= MAX_VALUE && !text.trim().is_empty();
    fits.then_some(text)
}

/// Returns text, or a whole number as its decimal text. Other numbers have no exact text.
fn text_or_number(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Number(number) if number.is_u64() || number.is_i64() => {
            Some(number.to_string().into())
        }
        value => text(value).map(Cow::Borrowed),
    }
}

/// Returns from when, and until when (exclusively), a token is valid. `None` if `exp` is missing,
/// or if either is not a number.
///
/// As in `jsonwebtoken`, times are compared in whole seconds: a token is valid during the whole
/// second `exp + leeway`. Otherwise an application would accept it up to one second longer than
/// the limiter, and its caller would evade the limit per user.
pub(super) fn period(claims: &Value, leeway: Duration) -> Option<(Timestamp, Timestamp)> {
    let exp = seconds(claims.get("exp")?)?.as_secs_rounded_up();
    let until = Timestamp::from_secs(exp.saturating_add(1)).saturating_add(leeway);
    let from = match claims.get("nbf") {
        Some(value) => seconds(value)?.as_micros() / 1_000_000 * 1_000_000,
        None => 0,
    };
    let leeway = u64::try_from(leeway.as_micros()).unwrap_or(u64::MAX);
    let from = Timestamp::from_micros(from.saturating_sub(leeway));
    Some((from, until))
}

/// Checks that a token is valid at this instant.
pub(super) fn within(
    now: Timestamp,
    from: Timestamp,
    until: Timestamp,
) -> Result<(), InvalidReason> {
    if now < from {
        Err(InvalidReason::NotYetValid)
    } else if now < until {
        Ok(())
    } else {
        Err(InvalidReason::Expired)
    }
}

/// Parses seconds since the epoch, with or without a fraction. Negative values become 0.
fn seconds(value: &Value) -> Option<Timestamp> {
    let number = value.as_number()?;
    if let Some(whole) = number.as_u64() {
        return Some(Timestamp::from_secs(whole));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, as intended"
    )]
    let micros = (number.as_f64()? * 1e6) as u64;
    Some(Timestamp::from_micros(micros))
}
