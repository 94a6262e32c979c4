//! Two gateways that share counters in Redis.

use std::time::Duration;

use serde_json::json;
use tokio::time::{sleep, timeout};

use super::attack::{TOKEN, admin_post};
use super::{Caller, Example, Gateway, OWN, usage_of};
use crate::examples::process::PATIENCE;
use crate::redis::Server;

const LOGIN: &str = "POST /auth/v1/token";

async fn gateway(redis: &Server) -> Gateway {
    let url = redis.url();
    let variables = [("REDIS_URL", url.as_str()), ("ADMIN_TOKEN", TOKEN)];
    let variables = [&OWN[..], &variables].concat();
    Gateway::of(Example::start("gateway", &variables).await)
}

/// Waits until the gateway counts in Redis: the first requests may arrive while it connects.
async fn shared(gateway: &Gateway, redis: &Server) {
    let probe = Caller::user("probe", "free");
    while redis.keys().is_empty() {
        assert_eq!(gateway.send("GET /v1/audit-logs", &probe).await.status, 200);
    }
}

#[tokio::test]
async fn two_gateways_share_one_limit_and_outlive_redis() {
    let mut redis = Server::start();
    let (one, other) = (gateway(&redis).await, gateway(&redis).await);
    shared(&one, &redis).await;
    redis.run::<()>(&["FLUSHALL"]);
    shared(&other, &redis).await;
    redis.run::<()>(&["FLUSHALL"]);

    let caller = Caller::anonymous(7);
    for left in (0..10).rev() {
        let gateway = if left % 2 == 0 { &one } else { &other };
        let answer = gateway.send(LOGIN, &caller).await;
        assert_eq!(
            (answer.status, usage_of(&answer)),
            (200, ("ip:login:1h", 10, left))
        );
    }
    for gateway in [&one, &other] {
        assert_eq!(gateway.send(LOGIN, &caller).await.status, 429);
    }
    redis.assert_that_every_key_ends();

    // Without Redis each gateway counts by itself; only logins are rejected, because their rule has
    // `on_store_failure = "deny"`. (A denial may be cached for up to a second.)
    redis.kill();
    for gateway in [&one, &other] {
        let alice = Caller::user("alice", "free");
        let answer = gateway.exhaust("POST /v1/ai/research", &alice, 10).await;
        assert_eq!(usage_of(&answer), ("user:ai-research:1h", 10, 0));
        let login = gateway.send(LOGIN, &Caller::anonymous(8)).await;
        assert_eq!(login.status, 503);
        assert_eq!(login.json()["error"]["code"], "RATE_LIMIT_UNAVAILABLE");
    }
}

#[tokio::test]
async fn a_gateway_starts_without_redis() {
    let redis = Server::absent(&[]);
    let gateway = gateway(&redis).await;
    let answer = gateway.send("GET /health", &Caller::anonymous(9)).await;
    assert_eq!(usage_of(&answer), ("ip:health:1h", 100, 99));
}

/// Waits until the response to a caller has this limit, or none.
async fn until_limited(gateway: &Gateway, caller: &Caller, expected: Option<&str>) {
    let is_so = async {
        loop {
            let answer = gateway.send("POST /v1/ai/chat", caller).await;
            if answer.header("x-ratelimit-limit") == expected {
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let is_so = timeout(PATIENCE, is_so).await;
    assert!(is_so.is_ok(), "never {expected:?}");
}

/// Maintenance and overrides apply to all processes, not only to the one that received the call.
#[tokio::test]
async fn overrides_and_maintenance_of_one_gateway_apply_to_all() {
    let redis = Server::start();
    let (one, other) = (gateway(&redis).await, gateway(&redis).await);
    let alice = Caller::user("alice", "enterprise");
    shared(&one, &redis).await;
    until_limited(&other, &alice, Some("1000")).await;

    let soon = json!({ "until": "2100-01-01T00:00:00Z" });
    assert_eq!(admin_post(&one, "maintenance", &soon).await.status, 200);
    for gateway in [&one, &other] {
        until_limited(gateway, &alice, None).await;
    }
    // Also the other one can end it.
    let over = admin_post(&other, "maintenance", &json!({ "until": null })).await;
    assert_eq!(over.json()["active"], false);
    for gateway in [&one, &other] {
        until_limited(gateway, &alice, Some("1000")).await;
    }

    let subject = json!({ "user": "alice" });
    let new = json!({ "subject": subject, "rule": "ai-chat", "limit": "2000/hour" });
    assert_eq!(admin_post(&one, "overrides", &new).await.status, 200);
    until_limited(&other, &alice, Some("2000")).await;

    // A reset at one gateway applies to all.
    let reset = admin_post(&other, "reset", &json!({ "subject": subject })).await;
    assert_eq!(reset.status, 200, "{}", reset.body);
    let answer = one.send("POST /v1/ai/chat", &alice).await;
    assert_eq!(answer.number("x-ratelimit-remaining"), 1_999);
}
