//! The status endpoint.

use std::time::Duration;

use serde_json::json;
use tollgate::admin::{Admin, Status};
use tollgate::policy::{Policy, PolicyBuilder, Rule, RuleMode, Tiers};
use tollgate::{Override, Timestamp};

use super::{Served, TOKEN, limit};
use crate::support::http::layer;
use crate::support::scripted_store::{Script, ScriptedStore};

fn policy() -> PolicyBuilder {
    Policy::builder()
        .tiers(Tiers::new("free").tier("team", 5))
        .authenticated("1000/hour")
        .anonymous("100/hour")
        .category("secrets", "500/hour")
        .endpoint("GET /v1/secrets/{id}", Rule::in_category("secrets"))
        .endpoint(
            "POST /login",
            Rule::new("3/minute")
                .limit("10/hour")
                .name("login")
                .scale(false),
        )
        .endpoint("GET /projects", Rule::new("unlimited").name("projects"))
        .endpoint(
            "GET /tried",
            Rule::new("1/hour").name("tried").mode(RuleMode::DryRun),
        )
        .rule("tenant", Rule::new("50/minute").per(["tenant"]))
        .exempt_role("service")
}

#[tokio::test]
async fn every_limit_of_the_caller_is_returned_and_nothing_is_charged() {
    let served = Served::new(policy()).await;
    for _ in 0..3 {
        served.send("POST /login", "alice").await;
    }
    served.send("GET /v1/secrets/42", "alice").await;
    let mut status = Vec::new();
    for _ in 0..20 {
        status.push(served.status("alice").await);
    }
    assert!(status.iter().all(|other| *other == status[0]), "{status:?}");
    assert_eq!(
        status[0],
        json!({
            "counted_by": "user", "tier": "free", "exempt": null, "degraded": false,
            "limits": [
                { "policy": "user:global:1h", "limit": 1000, "used": 4, "remaining": 996,
                  "reset_at": "2025-01-01T01:00:00.000Z" },
                { "policy": "user:secrets:1h", "limit": 500, "used": 1, "remaining": 499,
                  "reset_at": "2025-01-01T01:00:00.000Z" },
                { "policy": "user:login:1m", "limit": 3, "used": 3, "remaining": 0,
                  "reset_at": "2025-01-01T00:01:00.000Z", "retry_after": 60 },
                { "policy": "user:login:1h", "limit": 10, "used": 3, "remaining": 7,
                  "reset_at": "2025-01-01T01:00:00.000Z" },
            ],
            "timestamp": "2025-01-01T00:00:00.000Z",
        })
    );
    // The reset is exact: one second earlier the request is denied.
    served.clock.advance(Duration::from_secs(59));
    assert_eq!(served.send("POST /login", "alice").await.status, 429);
    served.clock.advance(Duration::from_secs(1));
    assert_eq!(served.send("POST /login", "alice").await.status, 200);
}

#[tokio::test]
async fn callers_are_identified_as_in_the_layer() {
    let served = Served::new(policy()).await;
    let line = "GET /v1/rate-limits/status";
    let of_team = [("x-user", "ada"), ("x-tier", "team"), ("x-tenant", "acme")];
    let status = served.client.send(line, &of_team).await.json();
    assert_eq!(status["tier"], "team");
    assert_eq!(limit(&status, "user:global:1h")["limit"], 5_000);
    assert_eq!(limit(&status, "tenant:tenant:1m")["limit"], 250);

    let status = served.client.send(line, &[]).await.json();
    assert_eq!(
        (&status["counted_by"], &status["tier"]),
        (&json!("ip"), &json!("free"))
    );
    assert_eq!(limit(&status, "ip:global:1h")["limit"], 100);
    assert_eq!(limit(&status, "ip:login:1m")["limit"], 3);
    let policies = status["limits"].as_array().unwrap().iter();
    assert!(
        !policies
            .clone()
            .any(|limit| limit["policy"] == "tenant:tenant:1m")
    );
    assert_eq!(policies.count(), 4);
}

/// Bug: its denials had no jitter, so that denied clients came back together.
#[tokio::test]
async fn retry_after_of_the_status_endpoint_has_jitter() {
    let (builder, clock) = layer(policy());
    let jittered = builder.retry_after_jitter(Duration::from_mins(10));
    let limits = jittered.build().unwrap();
    let status = Status::new(&limits).quota("1/hour");
    let admin = Admin::new(&limits).shared_token(TOKEN);
    let served = Served::with(limits.clone(), clock, status, admin).await;
    served.status("alice").await;
    let mut longest = 0;
    for _ in 0..40 {
        let denied = served.send("GET /v1/rate-limits/status", "alice").await;
        assert_eq!(denied.status, 429);
        longest = longest.max(denied.number("retry-after"));
    }
    // 40 waits without a second of jitter have a probability below 10^-100.
    assert!((3_601..=4_200).contains(&longest), "{longest}");
}

#[tokio::test]
async fn overrides_are_returned() {
    let served = Served::new(policy()).await;
    for (rule, quota) in [("global", "5/hour"), ("login", "blocked")] {
        let set = Override::new([("user", "alice")], rule, quota).unwrap();
        served.limits.set_override(set).wait().unwrap();
    }
    let status = served.status("alice").await;
    assert_eq!(limit(&status, "user:global:1h")["limit"], 5);
    // A blocked limit has no reset.
    let blocked = status["limits"].as_array().unwrap().iter();
    let blocked: Vec<_> = blocked.filter(|limit| limit["limit"] == 0).collect();
    let expected = json!({ "policy": "user:login:blocked", "limit": 0, "used": 0, "remaining": 0 });
    assert_eq!(blocked, [&expected, &expected]);
    assert_eq!(
        limit(&served.status("bob").await, "user:global:1h")["limit"],
        1_000
    );
}

#[tokio::test]
async fn an_exempt_caller_gets_the_reason() {
    let until = Timestamp::from_secs(1_735_693_200);
    let served = Served::new(policy().exempt_network("127.0.0.0/8")).await;
    assert_eq!(served.status("alice").await["exempt"], "network");
    served.limits.start_maintenance(until).wait().unwrap();
    assert_eq!(served.status("alice").await["exempt"], "maintenance");
    let served = Served::new(policy().exempt_subject("user", "root")).await;
    assert_eq!(served.status("root").await["exempt"], "subject");
    assert_eq!(served.status("alice").await["exempt"], json!(null));
}

/// The quota of the endpoint is per caller. Its denials have the usual error body.
#[tokio::test]
async fn status_requests_are_limited() {
    let (builder, clock) = layer(policy());
    let limits = builder.build().unwrap();
    let status = Status::new(&limits).path("/my/limits").quota("2/minute");
    let admin = Admin::new(&limits).shared_token(TOKEN);
    let served = Served::with(limits, clock, status, admin).await;
    for expected in [200, 200, 429] {
        assert_eq!(
            served.send("GET /my/limits", "alice").await.status,
            expected
        );
    }
    assert_eq!(served.send("GET /my/limits", "bob").await.status, 200);
    let denied = served.send("GET /my/limits", "alice").await;
    let error = &denied.json()["error"];
    assert_eq!(error["code"], "RATE_LIMIT_EXCEEDED");
    assert_eq!(error["details"]["policy"], "user:status:1m");
    assert_eq!(denied.header("x-ratelimit-policy"), Some("user:status:1m"));
    served
        .clock
        .advance(Duration::from_secs(denied.number("retry-after")));
    assert_eq!(served.send("GET /my/limits", "alice").await.status, 200);
}

#[test]
fn invalid_settings_are_reported_together() {
    let limits = layer("1/hour").0.build().unwrap();
    for path in ["", "limits", "/{id}", "/a b", "/*rest", "/:old", "/a?b"] {
        let status = Status::new(&limits).path(path).router::<()>();
        let problem = status.unwrap_err().to_string();
        assert!(problem.contains("status path"), "{path}: {problem}");
    }
    let status = Status::new(&limits)
        .path("")
        .quota("0/minute")
        .router::<()>();
    let problems = status.unwrap_err().to_string();
    assert_eq!(problems.lines().count(), 2, "{problems}");
}

/// While the store is unavailable, the limits are those of the local fallback. A status request also
/// detects that the store is back.
#[tokio::test]
async fn status_has_the_local_share_while_the_store_is_unavailable() {
    let store = ScriptedStore::default();
    let (builder, clock) = layer(Policy::builder().everyone("100/hour").local_share(0.1));
    let served = Served::of(builder.store(store.clone()).build().unwrap(), clock).await;
    store.follow(Script::Unavailable);
    for number in 0..11 {
        let expected = if number < 10 { 200 } else { 429 };
        assert_eq!(served.send("GET /", "alice").await.status, expected);
    }
    let status = served.status("alice").await;
    assert_eq!(status["degraded"], true);
    let global = limit(&status, "user:global:1h");
    for (name, expected) in [("limit", 10), ("used", 10), ("remaining", 0)] {
        assert_eq!(global[name], expected, "{name}");
    }
    let found = served.look_up("alice").await;
    assert_eq!(
        (&found["blocked"], &found["limits"][0]["quota"]),
        (&json!(true), &json!("10/1h"))
    );

    store.follow(Script::Reply);
    let is_healthy = async || served.get("statistics").await.json()["store"]["healthy"].clone();
    assert_eq!(is_healthy().await, false);
    let status = served.status("alice").await;
    assert_eq!(status["degraded"], false);
    assert_eq!(limit(&status, "user:global:1h")["limit"], 100);
    assert_eq!(is_healthy().await, true);
}
