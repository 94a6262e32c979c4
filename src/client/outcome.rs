//! What a response means for the requests after it.

use std::time::Duration;

use http::{HeaderMap, HeaderName, Method, StatusCode};

use crate::clock::Timestamp;
use crate::headers::{Limits, read_retry_after};

const GITHUB: HeaderName = HeaderName::from_static("x-ratelimit-resource");
const GRPC: HeaderName = HeaderName::from_static("grpc-status");
const STRIPE: HeaderName = HeaderName::from_static("stripe-should-retry");

/// A response, judged.
pub(super) struct ResponseOutcome {
    pub(super) limits: Option<Limits>,
    pub(super) refusal: Option<Refusal>,
}

/// A request that was not served.
#[derive(Clone, Copy)]
pub(super) struct Refusal {
    /// Whether it was one too many. Otherwise, the server has trouble of its own.
    pub(super) is_denial: bool,
    /// How long the server said to wait, if it did.
    pub(super) wait: Option<Duration>,
    /// Whether it may be sent again, as far as the answer goes.
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
        let told = read_retry_after(headers, now);
        let has_nothing_left = limits.as_ref().and_then(Limits::remaining) == Some(0);
        let is_denial = match status {
            StatusCode::TOO_MANY_REQUESTS => true,
            // GitHub's way to say it. Others mean by it that waiting is of no use, and then do
            // not say how long.
            StatusCode::FORBIDDEN => {
                told.is_some() || (has_nothing_left && headers.contains_key(GITHUB))
            }
            // Errors of gRPC are answered with 200; the eighth is that something is exhausted.
            StatusCode::OK => {
                (told.is_some() || has_nothing_left)
                    && headers.get(GRPC).is_some_and(|status| status == "8")
            }
            _ => false,
        };
        let is_unavailable = status == StatusCode::SERVICE_UNAVAILABLE;
        let until_reset = || {
            let reset_at = limits.as_ref().and_then(Limits::reset_at);
            let reset_at = reset_at.filter(|_| is_denial && has_nothing_left);
            reset_at.map(|at| at.duration_since(now))
        };
        let refusal = (is_denial || is_unavailable).then(|| Refusal {
            is_denial,
            wait: told.or_else(until_reset),
            // Whoever was denied was not served, so that any method may come again. Whoever was
            // let in and met trouble may have been; unless the server asks for it again.
            may_retry: headers.get(STRIPE).is_none_or(|value| value != "false")
                && (is_denial || told.is_some() || method.is_idempotent()),
        });
        Self { limits, refusal }
    }
}
