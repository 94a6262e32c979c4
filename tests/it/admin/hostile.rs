//! Hostile requests to the admin API.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Served, TOKEN, assert_rejected};
use crate::support::log::Log;

#[tokio::test]
async fn malformed_bodies_are_rejected() {
    let served = Served::new("100/hour").await;
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    for body in [
        "",
        "null",
        "[]",
        "7",
        "{",
        r#"{"subject":[]}"#,
        r#"{"subject":{"user":7}}"#,
        r#"{"subject":{"user":"a"},"other":1}"#,
        r#"{"subject":{"user":"a","user":"b"}}"#,
        r#"{"subject":{"a":"","b":"","c":"","d":"","e":""}}"#,
        "\u{0}",
        &deep,
        r#"{"subject":{"user":"\ud800"}}"#,
    ] {
        let rejected = served.post("lookup", body).await;
        let message = assert_rejected(&rejected, 400, "INVALID_BODY");
        assert!(message.len() < 500, "{message}");
    }
}

#[tokio::test]
async fn bodies_that_are_too_large_are_not_read() {
    let served = Served::new("100/hour").await;
    let large = json!({ "subject": { "user": "a".repeat(20_000) } });
    assert_rejected(&served.post("lookup", &large).await, 413, "BODY_TOO_LARGE");
    // The response does not wait for the end of an endless body.
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let head = format!(
        "POST /admin/api/lookup HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(4_096));
    let mut answer = vec![0; 12];
    let (mut read, mut write) = stream.into_split();
    let writing =
        tokio::spawn(async move { while write.write_all(chunk.as_bytes()).await.is_ok() {} });
    read.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 413");
    drop(read);
    writing.abort();
}

/// A form of another origin can send other types without a preflight.
#[tokio::test]
async fn only_json_is_accepted() {
    let served = Served::new("100/hour").await;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "",
        "application/jsonp",
    ] {
        let request = Request::post("/admin/api/maintenance")
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", kind)
            .body(Body::from(r#"{"until":null}"#))
            .unwrap();
        let rejected = served.client.send_request(request).await;
        assert_rejected(&rejected, 415, "NOT_JSON");
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_rejected() {
    let served = Served::new("100/hour").await;
    for path in ["", "nothing", "policy/", "%2e%2e/policy", "lookup/alice"] {
        let message = assert_rejected(&served.get(path).await, 404, "NOT_FOUND").into_owned();
        assert!(message.contains("api/statistics"), "{message}");
    }
    let rejected = served.get("lookup").await;
    assert_rejected(&rejected, 405, "METHOD_NOT_ALLOWED");
    assert_eq!(rejected.header("allow"), Some("POST"));
    let rejected = served.post("policy", "{}").await;
    assert_rejected(&rejected, 405, "METHOD_NOT_ALLOWED");
    assert_eq!(rejected.header("allow"), Some("GET, HEAD"));
}

/// Names are returned unchanged, and are not interpreted.
#[tokio::test]
async fn hostile_names_are_returned_unchanged() {
    let served = Served::new("5/hour").await;
    for name in [
        "",
        " ",
        "</script><script>alert(1)</script>",
        "'; DROP TABLE users; --",
        "a\u{0}b",
        "\u{202e}gnp.exe",
        "../../etc/passwd",
        "${jndi:ldap://x}",
        "😀",
        "a=b, user=c",
        &"x".repeat(4_000),
    ] {
        let subject = json!({ "user": name });
        let new = json!({ "subject": subject, "rule": "global", "limit": "7/hour" });
        let set = served.post("overrides", &new).await;
        assert_eq!(
            (set.status, &set.json()["subject"]),
            (200, &subject),
            "{name}"
        );
        let found = served
            .post("lookup", json!({ "subject": subject }))
            .await
            .json();
        assert_eq!(
            (&found["subject"], &found["limits"][0]["limit"]),
            (&subject, &json!(7))
        );
        let which = json!({ "subject": subject, "rule": "global" });
        let removed = served.post("overrides/remove", &which).await.json();
        assert_eq!(removed["removed"], true);
    }
}

/// Audit events contain action and operator, and no event contains a subject.
#[tokio::test]
async fn changes_are_audited_without_subjects() {
    let (log, _listening) = Log::listen();
    let served = Served::new("5/hour").await;
    let alice = json!({ "user": "alice-of-the-log" });
    let new = json!({ "subject": alice, "rule": "global", "limit": "7/hour" });
    served.post("overrides", &new).await;
    served.post("lookup", json!({ "subject": alice })).await;
    served.post("reset", json!({ "subject": alice })).await;
    let which = json!({ "subject": alice, "rule": "global" });
    served.post("overrides/remove", &which).await;
    served
        .post("maintenance", json!({ "until": "2025-01-02T00:00:00Z" }))
        .await;
    served.post("maintenance", json!({ "until": null })).await;
    served.post("reload", "{}").await;
    // A rejected change is not logged.
    served
        .post(
            "overrides",
            json!({ "subject": alice, "rule": "no", "limit": "1/h" }),
        )
        .await;

    let events = log.about("rate_limit_admin");
    let actions = [
        "override",
        "look-up",
        "reset",
        "remove-override",
        "maintenance",
        "end-maintenance",
        "reload",
    ];
    assert_eq!(events.len(), actions.len(), "{events:#?}");
    for (event, action) in events.iter().zip(actions) {
        for expected in ["tollgate::audit", "actor=\"olivia\"", "request_id=\"req_"] {
            assert!(event.contains(expected), "{event}");
        }
        assert!(event.contains(&format!("action=\"{action}\"")), "{event}");
    }
    assert_eq!(log.about("rate_limit_override").len(), 2);
    assert_eq!(log.about("rate_limit_maintenance").len(), 2);
    let text = log.text();
    assert!(!text.contains("alice-of-the-log"), "{text}");
    assert!(!text.contains(TOKEN), "{text}");
}
