//! Maintenance: all limits are off until an instant.

use std::time::Duration;

use serde_json::json;
use tollgate::policy::Policy;
use tollgate::{Clock, Override, Timestamp};

use super::{Served, assert_rejected};

#[tokio::test]
async fn limits_are_off_until_maintenance_ends() {
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
    // Maintenance is not listed as an override.
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

/// The later end applies, and an operator cannot end the maintenance of the policy.
#[tokio::test]
async fn maintenance_of_the_policy_cannot_be_ended_by_an_operator() {
    let until = Timestamp::from_secs(1_735_689_600 + 600);
    let served = Served::new(Policy::builder().everyone("1/hour").disabled_until(until)).await;
    let by_policy = json!({ "active": true, "until": "2025-01-01T00:10:00.000Z", "by": "policy" });
    assert_eq!(served.get("maintenance").await.json(), by_policy);
    let rejected = served.post("maintenance", json!({ "until": null })).await;
    let message = assert_rejected(&rejected, 409, "CONFLICT");
    assert!(message.contains("maintenance.disabled_until"), "{message}");
    let later = json!({ "until": "2025-01-01T00:20:00Z" });
    let answer = served.post("maintenance", later).await.json();
    assert_eq!(answer["by"], "operator");
}

#[tokio::test]
async fn maintenance_requires_an_end_in_the_future() {
    let served = Served::new("1/hour").await;
    for (body, status, code) in [
        (r"{}", 400, "INVALID_BODY"),
        (r#"{"until":"tomorrow"}"#, 400, "INVALID_BODY"),
        (r#"{"until":"2024-12-31T23:59:59Z"}"#, 422, "INVALID_VALUE"),
        (r#"{"until":"2025-01-01T00:00:00Z"}"#, 422, "INVALID_VALUE"),
    ] {
        assert_rejected(&served.post("maintenance", body).await, status, code);
    }
}

/// Maintenance is stored with the overrides, and is not listed as one.
#[tokio::test]
async fn a_rule_called_maintenance_is_independent_of_maintenance() {
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

/// Maintenance cannot be set or removed as an override.
#[tokio::test]
async fn maintenance_cannot_be_changed_through_overrides() {
    let served = Served::new(Policy::builder().rule("maintenance", "1/hour")).await;
    let reserved = json!({ "@tollgate": "maintenance" });
    let new = json!({ "subject": reserved, "rule": "maintenance", "limit": "unlimited",
        "until": "2025-01-01T01:00:00Z" });
    let rejected = served.post("overrides", &new).await;
    let message = assert_rejected(&rejected, 422, "INVALID_VALUE");
    assert!(message.contains("use maintenance"), "{message}");
    assert_eq!(served.limits.maintenance_until(), None);

    let until = json!({ "until": "2025-01-01T00:10:00Z" });
    served.post("maintenance", &until).await;
    let which = json!({ "subject": reserved, "rule": "maintenance" });
    let removed = served.post("overrides/remove", &which).await.json();
    assert_eq!(removed["removed"], false);
    assert_eq!(served.get("maintenance").await.json()["active"], true);
}
