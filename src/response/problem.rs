//! Problem details (RFC 9457).

use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderValue, Response};

use super::complete::Prepared;
use super::finish::answer;
use super::json::Json;
use super::{Denial, DenialKind, Render, message};
use crate::headers::HeaderStyle;

/// Answers with `application/problem+json` (RFC 9457), of the types that the IETF draft of the
/// rate limit fields registers:
///
/// ```json
/// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
///  "title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,
///  "detail":"Rate limit exceeded. Please try again in 48 minutes.",
///  "violated-policies":["user:global:1h"],"retry-after":2856,"suggestion":"…",
///  "request-id":"req_7f8e9d0c1b2a3456"}
/// ```
///
/// A store that cannot answer is `#temporary-reduced-capacity`; wrong or ambiguous credentials
/// and rejected paths are `about:blank`.
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

static PREPARED: LazyLock<Prepared> = LazyLock::new(|| Prepared::new(PROBLEM_JSON));

impl Render for ProblemJson {
    fn render(&self, denial: &Denial<'_>) -> Response<Bytes> {
        answer(denial.status(), PROBLEM_JSON, body(denial))
    }

    fn respond(&self, denial: &Denial<'_>, style: HeaderStyle) -> Response<Bytes> {
        PREPARED.complete(denial, style, body(denial))
    }
}

/// Type and title.
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

fn body(denial: &Denial<'_>) -> Bytes {
    let (kind, title) = problem(denial.kind());
    let mut json = Json::new();
    json.raw(r#"{"type":""#)
        .plain(kind.as_bytes())
        .raw(r#"","title":""#)
        .plain(title.as_bytes())
        .raw(r#"","status":"#)
        .number(u64::from(denial.status().as_u16()))
        .raw(r#","detail":""#)
        .inside(|out| message::write(denial, out))
        .raw("\"");
    let mut before = r#","violated-policies":[""#;
    for standing in denial.violated() {
        json.raw(before).plain(standing.label().as_str().as_bytes());
        before = r#"",""#;
    }
    if before == r#"",""# {
        json.raw("\"]");
    }
    if let Some(secs) = denial.retry_after_secs() {
        json.raw(r#","retry-after":"#).number(secs);
    }
    if let Some(suggestion) = denial.suggestion() {
        json.raw(r#","suggestion":"#).string(suggestion);
    }
    json.raw(r#","request-id":""#)
        .plain(denial.request_id().as_bytes())
        .raw("\"}");
    json.finish()
}
