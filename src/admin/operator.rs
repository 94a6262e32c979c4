//! Operators of the admin API, and what they may do.

use std::sync::Arc;

use axum::Extension;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::api_error::ApiError;
use crate::error::named;

/// What an [admin token](super::Admin::token) allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdminRole {
    /// Statistics, policy, overrides and look-ups. Changes get 403.
    Read,
    /// Everything.
    Write,
}

named!(AdminRole, "admin role" {
    Read => "read",
    Write => "write",
});

/// Sender of an authorized request. It is an extension of the request.
#[derive(Clone, Debug)]
pub(super) struct Operator {
    /// Name of the token; `None` for the shared token.
    pub(super) name: Option<Arc<str>>,
    pub(super) role: AdminRole,
}

impl Operator {
    /// Operator of a router that requires no token.
    pub(super) const UNKNOWN: Self = Self {
        name: None,
        role: AdminRole::Write,
    };
}

/// Rejects changes by operators that may only read.
pub(super) async fn require_write(
    Extension(operator): Extension<Operator>,
    request: Request,
    next: Next,
) -> Response {
    match operator.role {
        AdminRole::Write => next.run(request).await,
        AdminRole::Read => ApiError::read_only().into_response(),
    }
}
