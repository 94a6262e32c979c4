//! The current policy and its reload.

use serde_json::json;
use tollgate::headers::HeaderSet;
use tollgate::identity::ApiKey;
use tollgate::policy::{Policy, Rule, Tiers};

use super::{Served, assert_rejected};
use crate::support::http::layer;

#[tokio::test]
async fn the_policy_is_returned_as_compiled() {
    let policy = Policy::builder()
        .tiers(Tiers::new("free").tier("team", 5))
        .everyone("100/hour")
        .endpoint(
            "POST /login",
            Rule::new("3/hour").name("login").per(["ip"]).scale(false),
        )
        .exempt_route("GET /health")
        .exempt_subject("user", "secret-agent");
    let served = Served::new(policy).await;
    let answer = served.get("policy").await;
    let response = answer.json();
    let status = json!({
        "version": 1, "since": "2025-01-01T00:00:00.000Z", "failures": 0, "problem": null,
    });
    assert_eq!(response["status"], status);
    let rules = response["policy"]["rules"].as_array().unwrap();
    let login = rules.iter().find(|rule| rule["name"] == "login").unwrap();
    assert_eq!(
        login["limits"],
        json!({ "free": ["3/1h"], "team": ["3/1h"] })
    );
    assert_eq!(login["per"], "ip");
    let endpoints = &response["policy"]["endpoints"];
    assert_eq!(endpoints[0]["route"], "POST /login");
    assert_eq!(
        response["policy"]["exempt"]["routes"],
        json!(["GET /health"])
    );
    // The number of exempt subjects, without their names.
    assert_eq!(response["policy"]["exempt"]["subjects"], 1);
    assert!(!answer.body.contains("secret-agent"));
}

#[tokio::test]
async fn settings_beside_the_policy_are_returned() {
    let (builder, clock) = layer(Policy::builder().everyone("100/hour").warn_at(0.75));
    let key = ApiKey::known("x-api-key", ["a-secret-key"]).unwrap();
    let builder = builder.headers(HeaderSet::Both).identify(key);
    let served = Served::of(builder.build().unwrap(), clock).await;
    let answer = served.get("policy").await;
    let expected = json!({
        "warn_at": 0.75, "headers": "both", "reset": "unix-seconds",
        "identity": ["closure", "API key in `x-api-key`"], "on_invalid_credentials": "anonymous",
    });
    assert_eq!(answer.json()["settings"], expected);
    assert!(!answer.body.contains("a-secret-key"));
}

#[tokio::test]
async fn a_reload_and_a_failed_reload_are_returned() {
    let served = Served::new("100/hour").await;
    served.limits.replace_policy("200/hour").unwrap();
    served.limits.replace_policy("0/hour").unwrap_err();
    let status = served.get("policy").await.json()["status"].take();
    assert_eq!(
        (&status["version"], &status["failures"]),
        (&json!(2), &json!(1))
    );
    assert!(status["problem"].as_str().unwrap().contains("blocked"));

    // This policy was not read from a file.
    let rejected = served.post("reload", "{}").await;
    let message = assert_rejected(&rejected, 422, "POLICY_NOT_RELOADED");
    assert!(message.contains("was not read from a file"), "{message}");
}

#[tokio::test]
async fn a_file_is_read_again() {
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = path.join(format!("admin-{}.toml", std::process::id()));
    std::fs::write(&path, "[global]\nanonymous = '5/hour'\n").unwrap();
    let limits = tollgate::RateLimitLayer::from_file(&path).unwrap();
    let served = Served::of(limits, tollgate::ManualClock::new()).await;
    let limit = async || {
        served
            .client
            .send("GET /", &[])
            .await
            .number("x-ratelimit-limit")
    };
    assert_eq!(limit().await, 5);
    std::fs::write(&path, "[global]\nanonymous = '7/hour'\n").unwrap();
    let answer = served.post("reload", "{}").await;
    assert_eq!((answer.status, &answer.json()["version"]), (200, &json!(2)));
    assert_eq!(limit().await, 7);
    std::fs::write(&path, "[global]\nanonymous = '7/eon'\n").unwrap();
    let rejected = served.post("reload", "{}").await;
    let message = assert_rejected(&rejected, 422, "POLICY_NOT_RELOADED");
    assert!(message.contains("7/eon"), "{message}");
    assert_eq!(limit().await, 7);
    let status = served.get("policy").await.json()["status"].take();
    assert_eq!(
        (&status["version"], &status["failures"]),
        (&json!(2), &json!(1))
    );
}
