//! All limits off for a while.

use std::time::Duration;

use serde_json::json;
use tollgate::policy::Policy;
use tollgate::{Clock, Override, Timestamp};

use super::{Served, assert_refused};

#[tokio::test]
async fn limits_go_and_come_back_by_themselves() {
    let served = Served::new("1/hour").await;
    served.send("GET /", "alice").await;
    assert_eq!(served.send("GET /", "alice").await.status, 429);
    let off = json!({ "active": false, "until": null, "by": null });
    assert_eq!(served.get("maintenance").await.json(), off);

    let until = json!({ "until": "2025-01-01T00:10:00Z" });
    let on = json!({ "active": true, "until": "2025-01-01T00:10:00.000Z", "by": "operator" });
    assert_eq!(served.post("maintenance", &until).await.json(), on);
    assert_eq!(served.get("maintenance").await.json(), on);
    for _ in 0..5 {
        let answer = served.send("GET /", "alice").await;
        assert_eq!(
            (answer.status, answer.header("x-ratelimit-limit")),
            (200, None)
        );
    }
    // It is not listed as an override.
    assert_eq!(
        served.get("overrides").await.json(),
        json!({ "overrides": [] })
    );

    served
        .clock
        .advance(Duration::from_micros(10 * 60 * 1_000_000 - 1));
    assert_eq!(served.send("GET /", "alice").await.status, 200);
    served.clock.advance(Duration::from_micros(1));
    assert_eq!(served.send("GET /", "alice").await.status, 429);
    assert_eq!(served.get("maintenance").await.json(), off);

    let until = json!({ "until": "2025-01-01T00:20:00Z" });
    served.post("maintenance", &until).await;
    assert_eq!(served.send("GET /", "alice").await.status, 200);
    for _ in 0..2 {
        let answer = served.post("maintenance", json!({ "until": null })).await;
        assert_eq!(answer.json(), off);
    }
    assert_eq!(served.send("GET /", "alice").await.status, 429);
}

/// The later end counts, and an operator cannot end the maintenance of the policy.
#[tokio::test]
async fn the_policy_has_its_own() {
    let until = Timestamp::from_secs(1_735_689_600 + 600);
    let served = Served::new(
        Policy::builder()
            .everyone("1/hour")
            .maintenance_until(until),
    )
    .await;
    let by_policy = json!({ "active": true, "until": "2025-01-01T00:10:00.000Z", "by": "policy" });
    assert_eq!(served.get("maintenance").await.json(), by_policy);
    let refused = served.post("maintenance", json!({ "until": null })).await;
    let message = assert_refused(&refused, 409, "CONFLICT");
    assert!(message.contains("maintenance.disabled_until"), "{message}");
    let later = json!({ "until": "2025-01-01T00:20:00Z" });
    let answer = served.post("maintenance", later).await.json();
    assert_eq!(answer["by"], "operator");
}

#[tokio::test]
async fn it_has_to_be_said_until_when() {
    let served = Served::new("1/hour").await;
    for (body, status, code) in [
        (r"{}", 400, "INVALID_BODY"),
        (r#"{"until":"tomorrow"}"#, 400, "INVALID_BODY"),
        (r#"{"until":"2024-12-31T23:59:59Z"}"#, 422, "INVALID_VALUE"),
        (r#"{"until":"2025-01-01T00:00:00Z"}"#, 422, "INVALID_VALUE"),
    ] {
        assert_refused(&served.post("maintenance", body).await, status, code);
    }
}

/// It is stored with the overrides, and must not be listed as one.
#[tokio::test]
async fn a_rule_called_maintenance_is_another_matter() {
    let policy = Policy::builder().rule("maintenance", "1/hour");
    let served = Served::new(policy).await;
    let set = Override::new([("user", "alice")], "maintenance", "3/hour").unwrap();
    served.limits.set_override(set).wait().unwrap();
    let hour = served.clock.now().saturating_add(Duration::from_hours(1));
    served.limits.start_maintenance(hour).wait().unwrap();
    assert_eq!(served.limits.overrides().len(), 1);
    served.limits.end_maintenance().wait().unwrap();
    assert_eq!(served.limits.maintenance_until(), None);
    assert_eq!(served.limits.overrides().len(), 1);
    assert_eq!(
        served
            .send("GET /", "alice")
            .await
            .number("x-ratelimit-limit"),
        3
    );
    assert_eq!(
        served
            .send("GET /", "bob")
            .await
            .number("x-ratelimit-limit"),
        1
    );
}

/// Maintenance cannot be set as an override, and has audit events of its own.
#[tokio::test]
async fn it_cannot_be_thrown_by_what_looks_like_an_override() {
    let served = Served::new(Policy::builder().rule("maintenance", "1/hour")).await;
    let reserved = json!({ "@tollgate": "maintenance" });
    let new = json!({ "subject": reserved, "rule": "maintenance", "limit": "unlimited",
        "until": "2025-01-01T01:00:00Z" });
    let refused = served.post("overrides", &new).await;
    let message = assert_refused(&refused, 422, "INVALID_VALUE");
    assert!(message.contains("there is maintenance"), "{message}");
    assert_eq!(served.limits.maintenance_until(), None);

    let until = json!({ "until": "2025-01-01T00:10:00Z" });
    served.post("maintenance", &until).await;
    let which = json!({ "subject": reserved, "rule": "maintenance" });
    let removed = served.post("overrides/remove", &which).await.json();
    assert_eq!(removed["removed"], false);
    assert_eq!(served.get("maintenance").await.json()["active"], true);
}
