//! Answers, and what they all say to browsers.

use axum::body::Body;
use axum::response::Response;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A JSON document.
pub(super) fn json(status: StatusCode, what: &impl Serialize) -> Response {
    // It fails for maps whose keys are no text, and there are none.
    let body = serde_json::to_vec(what).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// What was asked for.
pub(super) fn ok(what: &impl Serialize) -> Response {
    json(StatusCode::OK, what)
}

/// What every answer says: it is for nobody else, it is what it says it is, and it stands in no
/// other page. A policy that is there already stays.
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
