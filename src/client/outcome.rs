//! What a response means for later requests.

use std::time::Duration;

use http::{HeaderMap, HeaderName, Method, StatusCode};

use crate::clock::Timestamp;
use crate::headers::{Limits, read_retry_after};

const GITHUB: HeaderName = HeaderName::from_static("x-ratelimit-resource");
const GRPC: HeaderName = HeaderName::from_static("grpc-status");
const STRIPE: HeaderName = HeaderName::from_static("stripe-should-retry");

/// Limits of a response, and whether the request was refused.
pub(super) struct ResponseOutcome {
    pub(super) limits: Option<Limits>,
    pub(super) refused: Option<RefusedRequest>,
}

/// A request that the server refused: a limit was reached, or the server is unavailable.
#[derive(Clone, Copy)]
pub(super) struct RefusedRequest {
    /// Whether a limit was reached. Otherwise the server is unavailable.
    pub(super) is_denial: bool,
    /// `Retry-After`, or the time until the reset.
    pub(super) wait: Option<Duration>,
    /// Whether the response allows a retry.
    pub(super) may_retry: bool,
}

impl ResponseOutcome {
    pub(super) fn of(
        method: &Method,
        status: StatusCode,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Self {
        let limits = Limits::read(headers, now);
        let retry_after = read_retry_after(headers, now);
        let has_nothing_left = limits.as_ref().and_then(|limits| limits.remaining) == Some(0);
        let is_denial = match status {
            StatusCode::TOO_MANY_REQUESTS => true,
            // GitHub denies with 403. Other servers send a 403 without `Retry-After` when no wait
            // helps.
            StatusCode::FORBIDDEN => {
                retry_after.is_some() || (has_nothing_left && headers.contains_key(GITHUB))
            }
            // gRPC errors have status 200; code 8 is RESOURCE_EXHAUSTED.
            StatusCode::OK => {
                (retry_after.is_some() || has_nothing_left)
                    && headers.get(GRPC).is_some_and(|status| status == "8")
            }
            _ => false,
        };
        let is_unavailable = status == StatusCode::SERVICE_UNAVAILABLE;
        let until_reset = || {
            let reset_at = limits.as_ref().and_then(|limits| limits.reset_at);
            let reset_at = reset_at.filter(|_| is_denial && has_nothing_left);
            reset_at.map(|at| at.duration_since(now))
        };
        let refused = (is_denial || is_unavailable).then(|| RefusedRequest {
            is_denial,
            wait: retry_after.or_else(until_reset),
            // A denied request was not served, so that every method can be retried. After a 503 it
            // may have been served, unless `Retry-After` requests a retry.
            may_retry: headers.get(STRIPE).is_none_or(|value| value != "false")
                && (is_denial || retry_after.is_some() || method.is_idempotent()),
        });
        Self { limits, refused }
    }
}
