//! Every key of a policy file takes effect.

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Request;
use std::net::SocketAddr;
use std::time::Duration;

use tollgate::config::{Config, Source};
use tollgate::headers::{HeaderSet, HeaderStyle, ResetStyle};
use tollgate::policy::{
    Count, OnStoreFailure, Policy, PolicyBuilder, Preflight, Rule, RuleMode, Tiers,
};
use tollgate::{Algorithm, ManualClock, Quota, Timestamp, Window};
use tower::ServiceExt;

use crate::support::http::{Answer, echo, request};
use crate::support::tokens;

const TOML: &str = include_str!("spec.toml");
const JSON: &str = include_str!("spec.json");
/// 2026-12-01T06:00:00Z
const MAINTENANCE_ENDS: u64 = 1_796_104_800;

fn with_secret(source: Source) -> Config {
    source
        .variables([("JWT_SECRET", tokens::SECRET)])
        .read()
        .unwrap()
}

/// Returns the policy of the file, built in code.
fn in_code() -> PolicyBuilder {
    let bursty = Quota::builder(50, Window::MINUTE)
        .algorithm(Algorithm::TokenBucket)
        .burst(20);
    let preview = Quota::builder(50, "15m".parse().unwrap())
        .algorithm(Algorithm::SlidingBuckets)
        .buckets(30);
    Policy::builder()
        .warn_at(0.5)
        .on_store_failure(OnStoreFailure::Allow)
        .local_share(0.25)
        .tiers(
            Tiers::new("free")
                .tier("team", 5)
                .tier("enterprise", 10)
                .assign("user", "ada", "team")
                .assign("tenant", "acme", "enterprise"),
        )
        .authenticated("1000/hour")
        .anonymous(Rule::new("100/hour").message("Sign in, or wait {retry_in}."))
        .category(
            "secrets",
            Rule::new("500/hour")
                .message(
                    "Secret access rate limit exceeded. You've made {used} requests in the past \
                     {window}. Please try again in {retry_in}.",
                )
                .suggestion("Consider upgrading to Team plan for 5,000 requests/hour"),
        )
        .category(
            "everything",
            Rule::new("300/day, fixed-window")
                .stack(true)
                .per(["tenant"])
                .count(Count::success())
                .cost(3)
                .scale(false)
                .on_store_failure(OnStoreFailure::Local),
        )
        .endpoint("GET /v1/secrets/{id}", Rule::in_category("secrets"))
        .endpoint(
            "POST /v1/mcp/secrets/get",
            Rule::new("200/hour")
                .tier("team", ["1000/hour"])
                .tier("enterprise", ["10000/hour"]),
        )
        .endpoint(
            "POST /auth/v1/token",
            Rule::new("10/hour")
                .name("login")
                .per(["ip"])
                .scale(false)
                .count(Count::failure())
                .on_store_failure(OnStoreFailure::Deny),
        )
        .endpoint(
            "/v1/export",
            Rule::in_category("everything")
                .limit(bursty.build().unwrap())
                .limit("2000/day")
                .count(Count::statuses(["200", "5xx"]).unwrap())
                .cost(5)
                .suggestion("Send fewer requests.")
                .global(false),
        )
        .rule(
            "outbound",
            Rule::new("60/minute, sliding-buckets")
                .limit("1000/hour, sliding-buckets")
                .limit("5/s, sliding-log")
                .per([]),
        )
        .rule(
            "preview",
            Rule::new(preview.build().unwrap())
                .per(["group", "user"])
                .mode(RuleMode::DryRun),
        )
        .exempt_role("service")
        .exempt_network("10.0.0.0/8")
        .exempt_network("127.0.0.1")
        .exempt_route("GET /health")
        .exempt_subject("tenant", "ourselves")
        .preflight(Preflight::Count)
        .preflight_quota("300/minute")
        .disabled_until(Timestamp::from_secs(MAINTENANCE_ENDS))
}

#[test]
fn file_and_builder_give_the_same_policy() {
    let config = with_secret(Source::toml(TOML));
    assert_eq!(
        format!("{:#?}", config.policy()),
        format!("{:#?}", in_code())
    );
    let style = HeaderStyle::new(HeaderSet::Both).with_reset(ResetStyle::DeltaSeconds);
    assert_eq!(config.headers(), style);
}

#[test]
fn json_and_toml_give_the_same_policy() {
    let toml = with_secret(Source::toml(TOML));
    let json = with_secret(Source::json(JSON));
    assert_eq!(
        format!("{:#?}", json.policy()),
        format!("{:#?}", toml.policy())
    );
    assert_eq!(json.headers(), toml.headers());
}

/// Returns a router with the layer of the file. The clock is at the end of the maintenance.
fn app() -> (Router, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_secs(MAINTENANCE_ENDS));
    let layer = with_secret(Source::toml(TOML)).into_layer();
    let layer = layer.clock(clock.clone()).build().unwrap();
    (echo().layer(layer), clock)
}

/// Sends a request from a peer address.
async fn send(app: &Router, peer: &str, line: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request: Request<_> = request(line, headers);
    let peer: SocketAddr = peer.parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    Answer::read(app.clone().oneshot(request).await.unwrap()).await
}

const PEER: &str = "203.0.113.9:4711";

fn token(claims: &str) -> String {
    let exp = MAINTENANCE_ENDS + 3_600;
    let claims = format!(r#"{{"iss":"https://id.example.com","aud":"api","exp":{exp},{claims}}}"#);
    format!("Bearer {}", tokens::hs256(&claims))
}

#[tokio::test]
async fn token_determines_user_and_tier() {
    let (app, _) = app();
    let alice = token(r#""uid":"alice","app_metadata":{"plan":"team"},"tenant_id":"t1""#);
    let headers = [("authorization", alice.as_str())];
    let answer = send(&app, PEER, "GET /v1/secrets/1", &headers).await;
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .header("ratelimit-policy")
            .unwrap()
            .contains("\"user:secrets:1h\";q=2500"),
        "{answer:?}"
    );
    // The policy assigns a tier to the user `ada`, whose token names none.
    let ada = token(r#""uid":"ada""#);
    let answer = send(&app, PEER, "GET /v1/secrets/1", &[("authorization", &ada)]).await;
    assert!(
        answer
            .header("ratelimit-policy")
            .unwrap()
            .contains("\"user:secrets:1h\";q=2500")
    );
}

/// The file allows five wrong tokens: further ones get 429, valid ones are accepted.
#[tokio::test]
async fn wrong_credentials_are_rejected_and_limited() {
    let (app, _) = app();
    let exp = MAINTENANCE_ENDS + 3_600;
    let (iss, aud) = (r#""iss":"https://id.example.com""#, r#""aud":"api""#);
    let good = |uid: &str| token(&format!(r#""uid":"{uid}""#));
    let of = |claims: String| format!("Bearer {}", tokens::hs256(&claims));
    let forged = || tokens::tampered(&good("x"));
    for (token, status) in [
        (
            of(format!(r#"{{"exp":{exp},{iss},"aud":"other","uid":"x"}}"#)),
            401,
        ),
        (
            of(format!(r#"{{"exp":{exp},"iss":"other",{aud},"uid":"x"}}"#)),
            401,
        ),
        (forged(), 401),
        (forged(), 401),
        (good("alice"), 200),
        // A verified token without the claim of the user is accepted.
        (of(format!(r#"{{"exp":{exp},{iss},{aud},"sub":"x"}}"#)), 200),
        (forged(), 401),
        (forged(), 429),
        (good("bob"), 200),
        // Expired tokens are never charged and never rejected with 429.
        (of(format!(r#"{{"exp":1,{iss},{aud},"uid":"x"}}"#)), 401),
        // The token is longer than the file allows.
        (
            token(&format!(r#""uid":"x","pad":"{}""#, "x".repeat(3_000))),
            401,
        ),
    ] {
        let answer = send(&app, PEER, "GET /", &[("authorization", &token)]).await;
        assert_eq!(answer.status, status, "{token}");
    }
    // NAT64 address of the client IP above, with the prefix that the file sets.
    let nat64 = "[64:ff9b:7::203.0.113.9]:1";
    let answer = send(&app, nat64, "GET /", &[("authorization", &forged())]).await;
    assert_eq!(answer.status, 429);
}

#[tokio::test]
async fn exempt_requests_are_not_counted() {
    let (app, _) = app();
    let service = token(r#""uid":"cron","roles":["service"]"#);
    let ourselves = token(r#""uid":"us","tenant_id":"ourselves""#);
    for (peer, line, authorization) in [
        (PEER, "GET /", Some(service)),
        (PEER, "GET /", Some(ourselves)),
        ("10.1.2.3:1", "GET /", None),
        ("127.0.0.1:1", "GET /", None),
        (PEER, "GET /health", None),
    ] {
        let headers: Vec<(&str, &str)> = authorization
            .iter()
            .map(|token| ("authorization", token.as_str()))
            .collect();
        let answer = send(&app, peer, line, &headers).await;
        assert_eq!(answer.header("x-ratelimit-limit"), None, "{peer} {line}");
    }
    // The file sets `preflight = "count"`.
    let preflight = [
        ("origin", "https://example.com"),
        ("access-control-request-method", "GET"),
    ];
    let answer = send(&app, PEER, "OPTIONS /", &preflight).await;
    assert!(answer.header("x-ratelimit-limit").is_some());
}

/// The file sets `ipv6_prefix = 48`, so IPv6 clients with the same 48 bits share a counter.
#[tokio::test]
async fn client_ip_is_taken_from_the_header_of_a_trusted_proxy() {
    let text = r#"
        [[rules]]
        name = "all"
        limit = "10/hour"
        per = ["ip"]
        [identity.ip]
        trusted_proxies = ["192.0.2.0/24"]
        header = "x-real-ip"
        ipv6_prefix = 48
    "#;
    let layer = super::toml(text).unwrap().into_layer().build().unwrap();
    let app = echo().layer(layer);
    for (peer, forwarded, remaining) in [
        ("192.0.2.1:1", "198.51.100.1", 9),
        ("192.0.2.2:1", "198.51.100.1", 8),
        ("198.51.100.1:1", "6.6.6.6", 7),
        ("192.0.2.1:1", "2001:db8:1:2::3", 9),
        ("192.0.2.1:1", "2001:db8:1:ffff::1", 8),
        ("192.0.2.1:1", "2001:db8:2::1", 9),
    ] {
        let headers = [("x-real-ip", forwarded), ("x-forwarded-for", "6.6.6.6")];
        let answer = send(&app, peer, "GET /", &headers).await;
        assert_eq!(
            answer.number("x-ratelimit-remaining"),
            remaining,
            "{peer} {forwarded}"
        );
    }
}

#[tokio::test]
async fn limits_apply_again_after_maintenance() {
    let clock = ManualClock::at(Timestamp::from_secs(MAINTENANCE_ENDS - 1));
    let layer = with_secret(Source::toml(TOML)).into_layer();
    let layer = layer.clock(clock.clone()).build().unwrap();
    let app = echo().layer(layer);
    let answer = send(&app, PEER, "GET /", &[]).await;
    assert_eq!(answer.header("x-ratelimit-limit"), None);
    clock.advance(Duration::from_secs(1));
    let answer = send(&app, PEER, "GET /", &[]).await;
    assert_eq!(answer.header("x-ratelimit-limit"), Some("5"));
}
