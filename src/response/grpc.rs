//! [`Grpc`]: renders denials as gRPC statuses.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::finish::{response_with_body, retry_after};
use super::{Denial, DenialKind, Render};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// Renders a denial as gRPC: status 200, a `grpc-status` (8 `RESOURCE_EXHAUSTED`, 14 `UNAVAILABLE`,
/// 16 `UNAUTHENTICATED`, 3 `INVALID_ARGUMENT`), the message in `grpc-message`, no body.
/// `retry-after` and the rate limit headers arrive as metadata.
///
/// gRPC-Web requests get a response with its content type.
///
/// ```
/// use http::Request;
/// use tollgate::response::{Denial, Grpc, Render};
/// use tollgate::{RequestHead, Timestamp};
///
/// let request = Request::post("/pkg.Service/Method").body(()).unwrap();
/// let denial = Denial::unauthorized(RequestHead::of(&request), Timestamp::from_secs(1_761_829_944));
/// let response = Grpc::new().render(&denial);
/// assert_eq!(response.status(), 200);
/// assert_eq!(response.headers()["grpc-status"], "16");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Grpc {
    pushback: bool,
}

impl Grpc {
    /// Creates a renderer without pushback.
    #[must_use]
    pub const fn new() -> Self {
        Self { pushback: false }
    }

    /// Adds `grpc-retry-pushback-ms`, which clients with a retry policy follow: the wait, or a
    /// negative number if waiting does not help.
    ///
    /// Off by default: such a client keeps the call open until then, or until its deadline, and its
    /// caller sees the denial only afterwards.
    #[must_use]
    pub const fn with_retry_pushback(mut self) -> Self {
        self.pushback = true;
        self
    }
}

impl Render for Grpc {
    fn render(&self, denial: &Denial<'_>) -> Response<Bytes> {
        let dialect = Dialect::of(denial.head().headers()).unwrap_or(Dialect::Grpc);
        let content_type = dialect.content_type();
        let mut response = response_with_body(StatusCode::OK, content_type, Bytes::new());
        let headers = response.headers_mut();
        let status = match denial.kind() {
            DenialKind::Limited => "8",
            DenialKind::Unavailable => "14",
            DenialKind::Unauthorized | DenialKind::AmbiguousCredentials => "16",
            DenialKind::InvalidPath | DenialKind::PathTooLong => "3",
        };
        headers.insert(GRPC_STATUS, HeaderValue::from_static(status));
        if let Ok(message) = HeaderValue::try_from(percent_encode(&denial.message())) {
            headers.insert(GRPC_MESSAGE, message);
        }
        retry_after(headers, denial);
        if self.pushback {
            headers.insert(PUSHBACK, pushback(denial));
        }
        response
    }
}

/// Returns milliseconds that fit into a positive `i32`, else `-1`, which means no retry.
fn pushback(denial: &Denial<'_>) -> HeaderValue {
    let millis = denial
        .retry_after()
        .map(|wait| wait.as_micros().div_ceil(1_000).max(1));
    match millis.map(u32::try_from) {
        Some(Ok(millis @ ..=0x7fff_ffff)) => HeaderValue::from(millis),
        _ => HeaderValue::from_static("-1"),
    }
}

/// Encodes all bytes except visible ASCII and spaces; encodes the percent sign, too.
fn percent_encode(message: &str) -> Vec<u8> {
    const HEX: [u8; 16] = *b"0123456789ABCDEF";
    let mut encoded = Vec::with_capacity(message.len());
    for byte in message.bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            encoded.push(byte);
        } else {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            encoded.extend_from_slice(&[b'%', HEX[high], HEX[low]]);
        }
    }
    encoded
}

/// Variant of gRPC of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Grpc,
    Web,
    WebText,
}

impl Dialect {
    /// Returns the variant by the content type; `None` if the request is not gRPC.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let rest = strip_prefix(headers.get(CONTENT_TYPE)?.as_bytes(), b"application/grpc")?;
        let (dialect, rest) = match strip_prefix(rest, b"-web") {
            None => (Self::Grpc, rest),
            Some(rest) => match strip_prefix(rest, b"-text") {
                None => (Self::Web, rest),
                Some(rest) => (Self::WebText, rest),
            },
        };
        matches!(rest, [] | [b'+' | b';' | b' ', ..]).then_some(dialect)
    }

    const fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Grpc => "application/grpc",
            Self::Web => "application/grpc-web+proto",
            Self::WebText => "application/grpc-web-text+proto",
        })
    }
}

fn strip_prefix<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}
