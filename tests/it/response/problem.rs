//! Problem details.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate::RequestHead;
use tollgate::headers::{HeaderSet, HeaderStyle, QuotaUsage};
use tollgate::response::{Denial, ProblemJson, Render, RequestId};

use super::{denied, limited, request};
use crate::headers::{NOW, allowed, later, name};

fn render(denial: &Denial<'_>) -> Value {
    let response = ProblemJson.respond(denial, HeaderStyle::new(HeaderSet::Both));
    assert_eq!(response.status(), denial.status());
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    assert_eq!(response.headers()["cache-control"], "no-store");
    serde_json::from_slice(response.body()).unwrap()
}

#[test]
fn a_quota_that_is_exceeded() {
    let request = request();
    let (minute, hour) = (
        name("user", "api", "10/minute"),
        name("user", "api", "20/hour"),
    );
    let day = name("user", "api", "1000/day");
    let quotas = [
        denied(&minute, later(20_000_000)),
        QuotaUsage::new(&day, allowed(1_000, 20)),
        denied(&hour, later(1_200_000_000)),
    ];
    let denial = limited(&request, quotas[2])
        .with_quotas(&quotas)
        .with_suggestion("Slow \"down\"");
    assert_eq!(
        render(&denial),
        json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Request cannot be satisfied as assigned quota has been exceeded",
            "status": 429,
            "detail": "Rate limit exceeded. Please try again in 20 minutes.",
            "violated-policies": ["user:api:1m", "user:api:1h"],
            "retry-after": 1200,
            "suggestion": "Slow \"down\"",
            "request-id": "req_7f8e9d0c1b2a3456",
        })
    );
    let response = ProblemJson.respond(&denial, HeaderStyle::new(HeaderSet::Both));
    let policies = response.headers()["ratelimit-policy"].to_str().unwrap();
    assert_eq!(policies.matches(";q=").count(), 3);
}

#[test]
fn other_problems_are_of_other_types() {
    let request = request();
    let id = RequestId::from_text("r").unwrap();
    let denial = Denial::unavailable(RequestHead::of(&request), Duration::from_secs(1), NOW);
    let problem = render(&denial.with_request_id(id.clone()));
    let kind = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
    assert_eq!(problem["type"], kind);
    assert_eq!(
        (&problem["status"], &problem["retry-after"]),
        (&json!(503), &json!(1))
    );
    assert_eq!(problem.get("violated-policies"), None);

    let denial = Denial::unauthorized(RequestHead::of(&request), NOW).with_request_id(id);
    let problem = render(&denial);
    assert_eq!(
        (&problem["type"], &problem["status"]),
        (&json!("about:blank"), &json!(401))
    );
    assert_eq!(problem.get("retry-after"), None);
}
