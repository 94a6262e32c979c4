//! Denials and their renderers.

mod bodies;
mod finish;
mod grpc;
mod json;
mod problem;
mod request_id;
mod template;
mod words;

use http::Request;
use tollgate::headers::{QuotaName, QuotaUsage};
use tollgate::response::{Denial, RequestId};
use tollgate::{Outcome, RequestHead, Timestamp, Usage};

use crate::headers::{NOW, later, name};

/// Whose identity must never show.
fn request() -> Request<()> {
    Request::get("/v1/secrets/42?user=mallory")
        .header("authorization", "Bearer mallory")
        .header("cookie", "session=mallory")
        .header("x-user-id", "mallory")
        .body(())
        .unwrap()
}

fn denied(name: &QuotaName, reset_at: Timestamp) -> QuotaUsage<'_> {
    let (limit, outcome) = (name.limit(), Outcome::Denied);
    QuotaUsage::new(name, Usage::new(limit, limit, reset_at, outcome))
}

fn oversized(name: &QuotaName) -> QuotaUsage<'_> {
    QuotaUsage::new(
        name,
        Usage::new(name.limit(), 1, NOW, Outcome::ExceedsCapacity),
    )
}

fn limited<'a>(request: &'a Request<()>, usage: QuotaUsage<'a>) -> Denial<'a> {
    let id = RequestId::from_text("req_7f8e9d0c1b2a3456").unwrap();
    Denial::limited(RequestHead::of(request), usage, NOW).with_request_id(id)
}

#[test]
fn a_denial_returns_its_data() {
    let (request, name) = (request(), name("user", "secrets", "500/hour"));
    let binding = denied(&name, later(2_855_876_544));
    let denial = limited(&request, binding).with_tier("free");
    assert_eq!(denial.status(), 429);
    assert_eq!(denial.policy(), Some("user:secrets:1h"));
    assert_eq!((denial.limit(), denial.used()), (Some(500), Some(500)));
    assert_eq!(denial.remaining(), 0);
    assert_eq!(denial.retry_after_secs(), Some(2_856));
    assert_eq!(denial.reset_at(), Some(later(2_855_876_544)));
    assert_eq!(denial.violated().count(), 1);
    assert!(!denial.can_never_succeed());
    assert_eq!(denial.head().path(), "/v1/secrets/42");

    let denial = limited(&request, oversized(&name));
    assert!(denial.can_never_succeed());
    assert_eq!((denial.retry_after(), denial.reset_at()), (None, None));
}

/// Not in a debug text either, which ends up in logs.
#[test]
fn debug_shows_no_identity() {
    let (request, name) = (request(), name("user", "secrets", "500/hour"));
    let denial = limited(&request, denied(&name, later(1)));
    assert!(!format!("{denial:?}").contains("mallory"));
}
