//! Headers of every denial, independent of the renderer: [`finish`].

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::request_id::X_REQUEST_ID;
use super::{Denial, DenialKind};
use crate::headers::number_value;

/// Number of headers of most denials, so that the map is allocated once.
const HEADERS: usize = 12;

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const INVALID_TOKEN: HeaderValue = HeaderValue::from_static(r#"Bearer error="invalid_token""#);
const INVALID_REQUEST: HeaderValue = HeaderValue::from_static(r#"Bearer error="invalid_request""#);

/// Creates a response with `Content-Type` and `Content-Length`.
pub(super) fn response_with_body(
    status: StatusCode,
    content_type: HeaderValue,
    body: Bytes,
) -> Response<Bytes> {
    let mut headers = HeaderMap::with_capacity(HEADERS);
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(CONTENT_LENGTH, number_value(body.len() as u64));
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Adds the headers that every denial has, unless the renderer has set them:
///
/// | header | condition |
/// |---|---|
/// | `Cache-Control: no-store` | always |
/// | `X-Request-Id` | always |
/// | `Retry-After` | status 429 or 503, if waiting helps |
/// | `WWW-Authenticate: Bearer error="invalid_token"` | status 401, if the credentials were wrong |
/// | `WWW-Authenticate: Bearer error="invalid_request"` | status 401, if the credentials were ambiguous |
///
/// A renderer that returns 200 stays a plain 200.
pub fn finish(response: &mut Response<Bytes>, denial: &Denial<'_>) {
    let status = response.status();
    let headers = response.headers_mut();
    add(headers, CACHE_CONTROL, || Some(NO_STORE));
    add(headers, X_REQUEST_ID, || {
        denial.request_id().to_header_value()
    });
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            retry_after(headers, denial);
        }
        StatusCode::UNAUTHORIZED => match denial.kind() {
            DenialKind::Unauthorized => add(headers, WWW_AUTHENTICATE, || Some(INVALID_TOKEN)),
            DenialKind::AmbiguousCredentials => {
                add(headers, WWW_AUTHENTICATE, || Some(INVALID_REQUEST));
            }
            _ => {}
        },
        _ => {}
    }
}

/// Adds `Retry-After` in seconds, if waiting helps.
pub(super) fn retry_after(headers: &mut HeaderMap, denial: &Denial<'_>) {
    add(headers, RETRY_AFTER, || {
        denial.retry_after_secs().map(number_value)
    });
}

fn add(headers: &mut HeaderMap, name: HeaderName, value: impl FnOnce() -> Option<HeaderValue>) {
    if let http::header::Entry::Vacant(place) = headers.entry(name)
        && let Some(value) = value()
    {
        place.insert(value);
    }
}
