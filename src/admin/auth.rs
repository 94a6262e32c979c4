//! Authentication by token, and the limit of wrong tokens.

use std::fmt;
use std::hint::black_box;
use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};

use super::api_error::ApiError;
use super::audit;
use super::operator::{AdminRole, Operator};
use crate::error::{Error, ValidationError};
use crate::headers::retry_after_secs;
use crate::key::{Subject, Value, is_plain};
use crate::limiter::Limiter;
use crate::pipeline::RequestPipeline;
use crate::quota::Quota;
use crate::response::RequestId;
use crate::store::MemoryStore;

/// SHA-256 of a token.
pub(super) struct TokenDigest([u8; 32]);

impl TokenDigest {
    const MIN_LENGTH: usize = 8;

    pub(super) fn new(text: &str) -> Result<Self, ValidationError> {
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.len() < Self::MIN_LENGTH || !visible {
            // The error does not contain the secret.
            let found = format!("{} characters", text.chars().count());
            let expected = "at least 8 visible characters of ASCII, without spaces; better 32 \
                            random ones";
            return Err(ValidationError::new("admin token", found, expected));
        }
        Ok(Self(Sha256::digest(text).into()))
    }

    /// Returns whether a token matches, in constant time: all bytes of the digests are compared.
    fn matches(&self, token: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let differences = self
            .0
            .iter()
            .zip(&digest)
            .fold(0, |differences, (one, other)| {
                black_box(differences | (one ^ other))
            });
        differences == 0
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Token of one operator.
#[derive(Debug)]
pub(super) struct AdminToken {
    digest: TokenDigest,
    operator: Operator,
}

impl AdminToken {
    /// Creates a token without a name, which may change everything.
    pub(super) fn shared(secret: &str) -> Result<Self, ValidationError> {
        Ok(Self {
            digest: TokenDigest::new(secret)?,
            operator: Operator {
                name: None,
                role: AdminRole::Write,
            },
        })
    }

    /// Creates the token of an operator. The error names the operator, never the secret.
    pub(super) fn named(
        name: &str,
        role: AdminRole,
        secret: &str,
    ) -> Result<Self, ValidationError> {
        if !is_plain(name, Self::MAX_NAME) {
            let shown: String = name.chars().take(Self::MAX_NAME).collect();
            let expected = "1 to 64 visible ASCII characters, without quotes and backslashes";
            let error = ValidationError::new("admin token name", shown.escape_debug(), expected);
            return Err(error);
        }
        let digest = TokenDigest::new(secret).map_err(|error| error.within(name))?;
        let name = Some(Arc::from(name));
        Ok(Self {
            digest,
            operator: Operator { name, role },
        })
    }

    const MAX_NAME: usize = 64;

    /// Returns an error if another token has this name or this secret: audit events could then not be
    /// attributed.
    pub(super) fn differs_from(&self, other: &Self) -> Result<(), ValidationError> {
        let name = self.operator.name.as_deref().unwrap_or("shared");
        if self.operator.name == other.operator.name {
            let expected = "one token for each name";
            return Err(ValidationError::new("admin token name", name, expected));
        }
        if self.digest.0 == other.digest.0 {
            let expected = "another secret than that of the other tokens";
            return Err(ValidationError::new(
                "admin token",
                "a secret that is used twice",
                expected,
            )
            .within(name));
        }
        Ok(())
    }
}

/// Checks tokens, and counts wrong ones.
#[derive(Debug)]
pub(super) struct TokenAuth {
    /// `None` if every request is accepted.
    tokens: Option<Vec<AdminToken>>,
    /// Wrong tokens per client IP.
    wrong: Limiter,
}

impl TokenAuth {
    /// Further addresses share counters.
    const MAX_ADDRESSES: usize = 100_000;

    pub(super) fn new(
        tokens: Option<Vec<AdminToken>>,
        wrong: Quota,
        pipeline: &RequestPipeline,
    ) -> Result<Self, Error> {
        let store = MemoryStore::builder()
            .capacity(Self::MAX_ADDRESSES)
            .build()?;
        let wrong = Limiter::builder()
            .name("admin-token")
            .quota(wrong)
            .store(store)
            .clock(pipeline.clock())
            .build()?;
        Ok(Self { tokens, wrong })
    }

    /// Checks the token of a request, and returns the operator that it belongs to.
    ///
    /// The right token is accepted at any time: wrong ones must not lock the operator out. A
    /// client IP that has sent too many wrong tokens gets 429 for further wrong ones. Clients
    /// without a known address always get 401, but their audit events share one counter, so that
    /// they cannot flood the log. The length of the token prevents guessing, not this limit.
    pub(super) fn authorize(
        &self,
        headers: &HeaderMap,
        from: Option<IpAddr>,
    ) -> Result<Operator, ApiError> {
        let Some(tokens) = &self.tokens else {
            return Ok(Operator::UNKNOWN);
        };
        let Some(sent) = bearer_token(headers) else {
            return Err(ApiError::unauthorized(
                "The admin token is required, in the header `Authorization: Bearer …`.",
            ));
        };
        // All tokens are compared, so that the duration does not depend on which one matches.
        let matching: Vec<_> = tokens
            .iter()
            .filter(|token| token.digest.matches(sent))
            .collect();
        if let Some(token) = matching.first() {
            return Ok(token.operator.clone());
        }
        let client = match from {
            Some(ip) => ("ip", Value::Address(ip)),
            None => ("ip", Value::Text("unknown")),
        };
        let checked = self.wrong.check(Subject::named(client)).wait();
        let decision = checked.map_err(ApiError::from)?;
        if !decision.is_denied() {
            audit::wrong_token(RequestId::of(headers).as_str());
        } else if from.is_some() {
            let wait = decision.retry_after().unwrap_or_default();
            return Err(ApiError::too_many_tokens(retry_after_secs(wait)));
        }
        Err(ApiError::unauthorized("This is not an admin token."))
    }
}

/// Returns the token of a request. Header lines that differ are ambiguous, and therefore none.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let first = values.next()?;
    let only = values.all(|value| value == first).then_some(first)?;
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_matches() {
        let token = TokenDigest::new("a token for these tests").unwrap_err();
        assert_eq!(token.value(), "23 characters");
        let token = TokenDigest::new("a-token-for-these-tests").unwrap();
        assert!(token.matches("a-token-for-these-tests"));
        for other in ["", "a", "a-token-for-these-test", "a-token-for-these-testt"] {
            assert!(!token.matches(other), "{other}");
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
    }

    #[test]
    fn short_and_unsendable_tokens_are_rejected() {
        for text in [
            "",
            "hush",
            "1234567",
            "hush hush hush",
            "schlüssel",
            "a\nbcdefgh",
        ] {
            let error = TokenDigest::new(text).unwrap_err();
            assert_eq!(error.field(), "admin token");
            assert!(text.is_empty() || !error.to_string().contains(text));
        }
    }

    #[test]
    fn differing_authorization_lines_are_no_token() {
        let sent_by = |values: &[&str]| {
            let values = values
                .iter()
                .map(|value| (AUTHORIZATION, value.parse().unwrap()));
            bearer_token(&values.collect()).map(str::to_owned)
        };
        assert_eq!(sent_by(&["Bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(sent_by(&["bEARER   abc"]).as_deref(), Some("abc"));
        let twice = ["Bearer abc", "Bearer abc"];
        assert_eq!(sent_by(&twice).as_deref(), Some("abc"));
        for none in [&[][..], &["Basic abc"], &["abc"], &["Bearer a", "Bearer b"]] {
            assert_eq!(sent_by(none), None, "{none:?}");
        }
    }
}
