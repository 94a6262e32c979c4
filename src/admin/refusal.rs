//! What operators are told when something cannot be done: what was wrong, and how to put it right.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::instant::Instant;
use super::reply;
use crate::clock::Timestamp;
use crate::error::{Error, ReloadError, ValidationError};

/// Why a request of an operator was refused. It travels with its response, until it is known
/// what the request is called.
#[derive(Clone, Debug)]
pub(super) struct Refusal(Box<Told>);

#[derive(Clone, Debug)]
struct Told {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: Value,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Told {
            status,
            code,
            message: message.into(),
            details: json!({}),
            header: None,
        }))
    }

    fn with_details(mut self, details: Value) -> Self {
        self.0.details = details;
        self
    }

    fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.header = Some((name, value));
        self
    }

    /// No token, or another one.
    pub(super) fn unauthorized(message: &str) -> Self {
        let bearer = HeaderValue::from_static(r#"Bearer realm="tollgate""#);
        Self::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
            .with_header(WWW_AUTHENTICATE, bearer)
    }

    /// Too many wrong tokens from one address.
    pub(super) fn too_many_tokens(wait: u64) -> Self {
        let message = format!(
            "Too many wrong tokens came from this address. The right one is accepted; wrong ones \
             get this answer for another {wait} seconds."
        );
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self::new(status, "RATE_LIMIT_EXCEEDED", message)
            .with_details(json!({ "retry_after": wait }))
            .with_header(RETRY_AFTER, HeaderValue::from(wait))
    }

    pub(super) fn not_found() -> Self {
        let message = "There is no such path. What there is: GET api/statistics, api/policy, \
                       api/overrides, api/maintenance; POST api/lookup, api/reset, api/overrides, \
                       api/overrides/remove, api/maintenance, api/reload.";
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
    }

    pub(super) fn wrong_method(allowed: &'static str) -> Self {
        let message = format!("This path takes {allowed}.");
        let status = StatusCode::METHOD_NOT_ALLOWED;
        Self::new(status, "METHOD_NOT_ALLOWED", message)
            .with_header(ALLOW, HeaderValue::from_static(allowed))
    }

    pub(super) fn too_large(most: usize) -> Self {
        let message = format!("The body is too large. At most {most} bytes are read.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", message)
    }

    pub(super) fn not_json() -> Self {
        let message = "The body has to be JSON, and the header `Content-Type` has to say so: \
                       `application/json`.";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "NOT_JSON", message)
    }

    /// A body that cannot be read, and why.
    pub(super) fn unreadable(why: impl std::fmt::Display) -> Self {
        let message = format!("The body cannot be used: {why}.");
        Self::new(StatusCode::BAD_REQUEST, "INVALID_BODY", message)
    }

    /// What could not be done here, though it was said well.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "CONFLICT", message)
    }

    /// Something that should not happen.
    pub(super) fn broken(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", message)
    }

    /// The whole answer, now that it is known what the request is called.
    pub(super) fn answer(self, request_id: &str, now: Timestamp) -> Response {
        let told = *self.0;
        let body = json!({ "error": {
            "code": told.code,
            "message": told.message,
            "details": told.details,
            "request_id": request_id,
            "timestamp": Instant(now),
        }});
        let mut response = reply::json(told.status, &body);
        response.headers_mut().extend(told.header);
        response
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.0.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<ValidationError> for Refusal {
    fn from(wrong: ValidationError) -> Self {
        let details = json!({
            "field": wrong.field(),
            "found": wrong.value(),
            "expected": wrong.expected(),
        });
        let message = format!(
            "The {} cannot be `{}`. Expected: {}.",
            wrong.field(),
            wrong.value(),
            wrong.expected()
        );
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_VALUE", message).with_details(details)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(wrong) => wrong.into(),
            Error::Problems(problems) => Self::unreadable(problems),
            Error::Store(error) => {
                // A store that has not answered may have done it all the same, or a part of it.
                let message = format!(
                    "The store has not said that it is done: {error}. Some of it may have been done: \
                     look first, and then try again."
                );
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Self::new(status, "STORE_UNAVAILABLE", message)
            }
        }
    }
}

impl From<ReloadError> for Refusal {
    fn from(error: ReloadError) -> Self {
        let message = format!("The policy was not replaced, and the old one stays: {error}");
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self::new(status, "POLICY_NOT_RELOADED", message)
    }
}
