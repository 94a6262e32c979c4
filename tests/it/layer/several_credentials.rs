//! Requests with several credentials get 401 if the application may use another one than the limiter.

use axum::Router;
use serde_json::Value;
use tollgate::identity::{ApiKey, Jwt};
use tollgate::policy::Policy;
use tollgate::response::ProblemJson;
use tollgate::{ManualClock, RateLimitLayer, RateLimitLayerBuilder};

use super::{Answer, echo, send};
use crate::support::tokens::NOW;
use crate::support::tokens::{SECRET, claims, hs256};

fn builder() -> RateLimitLayerBuilder {
    let policy = Policy::builder()
        .authenticated("1000/hour")
        .anonymous("100/hour")
        .exempt_route("GET /health");
    RateLimitLayer::builder(policy).clock(ManualClock::new())
}

fn bearer_app() -> Router {
    let jwt = Jwt::hs256(SECRET).build().unwrap();
    echo().layer(builder().identify(jwt).build().unwrap())
}

fn cookie_app() -> Router {
    let jwt = Jwt::hs256(SECRET).cookie("session").build().unwrap();
    echo().layer(builder().identify(jwt).build().unwrap())
}

fn token(user: &str) -> String {
    hs256(&claims(user))
}

fn bearer(user: &str) -> String {
    format!("Bearer {}", token(user))
}

/// Returns a token of about this many KiB.
fn large(kib: usize) -> String {
    let pad = "x".repeat(kib * 1_024 * 3 / 4);
    let claims = format!(r#"{{"sub":"alice","exp":{},"pad":"{pad}"}}"#, NOW + 60);
    let token = hs256(&claims);
    assert!((kib << 10..(kib + 1) << 10).contains(&token.len()));
    format!("Bearer {token}")
}

#[track_caller]
fn assert_counted_by_user(answer: &Answer, remaining: u64) {
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("x-ratelimit-policy"), Some("user:global:1h"));
    assert_eq!(answer.number("x-ratelimit-remaining"), remaining);
}

#[track_caller]
fn assert_ambiguous(answer: &Answer) {
    assert_eq!(answer.status, 401, "{}", answer.body);
    assert_eq!(answer.json()["error"]["code"], "AMBIGUOUS_CREDENTIALS");
    let challenge = answer.header("www-authenticate");
    assert_eq!(challenge, Some(r#"Bearer error="invalid_request""#));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-ratelimit-limit"), None);
}

fn line(value: &str) -> (&str, &str) {
    ("authorization", value)
}

#[tokio::test]
async fn a_doubled_authorization_line_does_not_evade_the_quota_per_user() {
    let app = bearer_app();
    let (alice, bob) = (bearer("alice"), bearer("bob"));
    assert_counted_by_user(
        &send(&app, "GET /", &[line(&alice), line(&alice)]).await,
        999,
    );
    for other in [bob.as_str(), "Basic YTpi", "Bearer opaque"] {
        assert_ambiguous(&send(&app, "GET /", &[line(&alice), line(other)]).await);
        assert_ambiguous(&send(&app, "GET /", &[line(other), line(&alice)]).await);
    }
    // Nothing was counted.
    assert_counted_by_user(&send(&app, "GET /", &[line(&alice)]).await, 998);
    assert_eq!(
        send(&app, "GET /", &[])
            .await
            .number("x-ratelimit-remaining"),
        99
    );
    // Exempt routes never get a 401.
    let health = send(&app, "GET /health", &[line(&alice), line(&bob)]).await;
    assert_eq!(health.status, 200);
    // Only headers that a source reads matter.
    let cookies = cookie_app();
    let answer = send(&cookies, "GET /", &[line(&alice), line(&bob)]).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_doubled_cookie_does_not_evade_the_quota_per_user() {
    let app = cookie_app();
    let (alice, bob) = (token("alice"), token("bob"));
    let expired = hs256(&format!(r#"{{"sub":"alice","exp":{}}}"#, NOW - 3_600));
    let mut remaining = 1_000;
    for values in [
        vec![&alice, &alice],
        vec![&expired, &alice],
        vec![&alice, &expired],
    ] {
        let line: Vec<String> = values.iter().map(|it| format!("session={it}")).collect();
        remaining -= 1;
        assert_counted_by_user(
            &send(&app, "GET /", &[("cookie", &line.join("; "))]).await,
            remaining,
        );
    }
    let both = format!("session={alice}; session={bob}");
    assert_ambiguous(&send(&app, "GET /", &[("cookie", &both)]).await);
}

#[tokio::test]
async fn a_bearer_token_beside_the_cookie_of_another_user_is_ambiguous() {
    let layer = builder()
        .identify(Jwt::hs256(SECRET).build().unwrap())
        .identify(Jwt::hs256(SECRET).cookie("session").build().unwrap());
    let app = echo().layer(layer.build().unwrap());
    let with = async |user: &str, other: &str| {
        let (bearer, cookie) = (bearer(user), format!("session={}", token(other)));
        let headers = [("authorization", &*bearer), ("cookie", &*cookie)];
        send(&app, "GET /", &headers).await
    };
    assert_counted_by_user(&with("alice", "alice").await, 999);
    assert_ambiguous(&with("alice", "bob").await);
    assert_ambiguous(&with("bob", "alice").await);
}

#[tokio::test]
async fn different_api_keys_are_ambiguous() {
    let keys = ApiKey::known("x-api-key", ["one", "two"]).unwrap();
    let app = echo().layer(builder().identify(keys).build().unwrap());
    let with = async |keys: &[&str]| {
        let headers: Vec<_> = keys.iter().map(|key| ("x-api-key", *key)).collect();
        send(&app, "GET /", &headers).await
    };
    assert_eq!(with(&["one", "one"]).await.status, 200);
    assert_ambiguous(&with(&["one", "two"]).await);
    assert_eq!(with(&["x".repeat(17 << 10).as_str()]).await.status, 401);
}

#[tokio::test]
async fn large_tokens_are_accepted_up_to_16_kib() {
    let app = bearer_app();
    assert_counted_by_user(
        &send(&app, "GET /", &[("authorization", &large(9))]).await,
        999,
    );
    let answer = send(&app, "GET /", &[("authorization", &large(17))]).await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.json()["error"]["code"], "INVALID_CREDENTIALS");
    let health = send(&app, "GET /health", &[("authorization", &large(17))]).await;
    assert_eq!(health.status, 200);
}

#[tokio::test]
async fn ambiguous_credentials_in_other_formats() {
    let jwt = || Jwt::hs256(SECRET).build().unwrap();
    let (alice, bob) = (bearer("alice"), bearer("bob"));
    let lines = [
        ("authorization", alice.as_str()),
        ("authorization", bob.as_str()),
        ("content-type", "application/grpc"),
    ];
    let app = echo().layer(builder().identify(jwt()).build().unwrap());
    let answer = send(&app, "POST /pkg.Service/Method", &lines).await;
    assert_eq!(
        (answer.status, answer.header("grpc-status")),
        (200, Some("16"))
    );

    let layer = builder().identify(jwt()).render(ProblemJson);
    let app = echo().layer(layer.build().unwrap());
    let answer = send(&app, "GET /", &lines[..2]).await;
    assert_eq!(answer.status, 401);
    let problem: Value = answer.json();
    assert_eq!(problem["title"], "Unauthorized");
    assert!(problem["detail"].as_str().unwrap().contains("credentials"));
}
