//! [`ProblemJson`]: renders denials as problem details (RFC 9457).

use bytes::Bytes;
use http::{HeaderValue, Response};
use serde::Serialize;

use super::finish::response_with_body;
use super::json::to_json;
use super::{Denial, DenialKind, Render};

/// Renders a denial as `application/problem+json` (RFC 9457), with the problem types of the IETF
/// draft for rate limit fields:
///
/// ```json
/// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
///  "title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,
///  "detail":"Rate limit exceeded. Please try again in 48 minutes.",
///  "violated-policies":["user:global:1h"],"retry-after":2856,"suggestion":"…",
///  "request-id":"req_7f8e9d0c1b2a3456"}
/// ```
///
/// An unavailable store is `#temporary-reduced-capacity`. Wrong or ambiguous credentials and
/// rejected paths are `about:blank`.
///
/// ```
/// use std::time::Duration;
/// use http::Request;
/// use tollgate::response::{Denial, ProblemJson, Render};
/// use tollgate::{RequestHead, Timestamp};
///
/// let request = Request::get("/").body(()).unwrap();
/// let (head, at) = (RequestHead::of(&request), Timestamp::from_secs(1_761_829_944));
/// let denial = Denial::unavailable(head, Duration::from_secs(2), at);
/// let response = ProblemJson.render(&denial);
/// assert_eq!(response.status(), 503);
/// assert_eq!(response.headers()["content-type"], "application/problem+json");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ProblemJson;

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

impl Render for ProblemJson {
    fn render(&self, denial: &Denial<'_>) -> Response<Bytes> {
        let (problem_type, title) = problem(denial.kind());
        let violated = denial.violated().map(|quota| quota.name().as_str());
        let document = ProblemDocument {
            problem_type,
            title,
            status: denial.status().as_u16(),
            detail: &denial.message(),
            violated_policies: violated.collect(),
            retry_after: denial.retry_after_secs(),
            suggestion: denial.suggestion(),
            request_id: denial.request_id().as_str(),
        };
        response_with_body(denial.status(), PROBLEM_JSON, to_json(&document))
    }
}

/// The fields are serialized in this order.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ProblemDocument<'a> {
    #[serde(rename = "type")]
    problem_type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    violated_policies: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<&'a str>,
    request_id: &'a str,
}

/// Returns type and title.
const fn problem(kind: DenialKind) -> (&'static str, &'static str) {
    match kind {
        DenialKind::Limited => (
            "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "Request cannot be satisfied as assigned quota has been exceeded",
        ),
        DenialKind::Unavailable => (
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
            "Request cannot be satisfied due to temporary server capacity constraints",
        ),
        DenialKind::Unauthorized | DenialKind::AmbiguousCredentials => {
            ("about:blank", "Unauthorized")
        }
        DenialKind::InvalidPath => ("about:blank", "Bad Request"),
        DenialKind::PathTooLong => ("about:blank", "URI Too Long"),
    }
}
