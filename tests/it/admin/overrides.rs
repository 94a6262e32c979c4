//! Overrides that operators set.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate::policy::{Policy, Rule};

use super::{Served, assert_rejected, limit};

async fn served() -> Served {
    let login = Rule::new("3/hour").name("login").per(["ip"]);
    let policy = Policy::builder()
        .everyone("5/hour")
        .endpoint("POST /login", login);
    Served::new(policy).await
}

async fn listed(served: &Served) -> Value {
    served.get("overrides").await.json()["overrides"].take()
}

#[tokio::test]
async fn an_override_applies_to_the_next_request() {
    let served = served().await;
    for _ in 0..5 {
        served.send("GET /", "alice").await;
    }
    assert_eq!(served.send("GET /", "alice").await.status, 429);
    let new = json!({
        "subject": { "user": "alice" }, "rule": "global", "limit": "10/hour",
        "until": "2025-01-01T00:30:00Z",
    });
    let set = served.post("overrides", &new).await;
    let expected = json!({
        "subject": { "user": "alice" }, "counter": "user=alice", "rule": "global",
        "limit": "10/1h", "until": "2025-01-01T00:30:00.000Z",
    });
    assert_eq!((set.status, set.json()), (200, expected.clone()));
    assert_eq!(listed(&served).await, json!([expected]));
    assert_eq!(
        served
            .send("GET /", "alice")
            .await
            .number("x-ratelimit-limit"),
        10
    );
    let alice = served.look_up("alice").await;
    assert_eq!(limit(&alice, "user:global:1h")["overridden"], true);
    assert_eq!(alice["overrides"], json!([expected]));
    assert_eq!(served.look_up("bob").await["overrides"], json!([]));

    // The override expires.
    served.clock.advance(Duration::from_mins(30));
    assert_eq!(listed(&served).await, json!([]));
    assert_eq!(served.send("GET /", "alice").await.status, 429);
}

#[tokio::test]
async fn a_caller_is_blocked_and_unblocked() {
    let served = served().await;
    let block = json!({ "subject": { "ip": "127.0.0.1" }, "rule": "login", "limit": "blocked" });
    assert_eq!(served.post("overrides", &block).await.status, 200);
    assert_eq!(served.client.send("POST /login", &[]).await.status, 429);
    let caller = json!({ "subject": { "ip": "127.0.0.1" } });
    let found = served.post("lookup", &caller).await.json();
    assert_eq!(found["blocked"], true);
    let because = "An override blocks all requests (ip:login:blocked). No wait helps.";
    assert_eq!(found["because"], json!([because]));

    let which = json!({ "subject": { "ip": "127.0.0.1" }, "rule": "login" });
    for removed in [true, false] {
        let answer = served.post("overrides/remove", &which).await;
        assert_eq!(answer.json(), json!({ "removed": removed }));
    }
    assert_eq!(served.client.send("POST /login", &[]).await.status, 200);
}

#[tokio::test]
async fn rejections_name_the_allowed_values() {
    let served = served().await;
    let alice = json!({ "user": "alice" });
    for (new, expected) in [
        (
            json!({ "subject": alice, "rule": "logins", "limit": "1/hour" }),
            "global, login",
        ),
        (
            json!({ "subject": alice, "rule": "login", "limit": "1/day" }),
            "`3/1h`",
        ),
        (
            json!({ "subject": alice, "rule": "login", "limit": "0/hour" }),
            "blocked",
        ),
        (
            json!({ "subject": alice, "rule": "login", "limit": "lots" }),
            "lots",
        ),
        (
            json!({ "subject": alice, "rule": "a b", "limit": "1/hour" }),
            "the name of a rule",
        ),
        (
            json!({ "subject": { "ip": "here" }, "rule": "login", "limit": "1/hour" }),
            "an address",
        ),
        (
            json!({ "subject": alice, "rule": "login", "limit": "1/hour",
                    "until": "2025-01-01T00:00:00Z" }),
            "in the future",
        ),
    ] {
        let rejected = served.post("overrides", &new).await;
        let message = assert_rejected(&rejected, 422, "INVALID_VALUE");
        assert!(message.contains(expected), "{new}: {message}");
    }
    assert_eq!(listed(&served).await, json!([]));
}

/// Without the end, responses had no `Retry-After`, and clients gave up.
#[tokio::test]
async fn block_with_an_end_is_answered_with_that_end_everywhere() {
    const END: &str = "2025-01-01T00:30:00.000Z";
    let served = served().await;
    // Half an hour after the start of the clock, which the end of the override follows.
    served.clock.step_wall_forward(Duration::from_mins(10));
    let block = json!({
        "subject": { "user": "alice" }, "rule": "global", "limit": "blocked", "until": END,
    });
    assert_eq!(served.post("overrides", &block).await.status, 200);

    let denied = served.send("GET /", "alice").await;
    assert_eq!(denied.status, 429);
    assert_eq!(denied.number("retry-after"), 1_200);
    assert_eq!(denied.number("x-ratelimit-reset"), 1_735_691_400);
    assert_eq!(denied.number("x-ratelimit-limit"), 0);
    let body = &denied.json()["error"];
    let message = "Requests of this kind are blocked. Please try again in 20 minutes.";
    assert_eq!(body["message"], message);
    assert_eq!(body["details"]["retry_after"], 1_200);
    assert_eq!(body["details"]["reset_at"], END);

    let found = served.look_up("alice").await;
    let because = "An override blocks all requests (user:global:blocked). The next request is \
                   admitted in 20 minutes.";
    assert_eq!(found["because"], json!([because]));
    let blocked = limit(&found, "user:global:blocked");
    assert_eq!(
        (&blocked["retry_after"], &blocked["reset_at"]),
        (&json!(1_200), &json!(END))
    );
    let status = served.status("alice").await;
    let blocked = limit(&status, "user:global:blocked");
    assert_eq!(
        (&blocked["retry_after"], &blocked["reset_at"]),
        (&json!(1_200), &json!(END))
    );

    // After the wait of `Retry-After`, and not earlier, the next request is admitted.
    served.clock.advance(Duration::from_millis(1_199_999));
    assert_eq!(served.send("GET /", "alice").await.number("retry-after"), 1);
    served.clock.advance(Duration::from_millis(1));
    assert_eq!(served.send("GET /", "alice").await.status, 200);
}

#[tokio::test]
async fn block_without_an_end_has_no_retry_after() {
    let served = served().await;
    let block = json!({ "subject": { "user": "alice" }, "rule": "global", "limit": "blocked" });
    assert_eq!(served.post("overrides", &block).await.status, 200);
    let denied = served.send("GET /", "alice").await;
    assert_eq!((denied.status, denied.header("retry-after")), (429, None));
    assert_eq!(denied.header("x-ratelimit-reset"), None);
    let message = &denied.json()["error"]["message"];
    let expected = "Requests of this kind are blocked. Trying again cannot help.";
    assert_eq!(message, expected);
}
