//! JSON responses and security headers.

use axum::body::Body;
use axum::response::Response;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Returns a JSON response.
pub(super) fn json(status: StatusCode, what: &impl Serialize) -> Response {
    // Fails only for maps whose keys are not text, and there are none.
    let body = serde_json::to_vec(what).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// Returns a JSON response with status 200.
pub(super) fn ok(what: &impl Serialize) -> Response {
    json(StatusCode::OK, what)
}

/// Adds security headers: no caching, no MIME sniffing, no framing. An existing content security
/// policy is kept.
pub(super) fn protect(headers: &mut HeaderMap) {
    const FIXED: [(HeaderName, &str); 6] = [
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in FIXED {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let nothing = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(nothing);
}
