//! Limits that operators set.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate::policy::{Policy, Rule};

use super::{Served, assert_refused, limit};

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
async fn the_next_request_obeys() {
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

    // It ends by itself.
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
    let whom = json!({ "subject": { "ip": "127.0.0.1" } });
    let found = served.post("lookup", &whom).await.json();
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
async fn what_cannot_be_set_is_refused_with_what_can() {
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
            "to come",
        ),
    ] {
        let refused = served.post("overrides", &new).await;
        let message = assert_refused(&refused, 422, "INVALID_VALUE");
        assert!(message.contains(expected), "{new}: {message}");
    }
    assert_eq!(listed(&served).await, json!([]));
}
