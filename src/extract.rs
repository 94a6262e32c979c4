//! Extractors for axum handlers.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;
use std::convert::Infallible;
use std::fmt;

use crate::decision::Decision;
use crate::pipeline::Charge;

/// Rejection of the extractors [`Decision`], [`Charge`] and [`DenialResponder`](crate::DenialResponder) on a
/// route without the layer: status 500.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MissingRateLimitLayer;

impl fmt::Display for MissingRateLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this handler takes the decision of a `RateLimitLayer`, and there is none: put the layer \
             around its route and build it with `insert_extensions()`",
        )
    }
}

impl std::error::Error for MissingRateLimitLayer {}

impl IntoResponse for MissingRateLimitLayer {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, self.to_string()).into_response()
    }
}

macro_rules! extract {
    ($($type:ty),+) => {$(
        /// Reads the extensions of the request; see `RateLimitLayerBuilder::insert_extensions`.
        impl<S: Send + Sync> FromRequestParts<S> for $type {
            type Rejection = MissingRateLimitLayer;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingRateLimitLayer> {
                parts.extensions.get().cloned().ok_or(MissingRateLimitLayer)
            }
        }

        /// Returns `None` if no such layer wraps the handler.
        impl<S: Send + Sync> OptionalFromRequestParts<S> for $type {
            type Rejection = Infallible;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
                Ok(parts.extensions.get().cloned())
            }
        }
    )+};
}

extract!(Decision, Charge);
