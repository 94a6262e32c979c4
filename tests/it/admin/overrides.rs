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

/// Bug: such overrides were stored and applied to no caller.
#[tokio::test]
async fn overrides_for_subjects_that_no_caller_has_are_rejected() {
    let policy = Policy::builder()
        .everyone("5/hour")
        .rule("instance", Rule::new("50/hour").per([]));
    let served = Served::new(policy).await;
    let long = "x".repeat(65);
    for name in [
        "",
        "us er",
        "us\ner",
        "\"user\"",
        "größe",
        "us er@issuer",
        &long,
    ] {
        let subject = json!({ name: "alice" });
        for (path, body) in [
            (
                "overrides",
                json!({ "subject": subject, "rule": "global", "limit": "1/hour" }),
            ),
            ("reset", json!({ "subject": subject })),
            ("lookup", json!({ "subject": subject })),
        ] {
            let rejected = served.post(path, &body).await;
            let message = assert_rejected(&rejected, 422, "INVALID_VALUE");
            assert!(
                message.starts_with("The dimension name cannot be"),
                "{path}: {message}"
            );
            assert!(!message.contains('\n'), "{message}");
        }
        // An override of an earlier version can be removed.
        let which = json!({ "subject": subject, "rule": "global" });
        assert_eq!(served.post("overrides/remove", &which).await.status, 200);
    }
    for name in ["api-key", "user@https://id.example/größe a"] {
        let new = json!({ "subject": { name: "a" }, "rule": "global", "limit": "1/hour" });
        assert_eq!(served.post("overrides", &new).await.status, 200, "{name}");
    }
    let all = |rule: &str| json!({ "subject": {}, "rule": rule, "limit": "7/hour" });
    let rejected = served.post("overrides", &all("global")).await;
    let message = assert_rejected(&rejected, 422, "INVALID_VALUE");
    assert!(
        message.starts_with("The subject cannot be `{}`"),
        "{message}"
    );
    // The subject of the counter that all requests share.
    assert_eq!(served.post("overrides", &all("instance")).await.status, 200);
    let alice = served.look_up("alice").await;
    assert_eq!(limit(&alice, "all:instance:1h")["limit"], 7);
}

/// Bug: the look-up of a user promised that the next request is admitted, while its IP was blocked.
#[tokio::test]
async fn look_up_without_an_ip_names_the_overrides_per_ip_as_an_exception() {
    const ADMITTED: &str = "No limit is used up: the next request is admitted.";
    const UNLESS: &str = "No limit of this subject is used up: the next request is admitted, unless a limit or \
                          an override for its IP denies it.";
    let served = Served::new("100/hour").await;
    assert_eq!(served.look_up("bob").await["because"], json!([ADMITTED]));
    let block = json!({ "subject": { "ip": "127.0.0.1" }, "rule": "global", "limit": "blocked" });
    assert_eq!(served.post("overrides", &block).await.status, 200);
    assert_eq!(served.send("GET /", "bob").await.status, 429);
    assert_eq!(served.look_up("bob").await["because"], json!([UNLESS]));
    for (ip, blocked) in [("127.0.0.1", true), ("203.0.113.9", false)] {
        let with_ip = json!({ "subject": { "user": "bob", "ip": ip } });
        let found = served.post("lookup", &with_ip).await.json();
        assert_eq!(found["blocked"], blocked);
        assert_eq!(found["because"] == json!([ADMITTED]), !blocked);
    }
}
