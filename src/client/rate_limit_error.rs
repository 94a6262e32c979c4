//! A denial by a server as an error: [`RateLimitError`].

use std::fmt::{self, Write as _};
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

use super::outcome::ResponseOutcome;
use crate::clock::Timestamp;
use crate::invisible::is_invisible;

/// A request that a server denied because of a rate limit, with the details of the response.
///
/// [`PaceLayer::check`](super::PaceLayer::check) returns it in place of the response:
///
/// ```
/// use bytes::Bytes;
/// use http::Response;
/// use std::time::Duration;
/// use tollgate::client::PaceLayer;
///
/// let body = r#"{"error":{"code":"RATE_LIMIT_EXCEEDED","message":"Too many exports.",
///     "details":{"limit":10,"remaining":0,"retry_after":1080,"policy":"user:exports:1h"},
///     "request_id":"req_def456"}}"#;
/// let response = Response::builder().status(429).body(Bytes::from(body)).unwrap();
///
/// let error = PaceLayer::new().check(response).unwrap_err();
/// assert_eq!(error.to_string(), "rate limit exceeded: Too many exports.");
/// let details = error.details;
/// assert_eq!(details.code.as_deref(), Some("RATE_LIMIT_EXCEEDED"));
/// assert_eq!((details.limit, details.remaining), (Some(10), Some(0)));
/// assert_eq!(details.retry_after, Some(Duration::from_secs(1080)));
/// assert_eq!(details.policy.as_deref(), Some("user:exports:1h"));
/// assert_eq!(details.request_id.as_deref(), Some("req_def456"));
/// ```
///
/// The details come from the JSON envelope of this crate, problem details (RFC 9457), and the headers of
/// [`Limits`](crate::headers::Limits) for what the body does not have. What neither has is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimitError {
    /// What is known of the denial. Boxed, so that a `Result` with this error is small.
    pub details: Box<RateLimitDetails>,
}

/// What is known of a [`RateLimitError`]. Texts are those of the server, which can contain any character.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimitDetails {
    /// The status: 429, for GitHub also 403, for gRPC 200.
    pub status: StatusCode,
    /// The error code, such as `RATE_LIMIT_EXCEEDED`; of problem details the type.
    pub code: Option<String>,
    /// The message for people.
    pub message: Option<String>,
    /// What to do instead of waiting.
    pub suggestion: Option<String>,
    /// The limit per window.
    pub limit: Option<u64>,
    /// What remains of the limit.
    pub remaining: Option<u64>,
    /// When the request will be allowed, or the limit resets.
    pub reset_at: Option<Timestamp>,
    /// How long to wait: at most 365 days. Longer waits are shortened, so that the sum with an instant does
    /// not overflow.
    pub retry_after: Option<Duration>,
    /// The name of the limit, such as `user:exports:1h`.
    pub policy: Option<String>,
    /// The id of the request at the server.
    pub request_id: Option<String>,
}

impl RateLimitError {
    /// The most that is kept of a text, in bytes.
    const MAX_TEXT: usize = 1_024;

    /// The longest wait.
    const MAX_RETRY_AFTER: Duration = Duration::from_hours(365 * 24);

    /// Reads a response that arrived at `at`. Returns `None` if it is no denial.
    #[must_use]
    pub fn read(
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        at: Timestamp,
    ) -> Option<Self> {
        let outcome = ResponseOutcome::of(&Method::GET, status, headers, at);
        let refused = outcome.refused.filter(|refused| refused.is_denial)?;
        let Document {
            code,
            message,
            request_id,
            details: fields,
        } = Document::parse(body);
        let limits = outcome.limits.as_ref();
        let field = |name: &str| detail(&fields, name);
        let number = |name| field(name).and_then(Value::as_u64);
        let retry_after = number("retry_after").map(Duration::from_secs);
        let reset_at = text(field("reset_at")).and_then(|at| at.parse().ok());
        let policy = || limits?.policy.as_deref().map(str::to_owned);
        let header_id = || {
            let header = headers.get("x-request-id")?;
            text(Some(&Value::from(header.to_str().ok()?)))
        };
        let details = RateLimitDetails {
            status,
            code,
            message,
            suggestion: text(field("suggestion")),
            limit: number("limit").or_else(|| limits?.limit),
            remaining: number("remaining").or_else(|| limits?.remaining),
            reset_at: reset_at.or_else(|| limits?.reset_at),
            retry_after: retry_after
                .or(refused.wait)
                .map(|wait| wait.min(Self::MAX_RETRY_AFTER)),
            policy: text(field("policy")).or_else(policy),
            request_id: request_id.or_else(header_id),
        };
        Some(Self {
            details: Box::new(details),
        })
    }
}

/// Parts of a body.
#[derive(Default)]
struct Document {
    code: Option<String>,
    message: Option<String>,
    request_id: Option<String>,
    details: Value,
}

impl Document {
    /// Parses the JSON envelope or problem details. What has another type is left out.
    fn parse(body: &[u8]) -> Self {
        let Ok(document) = serde_json::from_slice::<Value>(body) else {
            return Self::default();
        };
        if let Some(error) = document.get("error").filter(|error| error.is_object()) {
            return Self {
                code: text(error.get("code")),
                message: text(error.get("message")),
                request_id: text(error.get("request_id")),
                details: error.get("details").cloned().unwrap_or_default(),
            };
        }
        let message = text(document.get("detail")).or_else(|| text(document.get("title")));
        Self {
            code: text(document.get("type")),
            message,
            request_id: text(document.get("request-id")),
            details: document,
        }
    }
}

/// Returns a detail. Problem details write `retry-after` for `retry_after`.
fn detail<'a>(details: &'a Value, name: &str) -> Option<&'a Value> {
    let detail = details.get(name);
    detail.or_else(|| details.get(name.replace('_', "-")))
}

/// Returns a text that is not empty, cut at [`RateLimitError::MAX_TEXT`].
fn text(value: Option<&Value>) -> Option<String> {
    let text = value?.as_str().filter(|text| !text.is_empty())?;
    let end = text.floor_char_boundary(RateLimitError::MAX_TEXT);
    Some(text[..end].to_owned())
}

/// The message of the server, or what is known of the limit. Invisible and control characters are
/// escaped: `\u{1b}`.
impl fmt::Display for RateLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rate limit exceeded")?;
        let details = &self.details;
        if let Some(message) = &details.message {
            f.write_str(": ")?;
            return write_escaped(f, message);
        }
        if let Some(policy) = &details.policy {
            f.write_str(": ")?;
            write_escaped(f, policy)?;
        }
        if let Some(wait) = details.retry_after {
            write!(f, ", retry after {} s", wait.as_secs_f64().ceil())?;
        }
        Ok(())
    }
}

/// Writes a text of the server, which can neither begin a line nor control a terminal.
fn write_escaped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.chars().try_for_each(|c| {
        if is_invisible(c) {
            write!(f, "{}", c.escape_default())
        } else {
            f.write_char(c)
        }
    })
}

impl std::error::Error for RateLimitError {}
