//! Fields of events about a caller and a quota.

use std::net::SocketAddr;
use std::time::Duration;

use tollgate::identity::PeerAddr;
use tollgate::policy::{Policy, Rule, RuleMode};
use tollgate::{Identity, RateLimitLayerBuilder};

use super::Scene;
use super::events::field;
use crate::support::http::request;
use crate::support::log::Log;

const PEER: &str = "203.0.113.45";

/// Sends a request from an address with these headers. Returns the status.
async fn send(scene: &Scene, line: &str, headers: &[(&str, &str)]) -> u16 {
    let mut request = request(line, headers);
    let peer = SocketAddr::new(PEER.parse().unwrap(), 50_000);
    request.extensions_mut().insert(PeerAddr(peer));
    scene.send(request).await
}

fn secrets() -> Policy {
    let rule = Rule::new("500/hour").name("secrets");
    let policy = Policy::builder().endpoint("GET /v1/secrets/{id}", rule);
    policy.build().unwrap()
}

#[tokio::test]
async fn a_denial_is_logged_with_client_ip_attempted_amount_and_window_as_text() {
    let (log, _listening) = Log::listen();
    let scene = Scene::with(secrets(), RateLimitLayerBuilder::log_plain_identities);
    for _ in 0..501 {
        send(&scene, "GET /v1/secrets/42", &[("x-user", "alice")]).await;
    }
    let logged = log.about("rate_limit_exceeded");
    let expected = [
        ("identity", "user=alice"),
        ("ip", PEER),
        ("endpoint", "/v1/secrets/{id}"),
        ("method", "GET"),
        ("limit", "500"),
        ("actual_requests", "501"),
        ("used", "500"),
        ("window", "1h"),
        ("policy", "user:secrets:1h"),
    ];
    for (name, value) in expected {
        assert_eq!(field(&logged[0], name), value, "{name}");
    }
}

/// A hashed address is also the name of an unauthenticated caller, so that both can be correlated.
#[tokio::test]
async fn the_client_ip_is_hashed_as_identities_are() {
    let (log, _listening) = Log::listen();
    let scene = Scene::new("blocked");
    send(&scene, "GET /", &[("x-user", "alice")]).await;
    send(&scene, "GET /", &[]).await;
    let logged = log.about("rate_limit_exceeded");
    let ip = field(&logged[0], "ip");
    assert!(ip.starts_with("ip#") && ip.len() == 19, "{ip}");
    assert_eq!(field(&logged[1], "identity"), ip);
    assert_eq!(field(&logged[1], "ip"), ip);
    assert!(!log.text().contains(PEER), "{}", log.text());
}

/// The cost of the request is part of what it would have made of the counter, not one.
#[tokio::test]
async fn the_attempted_amount_includes_the_cost() {
    let (log, _listening) = Log::listen();
    let policy = Policy::builder()
        .everyone(Rule::new("10/hour").cost(4))
        .rule("tried", Rule::new("6/hour").cost(4).mode(RuleMode::DryRun));
    let scene = Scene::new(policy);
    for _ in 0..3 {
        send(&scene, "GET /", &[]).await;
    }
    let denied = &log.about("rate_limit_exceeded")[0];
    assert_eq!(field(denied, "actual_requests"), "12");
    let dry_run = &log.about("rate_limit_dry_run")[0];
    assert_eq!(field(dry_run, "actual_requests"), "8");
    assert_eq!(field(dry_run, "ip"), field(denied, "ip"));
}

#[tokio::test]
async fn a_warning_is_logged_with_request_id_and_remaining_percentage() {
    let (log, _listening) = Log::listen();
    let policy = Policy::builder().authenticated("200/hour");
    let scene = Scene::new(policy);
    let headers = [("x-user", "alice"), ("x-request-id", "order-4711")];
    for sent in 0..185 {
        if sent == 184 {
            scene.clock.advance(Duration::from_mins(1));
        }
        send(&scene, "GET /", &headers).await;
    }
    let logged = log.about("rate_limit_warning");
    assert_eq!(logged.len(), 2, "once a minute");
    for (line, remaining, percentage) in [(&logged[0], "40", "20.0"), (&logged[1], "15", "7.5")] {
        assert_eq!(field(line, "remaining"), remaining);
        assert_eq!(field(line, "percentage_remaining"), percentage);
        assert_eq!(field(line, "request_id"), "order-4711");
        assert_eq!(field(line, "window"), "1h");
    }
}

#[tokio::test]
async fn an_exemption_is_logged_with_caller_role_and_request_id() {
    let (log, _listening) = Log::listen();
    let policy = Policy::builder()
        .everyone("blocked")
        .exempt_role("service")
        .exempt_subject("user", "ada")
        .exempt_route("GET /health");
    let scene = Scene::with(policy, |builder| {
        builder.identify_with(|head| {
            Some(
                Identity::user(head.header("x-job")?)
                    .role("deploy")
                    .role("service"),
            )
        })
    });
    let headers = [("x-job", "nightly"), ("x-request-id", "order-4711")];
    assert_eq!(send(&scene, "GET /", &headers).await, 200);
    assert_eq!(send(&scene, "GET /", &[("x-user", "ada")]).await, 200);
    assert_eq!(send(&scene, "GET /health", &headers).await, 200);

    let logged = log.about("rate_limit_exempt");
    let [by_role, by_name, by_route] = &logged[..] else {
        panic!("{logged:?}");
    };
    assert!(by_role.contains(" INFO tollgate::audit: "), "{by_role}");
    for (name, value) in [
        ("why", "role"),
        ("role", "service"),
        ("request_id", "order-4711"),
    ] {
        assert_eq!(field(by_role, name), value);
    }
    let name = field(by_role, "identity");
    assert!(name.starts_with("user#") && name.len() == 21, "{name}");
    assert!(!log.text().contains("nightly"), "{}", log.text());

    assert!(!by_name.contains(" role="), "{by_name}");
    assert!(field(by_name, "identity").starts_with("user#"));
    assert!(field(by_name, "request_id").starts_with("req_"));

    assert!(by_route.contains("DEBUG tollgate: "), "{by_route}");
    let name = field(by_route, "identity");
    assert!(name.starts_with("ip#"), "credentials were not read: {name}");
}
