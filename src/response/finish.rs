//! What every denial says, whoever rendered it.

use std::mem::ManuallyDrop;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::request_id::X_REQUEST_ID;
use super::{Denial, DenialKind};
use crate::headers::header_value;

/// As many headers as a denial usually gets, so that the map is made once.
const HEADERS: usize = 12;

pub(super) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const INVALID_TOKEN: HeaderValue = HeaderValue::from_static(r#"Bearer error="invalid_token""#);
const INVALID_REQUEST: HeaderValue = HeaderValue::from_static(r#"Bearer error="invalid_request""#);

/// A response with this body.
pub(super) fn answer(status: StatusCode, kind: HeaderValue, body: Bytes) -> Response<Bytes> {
    let mut headers = HeaderMap::with_capacity(HEADERS);
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CONTENT_LENGTH, header_value(body.len() as u64));
    with_headers(status, headers, body)
}

/// A response with these headers.
#[inline]
pub(super) fn with_headers(status: StatusCode, headers: HeaderMap, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    // The map that it comes with is empty, and nothing of it has to be given back.
    let _ = ManuallyDrop::new(std::mem::replace(response.headers_mut(), headers));
    response
}

/// Adds what every denial should say, unless the renderer has said something else:
///
/// | header | where |
/// |---|---|
/// | `Cache-Control: no-store` | always: what is told to one caller is not for the next |
/// | `X-Request-Id` | always |
/// | `Retry-After` | if the status is 429 or 503, and waiting helps |
/// | `WWW-Authenticate: Bearer error="invalid_token"` | if the status is 401 and credentials were wrong |
/// | `WWW-Authenticate: Bearer error="invalid_request"` | if the status is 401 and credentials were ambiguous |
///
/// So a renderer that answers 200 stays a plain 200.
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

/// `Retry-After` in seconds, where waiting helps.
pub(super) fn retry_after(headers: &mut HeaderMap, denial: &Denial<'_>) {
    add(headers, RETRY_AFTER, || {
        denial.retry_after_secs().map(header_value)
    });
}

fn add(headers: &mut HeaderMap, name: HeaderName, value: impl FnOnce() -> Option<HeaderValue>) {
    if let http::header::Entry::Vacant(place) = headers.entry(name)
        && let Some(value) = value()
    {
        place.insert(value);
    }
}
