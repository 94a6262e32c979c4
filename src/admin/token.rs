//! The token of the admin API, and the limit for wrong ones.

use std::fmt;
use std::hint::black_box;
use std::net::IpAddr;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};

use super::audit;
use super::refusal::Refusal;
use crate::error::{Error, ValidationError};
use crate::headers::retry_after_secs;
use crate::key::{Subject, Value};
use crate::limiter::Limiter;
use crate::pipeline::RequestPipeline;
use crate::quota::Quota;
use crate::response::RequestId;
use crate::store::MemoryStore;

/// What is kept of a token: enough to know it again.
pub(super) struct Token([u8; 32]);

impl Token {
    /// Fewer characters can be guessed.
    const SHORTEST: usize = 8;

    pub(super) fn new(text: &str) -> Result<Self, ValidationError> {
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.len() < Self::SHORTEST || !visible {
            // What was meant as a secret is not shown.
            let found = format!("{} characters", text.chars().count());
            let expected = "at least 8 visible characters of ASCII, without spaces; better 32 \
                            random ones";
            return Err(ValidationError::new("admin token", found, expected));
        }
        Ok(Self(Sha256::digest(text).into()))
    }

    /// Whether it is this one. How long that takes says nothing of how much of it is right:
    /// digests are compared, and always the whole of them.
    fn is(&self, shown: &str) -> bool {
        let shown: [u8; 32] = Sha256::digest(shown).into();
        let differences = self
            .0
            .iter()
            .zip(&shown)
            .fold(0, |differences, (one, other)| {
                black_box(differences | (one ^ other))
            });
        differences == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Lets those in who show the token.
#[derive(Debug)]
pub(super) struct Doorkeeper {
    /// None if everybody is let in.
    token: Option<Token>,
    /// Wrong tokens per client IP.
    wrong: Limiter,
}

impl Doorkeeper {
    /// More addresses than this share one counter.
    const ADDRESSES: usize = 100_000;

    pub(super) fn new(
        token: Option<Token>,
        wrong: Quota,
        pipeline: &RequestPipeline,
    ) -> Result<Self, Error> {
        let store = MemoryStore::builder().capacity(Self::ADDRESSES).build()?;
        let wrong = Limiter::builder()
            .name("admin-token")
            .quota(wrong)
            .store(store)
            .clock(pipeline.clock())
            .build()?;
        Ok(Self { token, wrong })
    }

    /// Checks the token of a request.
    ///
    /// The right token is accepted at any time: wrong ones must not lock the operator out. A
    /// client IP that has sent too many wrong tokens gets 429 for further wrong ones. Clients
    /// without a known address always get 401, but their audit events share one counter, so that
    /// they cannot flood the log. Guessing is made hopeless by the length of the token, not by this
    /// limit.
    pub(super) fn admit(&self, headers: &HeaderMap, from: Option<IpAddr>) -> Result<(), Refusal> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        let Some(shown) = shown(headers) else {
            return Err(Refusal::unauthorized(
                "This needs the admin token, in the header `Authorization: Bearer …`.",
            ));
        };
        if token.is(shown) {
            return Ok(());
        }
        let client = match from {
            Some(ip) => ("ip", Value::Address(ip)),
            None => ("ip", Value::Text("unknown")),
        };
        let checked = self.wrong.check(Subject::named(client)).wait();
        let decision = checked.map_err(Refusal::from)?;
        if !decision.is_denied() {
            audit::wrong_token(RequestId::of(headers).as_str());
        } else if from.is_some() {
            let wait = decision.retry_after().unwrap_or_default();
            return Err(Refusal::too_many_tokens(retry_after_secs(wait)));
        }
        Err(Refusal::unauthorized("This is not the admin token."))
    }
}

/// Returns the token of a request. Header lines that differ are ambiguous, and therefore none.
fn shown(headers: &HeaderMap) -> Option<&str> {
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
    fn a_token_is_itself_and_nothing_else() {
        let token = Token::new("a token for these tests").unwrap_err();
        assert_eq!(token.value(), "23 characters");
        let token = Token::new("a-token-for-these-tests").unwrap();
        assert!(token.is("a-token-for-these-tests"));
        for other in ["", "a", "a-token-for-these-test", "a-token-for-these-testt"] {
            assert!(!token.is(other), "{other}");
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
    }

    #[test]
    fn tokens_that_can_be_guessed_or_not_be_sent_are_refused() {
        for text in [
            "",
            "hush",
            "1234567",
            "hush hush hush",
            "schlüssel",
            "a\nbcdefgh",
        ] {
            let refused = Token::new(text).unwrap_err();
            assert_eq!(refused.field(), "admin token");
            assert!(text.is_empty() || !refused.to_string().contains(text));
        }
    }

    #[test]
    fn lines_that_differ_are_no_token() {
        let shown_by = |values: &[&str]| {
            let values = values
                .iter()
                .map(|value| (AUTHORIZATION, value.parse().unwrap()));
            shown(&values.collect()).map(str::to_owned)
        };
        assert_eq!(shown_by(&["Bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(shown_by(&["bEARER   abc"]).as_deref(), Some("abc"));
        let twice = ["Bearer abc", "Bearer abc"];
        assert_eq!(shown_by(&twice).as_deref(), Some("abc"));
        for none in [&[][..], &["Basic abc"], &["abc"], &["Bearer a", "Bearer b"]] {
            assert_eq!(shown_by(none), None, "{none:?}");
        }
    }
}
