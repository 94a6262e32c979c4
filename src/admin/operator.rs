//! Operators of the admin API, and what they may do.

use std::fmt;
use std::sync::Arc;

use axum::Extension;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::api_error::ApiError;

/// What an [admin token](super::Admin::token) allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdminRole {
    /// Statistics, policy, overrides and look-ups. Changes get 403.
    Read,
    /// Everything.
    Write,
}

impl AdminRole {
    /// Returns the name: `read`, `write`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl fmt::Display for AdminRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
