//! Authentication of operators.

use std::time::Duration;

use tollgate::RateLimitLayer;
use tollgate::admin::{Admin, Status};

use super::{Served, TOKEN, assert_rejected};
use crate::support::http::layer;
use crate::support::log::Log;

const PATHS: [&str; 7] = [
    "GET /admin/api/policy",
    "GET /admin/api/overrides",
    "GET /admin/api/maintenance",
    "POST /admin/api/lookup",
    "POST /admin/api/reload",
    "DELETE /admin/api/policy",
    "GET /admin/api/no/such/path",
];

#[tokio::test]
async fn requests_without_the_token_are_rejected() {
    let served = Served::new("100/hour").await;
    let bearer = format!("Bearer {TOKEN}");
    let (part, more) = (&bearer[..bearer.len() - 1], format!("{bearer}x"));
    let values = [
        "",
        "Bearer",
        "Bearer ",
        TOKEN,
        part,
        &more,
        "Basic dG9rZW4=",
    ];
    for (path, value) in PATHS.iter().zip(values) {
        let answer = served.client.send(path, &[("authorization", value)]).await;
        assert_rejected(&answer, 401, "UNAUTHORIZED");
        let challenge = answer.header("www-authenticate");
        assert_eq!(challenge, Some(r#"Bearer realm="tollgate""#));
    }
    for path in PATHS {
        // Tokens in URLs and cookies are not accepted, because URLs are logged.
        let path = format!("{path}?token={TOKEN}&access_token={TOKEN}");
        let cookie = [("cookie", &*format!("token={TOKEN}"))];
        let answer = served.client.send(&path, &cookie).await;
        assert_rejected(&answer, 401, "UNAUTHORIZED");
    }
    assert_eq!(served.get("policy").await.status, 200);
}

#[tokio::test]
async fn after_11_wrong_tokens_the_right_one_is_accepted() {
    let (log, _listening) = Log::listen();
    let served = Served::new("100/hour").await;
    let guess = [("authorization", "Bearer a-guess-at-the-token")];
    for _ in 0..10 {
        let answer = served.client.send("GET /admin/api/policy", &guess).await;
        assert_rejected(&answer, 401, "UNAUTHORIZED");
    }
    let answer = served.client.send("GET /admin/api/policy", &guess).await;
    let message = assert_rejected(&answer, 429, "RATE_LIMIT_EXCEEDED");
    let wait = answer.number("retry-after");
    assert!(message.contains(&format!("{wait} seconds")), "{message}");
    assert_eq!(log.about("rate_limit_admin_wrong_token").len(), 10);
    assert!(!log.text().contains("a-guess-at-the-token"));
    for _ in 0..50 {
        assert_eq!(served.get("policy").await.status, 200);
    }
    let right = format!("Bearer {TOKEN}");
    let twice = [("authorization", right.as_str()); 2];
    let answer = served.client.send("GET /admin/api/policy", &twice).await;
    assert_eq!(answer.status, 200);
    served.clock.advance(Duration::from_secs(wait));
    let answer = served.client.send("GET /admin/api/policy", &guess).await;
    assert_rejected(&answer, 401, "UNAUTHORIZED");
}

#[tokio::test]
async fn wrong_admin_tokens_without_an_address_are_not_limited_and_their_events_are() {
    let (log, _listening) = Log::listen();
    let (builder, clock) = layer("100/hour");
    let admin = Admin::new(&builder.build().unwrap()).shared_token(TOKEN);
    let app = admin.router().unwrap();
    let send = async |token: &str| {
        let token = format!("Bearer {token}");
        crate::support::http::send(&app, "GET /api/policy", &[("authorization", &token)]).await
    };
    for _ in 0..30 {
        assert_rejected(&send("a-guess-at-the-token").await, 401, "UNAUTHORIZED");
    }
    assert_eq!(send(TOKEN).await.status, 200);
    assert_eq!(log.about("rate_limit_admin_wrong_token").len(), 10);
    clock.advance(Duration::from_mins(2));
    assert_rejected(&send("a-guess-at-the-token").await, 401, "UNAUTHORIZED");
    assert_eq!(log.about("rate_limit_admin_wrong_token").len(), 11);
}

#[tokio::test]
async fn requests_without_a_token_do_not_charge_the_failed_auth_quota() {
    let served = Served::new("100/hour").await;
    for _ in 0..50 {
        let answer = served.client.send("GET /admin/api/policy", &[]).await;
        assert_rejected(&answer, 401, "UNAUTHORIZED");
    }
    assert_eq!(served.get("policy").await.status, 200);
}

#[tokio::test]
async fn without_token_insecure_accepts_requests_without_a_token() {
    let (builder, clock) = layer("100/hour");
    let limits = builder.build().unwrap();
    let admin = Admin::new(&limits).without_token_insecure();
    let served = Served::with(limits.clone(), clock, Status::new(&limits), admin).await;
    let answer = served.client.send("GET /admin/api/policy", &[]).await;
    assert_eq!(answer.status, 200);
}

#[test]
fn a_missing_or_short_token_is_an_error() {
    let limits = RateLimitLayer::new("1/hour").unwrap();
    let problem = Admin::new(&limits).router().unwrap_err().to_string();
    assert!(problem.contains("without_token_insecure"), "{problem}");
    let short = Admin::new(&limits)
        .shared_token("hush")
        .failed_auth_quota("0/hour");
    let shown = format!("{short:?}");
    assert!(!shown.contains("hush"), "{shown}");
    let problems = short.router().unwrap_err().to_string();
    assert_eq!(problems.lines().count(), 2, "{problems}");
    assert!(!problems.contains("hush"), "{problems}");
}

/// Every response has a strict CSP, is not cached and cannot be framed.
#[tokio::test]
async fn every_response_has_security_headers() {
    let served = Served::new("100/hour").await;
    let page = served.client.send("GET /admin", &[]).await;
    assert_eq!(page.status, 200);
    let same = served.client.send("GET /admin/", &[]).await;
    assert_eq!((same.status, same.body), (200, page.body.clone()));
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"));
    assert!(!policy.contains("unsafe"), "{policy}");
    for answer in [
        page,
        served.get("policy").await,
        served.client.send("GET /admin/api/policy", &[]).await,
        served.client.send("GET /admin/no/such/path", &[]).await,
        served.client.send("POST /admin", &[]).await,
    ] {
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        for (name, value) in [
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{name}");
        }
        assert_eq!(answer.header("access-control-allow-origin"), None);
        assert_eq!(answer.header("set-cookie"), None);
    }
}
