//! [`JsonEnvelope`]: renders denials as a JSON object with the field `error`.

use bytes::Bytes;
use http::{HeaderValue, Response};
use serde::Serialize;

use super::finish::response_with_body;
use super::json::to_json;
use super::{Denial, Render};
use crate::clock::Timestamp;

/// Renders a denial as a JSON object:
///
/// ```json
/// {"error":{"code":"RATE_LIMIT_EXCEEDED",
///  "message":"Rate limit exceeded. Please try again in 48 minutes.",
///  "details":{"limit":1000,"remaining":0,"reset_at":"2025-10-30T14:00:00.000Z",
///             "retry_after":2856,"policy":"user:global:1h","suggestion":"…"},
///  "request_id":"req_7f8e9d0c1b2a3456","timestamp":"2025-10-30T13:12:24.000Z"}}
/// ```
///
/// `suggestion` is present only if the rule has one, `reset_at` and `retry_after` only if waiting
/// helps, and the fields of a quota only if a quota has denied (not in a 503). `reset_at` is rounded
/// up to whole seconds, so that it is the instant of `X-RateLimit-Reset`.
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

impl Render for JsonEnvelope {
    fn render(&self, denial: &Denial<'_>) -> Response<Bytes> {
        let document = EnvelopeDocument {
            error: ErrorObject {
                code: denial.kind().code(),
                message: &denial.message(),
                details: Details::of(denial),
                request_id: denial.request_id().as_str(),
                timestamp: denial.at(),
            },
        };
        response_with_body(denial.status(), JSON, to_json(&document))
    }
}

/// The fields are serialized in this order.
#[derive(Serialize)]
struct EnvelopeDocument<'a> {
    error: ErrorObject<'a>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    code: &'static str,
    message: &'a str,
    details: Details<'a>,
    request_id: &'a str,
    timestamp: Timestamp,
}

#[derive(Serialize)]
struct Details<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<&'a str>,
}

impl<'a> Details<'a> {
    fn of(denial: &Denial<'a>) -> Self {
        let limit = denial.limit();
        let reset_at = denial.reset_at();
        Self {
            limit,
            remaining: limit.map(|_| denial.remaining()),
            reset_at: reset_at.map(|at| Timestamp::from_secs(at.as_secs_rounded_up())),
            retry_after: reset_at.and_then(|_| denial.retry_after_secs()),
            policy: denial.policy(),
            // Suggestions belong to rules with quotas.
            suggestion: denial.policy().and_then(|_| denial.suggestion()),
        }
    }
}
