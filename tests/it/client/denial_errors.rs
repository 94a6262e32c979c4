//! Denials by servers as errors.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use tollgate::client::{PaceLayer, RateLimitError};
use tollgate::policy::{Policy, Rule};
use tollgate::response::ProblemJson;
use tollgate::{Clock, ManualClock};
use tower::ServiceExt as _;

use crate::support::http::layer;

fn error(status: u16, headers: &[(&str, &str)], body: &str) -> Option<RateLimitError> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let response = response.body(Bytes::from(body.to_owned())).unwrap();
    let pace = PaceLayer::builder().clock(ManualClock::new());
    pace.build().unwrap().check(response).err()
}

/// Returns the second response of a layer with one request per hour, as an error.
async fn denied(is_problem: bool) -> (RateLimitError, ManualClock) {
    let rule = Rule::new("1/hour").name("exports");
    let rule = rule
        .message("Too many exports.")
        .suggestion("Choose a larger plan.");
    let policy = Policy::builder().endpoint("GET /exports", rule);
    let (builder, clock) = layer(policy);
    let builder = if is_problem {
        builder.render(ProblemJson)
    } else {
        builder
    };
    let app = Router::new()
        .route("/exports", get(|| async { "export" }))
        .layer(builder.build().unwrap());
    let pace = PaceLayer::builder().clock(clock.clone()).build().unwrap();
    let send = async || {
        let request = Request::get("/exports").header("x-user", "alice");
        let request = request.header("x-request-id", "order-4711");
        let request = request.body(axum::body::Body::empty()).unwrap();
        let (parts, body) = app.clone().oneshot(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        pace.check(Response::from_parts(parts, body))
    };
    assert_eq!(send().await.unwrap().body(), "export");
    (send().await.unwrap_err(), clock)
}

#[tokio::test]
async fn a_denial_of_this_crate_is_an_error_with_all_its_details() {
    for is_problem in [false, true] {
        let (error, clock) = denied(is_problem).await;
        let code = if is_problem {
            "https://iana.org/assignments/http-problem-types#quota-exceeded"
        } else {
            "RATE_LIMIT_EXCEEDED"
        };
        let hour = Duration::from_hours(1);
        assert_eq!(error.details.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(error.details.code.as_deref(), Some(code));
        assert_eq!(error.details.message.as_deref(), Some("Too many exports."));
        assert_eq!(
            error.details.suggestion.as_deref(),
            Some("Choose a larger plan.")
        );
        assert_eq!(
            (error.details.limit, error.details.remaining),
            (Some(1), Some(0))
        );
        assert_eq!(
            error.details.reset_at,
            Some(clock.now().saturating_add(hour))
        );
        assert_eq!(error.details.retry_after, Some(hour));
        assert_eq!(error.details.policy.as_deref(), Some("user:exports:1h"));
        assert_eq!(error.details.request_id.as_deref(), Some("order-4711"));
        assert_eq!(error.to_string(), "rate limit exceeded: Too many exports.");
    }
}

#[test]
fn what_the_body_does_not_have_comes_from_the_headers() {
    let headers = [
        ("x-ratelimit-limit", "10"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-policy", "user:exports:1h"),
        ("retry-after", "1080"),
        ("x-request-id", "order-4711"),
    ];
    for body in [
        "",
        "slow down",
        "[]",
        "\"no\"",
        "null",
        "{\"error\":[]}",
        "{\"error\":{\"details\":7}}",
    ] {
        let error = error(429, &headers, body).unwrap();
        assert_eq!(
            (error.details.limit, error.details.remaining),
            (Some(10), Some(0)),
            "{body}"
        );
        assert_eq!(error.details.retry_after, Some(Duration::from_mins(18)));
        assert_eq!(error.details.policy.as_deref(), Some("user:exports:1h"));
        assert_eq!(error.details.request_id.as_deref(), Some("order-4711"));
        assert_eq!(
            (&error.details.code, &error.details.message),
            (&None, &None),
            "{body}"
        );
        let text = "rate limit exceeded: user:exports:1h, retry after 1080 s";
        assert_eq!(error.to_string(), text);
    }
    let error = error(429, &[], "").unwrap();
    assert_eq!(
        (error.details.limit, error.details.retry_after),
        (None, None)
    );
    assert_eq!(error.to_string(), "rate limit exceeded");
}

#[test]
fn values_of_wrong_types_are_left_out_and_long_texts_are_cut() {
    let long = "ü".repeat(10_000);
    let body = format!(
        r#"{{"error":{{"code":7,"message":"{long}","request_id":null,
            "details":{{"limit":"many","remaining":-1,"retry_after":1.5,"reset_at":"soon"}}}}}}"#
    );
    let error = error(429, &[], &body).unwrap();
    assert_eq!(error.details.message.unwrap().len(), 1_024);
    assert_eq!((error.details.code, error.details.request_id), (None, None));
    assert_eq!((error.details.limit, error.details.remaining), (None, None));
    assert_eq!(
        (error.details.reset_at, error.details.retry_after),
        (None, None)
    );
}

/// Bug: the sum of an instant and such a wait panicked in the program of the caller.
#[test]
fn retry_after_of_an_error_is_at_most_a_year() {
    let year = Duration::from_hours(365 * 24);
    let body = |seconds: u64| format!(r#"{{"error":{{"details":{{"retry_after":{seconds}}}}}}}"#);
    let seconds = u64::MAX.to_string();
    for (headers, body) in [
        (&[][..], body(u64::MAX)),
        (&[], body(year.as_secs() + 1)),
        (&[("retry-after", &*seconds)], String::new()),
    ] {
        let error = error(429, headers, &body).unwrap();
        assert_eq!(error.details.retry_after, Some(year), "{body}");
        assert_eq!(
            error.to_string(),
            "rate limit exceeded, retry after 31536000 s"
        );
    }
    let error = error(429, &[], &body(86_400)).unwrap();
    assert_eq!(error.details.retry_after, Some(Duration::from_hours(24)));
}

#[test]
fn text_of_an_error_escapes_control_and_invisible_characters() {
    let sent = "You've sent \"10\" größere\nERROR fake line\u{1b}[2J\u{202e}txt\u{200b}";
    let shown = "You've sent \"10\" größere\\nERROR fake line\\u{1b}[2J\\u{202e}txt\\u{200b}";
    let body = serde_json::json!({ "error": { "message": sent } }).to_string();
    let of_message = error(429, &[], &body).unwrap();
    assert_eq!(
        of_message.to_string(),
        format!("rate limit exceeded: {shown}")
    );
    assert_eq!(of_message.details.message.as_deref(), Some(sent));
    let body = serde_json::json!({ "error": { "details": { "policy": sent } } }).to_string();
    let of_policy = error(429, &[], &body).unwrap();
    assert_eq!(
        of_policy.to_string(),
        format!("rate limit exceeded: {shown}")
    );
}

#[test]
fn only_denials_are_errors() {
    let denial = r#"{"error":{"code":"RATE_LIMIT_EXCEEDED"}}"#;
    for status in [200, 401, 403, 500, 503] {
        assert_eq!(error(status, &[], denial), None, "{status}");
    }
    let github = [
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-resource", "core"),
    ];
    assert_eq!(error(403, &github, "{}").unwrap().details.status, 403);
}
