//! CORS preflights.

use http::header::{
    ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONTENT_LENGTH, COOKIE, ORIGIN, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderValue, Method};

use super::{Caller, PlanKind, PlannedCheck, Policy};
use crate::error::named;
use crate::head::RequestHead;

/// How CORS preflights are counted.
///
/// A preflight is an `OPTIONS` request with `Origin` and `Access-Control-Request-Method`, without a
/// body, `Authorization` or `Cookie`, of an unauthenticated caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preflight {
    /// Charged on entry, and refunded if the response has `Access-Control-Allow-Methods` or
    /// `Access-Control-Allow-Headers`. In place of the global rule,
    /// [`preflight_quota`](super::PolicyBuilder::preflight_quota) applies, per client IP. It is not
    /// refunded. A response without these headers is charged to the global rule as well.
    #[default]
    Refund,
    /// Counted like any other request.
    Count,
}

named!(Preflight, "preflight" {
    Refund => "refund",
    Count => "count",
});

impl Policy {
    /// Returns which plan of its endpoint a request has.
    #[inline]
    pub(crate) fn plan_kind(&self, caller: &Caller<'_>, head: &RequestHead<'_>) -> PlanKind {
        if caller.is_authenticated() {
            PlanKind::Authenticated
        } else if head.method() == Method::OPTIONS
            && self.preflight.is_some()
            && has_preflight_headers(head.headers())
        {
            PlanKind::Preflight
        } else {
            PlanKind::Unauthenticated
        }
    }

    /// Returns whether a check is the quota of preflights, which is never refunded.
    pub(crate) fn is_preflight_quota(&self, check: &PlannedCheck) -> bool {
        self.preflight == Some(check.quota)
    }
}

/// Returns whether an `OPTIONS` request with these headers is a preflight. Browsers send neither
/// credentials nor a body with one.
fn has_preflight_headers(headers: &HeaderMap) -> bool {
    let is_method = |method: &HeaderValue| Method::from_bytes(method.as_bytes()).is_ok();
    let is_empty = |length: &HeaderValue| length.as_bytes().trim_ascii() == b"0";
    headers.contains_key(ORIGIN)
        && headers
            .get(ACCESS_CONTROL_REQUEST_METHOD)
            .is_some_and(is_method)
        && headers.get_all(CONTENT_LENGTH).iter().all(is_empty)
        && !headers.contains_key(TRANSFER_ENCODING)
        && !headers.contains_key(AUTHORIZATION)
        && !headers.contains_key(COOKIE)
}
