//! The JSON envelope: one object called `error`.

use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderValue, Response};

use super::complete::Prepared;
use super::finish::answer;
use super::json::Json;
use super::{Denial, DenialKind, Render, message};
use crate::headers::HeaderStyle;

/// Answers with a JSON object:
///
/// ```json
/// {"error":{"code":"RATE_LIMIT_EXCEEDED",
///  "message":"Rate limit exceeded. Please try again in 48 minutes.",
///  "details":{"limit":1000,"remaining":0,"reset_at":"2025-10-30T14:00:00.000Z",
///             "retry_after":2856,"policy":"user:global:1h","suggestion":"…"},
///  "request_id":"req_7f8e9d0c1b2a3456","timestamp":"2025-10-30T13:12:24.000Z"}}
/// ```
///
/// `suggestion` is there only if the rule has one; `reset_at` and `retry_after` only where
/// waiting helps; of a quota is told only where there is one (so not in a 503). `reset_at` is
/// rounded up to whole seconds, as is `X-RateLimit-Reset`: they are the same instant.
///
/// ```
/// use http::Request;
/// use tollgate::response::{Denial, JsonEnvelope, Render};
/// use tollgate::{RequestHead, Timestamp};
///
/// let request = Request::get("/").header("x-request-id", "r1").body(()).unwrap();
/// let denial = Denial::unauthorized(RequestHead::of(&request), Timestamp::from_secs(1_761_829_944));
/// let response = JsonEnvelope.render(&denial);
/// assert_eq!(response.status(), 401);
/// assert_eq!(
///     response.body(),
///     concat!(
///         r#"{"error":{"code":"INVALID_CREDENTIALS","#,
///         r#""message":"The credentials that came with this request are not valid.","#,
///         r#""details":{},"request_id":"r1","timestamp":"2025-10-30T13:12:24.000Z"}}"#,
///     ),
/// );
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonEnvelope;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

static PREPARED: LazyLock<Prepared> = LazyLock::new(|| Prepared::new(JSON));

impl Render for JsonEnvelope {
    fn render(&self, denial: &Denial<'_>) -> Response<Bytes> {
        answer(denial.status(), JSON, body(denial))
    }

    fn respond(&self, denial: &Denial<'_>, style: HeaderStyle) -> Response<Bytes> {
        PREPARED.complete(denial, style, body(denial))
    }
}

/// Few long pieces instead of many short ones: each is a call.
fn body(denial: &Denial<'_>) -> Bytes {
    let mut json = Json::new();
    json.raw(match denial.kind() {
        DenialKind::Limited => r#"{"error":{"code":"RATE_LIMIT_EXCEEDED","message":""#,
        DenialKind::Unavailable => r#"{"error":{"code":"RATE_LIMIT_UNAVAILABLE","message":""#,
        DenialKind::Unauthorized => r#"{"error":{"code":"INVALID_CREDENTIALS","message":""#,
        DenialKind::InvalidPath => r#"{"error":{"code":"INVALID_PATH","message":""#,
        DenialKind::PathTooLong => r#"{"error":{"code":"PATH_TOO_LONG","message":""#,
        DenialKind::AmbiguousCredentials => {
            r#"{"error":{"code":"AMBIGUOUS_CREDENTIALS","message":""#
        }
    });
    json.inside(|out| message::write(denial, out));
    details(denial, &mut json);
    let micros = denial.at().as_micros();
    json.raw(r#"},"request_id":""#)
        .plain(denial.request_id().as_bytes())
        .raw(r#"","timestamp":""#)
        .time(micros / 1_000_000, micros / 1_000 % 1_000)
        .raw(r#""}}"#);
    json.finish()
}

/// Begins with the end of the message.
fn details(denial: &Denial<'_>, json: &mut Json) {
    let wait = denial.reset_at().zip(denial.retry_after_secs());
    let wait = wait.map(|(reset_at, secs)| (reset_at.as_secs_rounded_up(), secs));
    match (denial.limit(), wait) {
        (Some(limit), Some((reset_at, secs))) => json
            .raw(r#"","details":{"limit":"#)
            .number(limit)
            .raw(r#","remaining":0,"reset_at":""#)
            .time(reset_at, 0)
            .raw(r#"","retry_after":"#)
            .number(secs),
        (Some(limit), None) => json
            .raw(r#"","details":{"limit":"#)
            .number(limit)
            .raw(r#","remaining":0"#),
        (None, Some((reset_at, secs))) => json
            .raw(r#"","details":{"reset_at":""#)
            .time(reset_at, 0)
            .raw(r#"","retry_after":"#)
            .number(secs),
        (None, None) => json.raw(r#"","details":{"#),
    };
    // Only a quota has a name, and only a rule with quotas has a suggestion.
    if let Some(policy) = denial.policy() {
        json.raw(r#","policy":""#)
            .plain(policy.as_bytes())
            .raw("\"");
        if let Some(suggestion) = denial.suggestion() {
            json.raw(r#","suggestion":"#).string(suggestion);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They are written out, as part of something longer.
    #[test]
    fn codes_are_those_of_the_kinds() {
        let request = http::Request::new(());
        let (head, at) = (crate::RequestHead::of(&request), crate::Timestamp::EPOCH);
        let wait = std::time::Duration::from_secs(1);
        for denial in [
            Denial::unauthorized(head, at),
            Denial::invalid_path(head, "no", at),
            Denial::path_too_long(head, "no", at),
            Denial::ambiguous_credentials(head, at),
            Denial::unavailable(head, wait, at),
        ] {
            let start = format!(r#"{{"error":{{"code":"{}","#, denial.kind().code());
            assert!(body(&denial).starts_with(start.as_bytes()));
        }
    }
}
