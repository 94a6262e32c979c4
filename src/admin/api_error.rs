//! Error responses of the admin API.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::json;
use crate::clock::Timestamp;
use crate::error::{Error, ReloadError, ValidationError};

/// Error response. It is an extension of the response until the request id is known.
#[derive(Clone, Debug)]
pub(super) struct ApiError(Box<ErrorParts>);

#[derive(Clone, Debug)]
struct ErrorParts {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: Value,
    header: Option<(HeaderName, HeaderValue)>,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorParts {
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

    /// Missing or wrong token.
    pub(super) fn unauthorized(message: &str) -> Self {
        let bearer = HeaderValue::from_static(r#"Bearer realm="tollgate""#);
        Self::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
            .with_header(WWW_AUTHENTICATE, bearer)
    }

    /// Change with a token whose role does not allow it.
    pub(super) fn read_only() -> Self {
        let message = "This token has the role `read`. Changes need a token with the role `write`.";
        Self::new(StatusCode::FORBIDDEN, "FORBIDDEN", message)
    }

    /// Too many wrong tokens from one address.
    pub(super) fn too_many_tokens(wait: u64) -> Self {
        let message = format!(
            "Too many wrong tokens came from this address. The right one is accepted; wrong ones \
             get this response for another {wait} seconds."
        );
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self::new(status, "RATE_LIMIT_EXCEEDED", message)
            .with_details(json!({ "retry_after": wait }))
            .with_header(RETRY_AFTER, HeaderValue::from(wait))
    }

    pub(super) fn not_found() -> Self {
        let message = "Unknown path. Allowed: GET api/statistics, api/policy, \
                       api/overrides, api/maintenance; POST api/lookup, api/reset, api/overrides, \
                       api/overrides/remove, api/maintenance, api/reload.";
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
    }

    pub(super) fn wrong_method(allowed: &'static str) -> Self {
        let message = format!("This path allows {allowed}.");
        let status = StatusCode::METHOD_NOT_ALLOWED;
        Self::new(status, "METHOD_NOT_ALLOWED", message)
            .with_header(ALLOW, HeaderValue::from_static(allowed))
    }

    pub(super) fn too_large(most: usize) -> Self {
        let message = format!("The body is too large. At most {most} bytes are read.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", message)
    }

    pub(super) fn not_json() -> Self {
        let message = "The body must be JSON, with the header `Content-Type: application/json`.";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "NOT_JSON", message)
    }

    /// A malformed body.
    pub(super) fn unreadable(why: impl std::fmt::Display) -> Self {
        let message = format!("The body is invalid: {why}.");
        Self::new(StatusCode::BAD_REQUEST, "INVALID_BODY", message)
    }

    /// A valid request that the current state does not allow.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "CONFLICT", message)
    }

    /// An internal error.
    pub(super) fn broken(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", message)
    }

    /// Renders the response.
    pub(super) fn render(self, request_id: &str, now: Timestamp) -> Response {
        let parts = *self.0;
        let body = json!({ "error": {
            "code": parts.code,
            "message": parts.message,
            "details": parts.details,
            "request_id": request_id,
            "timestamp": now,
        }});
        let mut response = json::json(parts.status, &body);
        response.headers_mut().extend(parts.header);
        response
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.0.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<ValidationError> for ApiError {
    fn from(error: ValidationError) -> Self {
        let details = json!({
            "field": error.field(),
            "found": error.value(),
            "expected": error.expected(),
        });
        let message = format!(
            "The {} cannot be `{}`. Expected: {}.",
            error.field(),
            error.value(),
            error.expected()
        );
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_VALUE", message).with_details(details)
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(error) => error.into(),
            Error::Problems(problems) => Self::unreadable(problems),
            Error::Store(error) => {
                // The store may have applied all or a part of the change.
                let message = format!(
                    "The store did not confirm the change: {error}. It may have been applied in part: \
                     check, and try again."
                );
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Self::new(status, "STORE_UNAVAILABLE", message)
            }
        }
    }
}

impl From<ReloadError> for ApiError {
    fn from(error: ReloadError) -> Self {
        let message = format!("The policy was not replaced, and the previous one stays: {error}");
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self::new(status, "POLICY_NOT_RELOADED", message)
    }
}
