//! The program `tollgate` and the admin API describe a policy and a request with the same JSON.

use serde_json::{Value, json};
use tollgate::ManualClock;
use tollgate::config::Config;

use super::Served;
use crate::docs::commands::program;

const POLICY: &str = r#"
[tiers]
default = "free"
free = 1
team = 5

[global]
authenticated = "1000/hour"
anonymous = "100/hour"

[categories.secrets]
limit = "500/hour"

[[endpoints]]
route = "GET /v1/secrets/{id}"
category = "secrets"

[[rules]]
name = "tenant"
per = ["tenant"]
limit = "100_000/day"
mode = "dry-run"

[exempt]
roles = ["service"]
networks = ["10.0.0.0/8"]
routes = ["GET /health"]
subjects = { user = ["root"], tenant = ["ourselves"] }
"#;

/// Runs a command of the program. Removes fields that only describe the run.
fn run(arguments: &[&str]) -> Value {
    let output = program::run("same-json", POLICY, arguments);
    assert!(output.status.success(), "{output:?}");
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for key in ["file", "ok", "problems", "more"] {
        report.as_object_mut().unwrap().remove(key);
    }
    report
}

#[tokio::test]
async fn program_and_admin_api_have_the_same_json() {
    let clock = ManualClock::new();
    let layer = Config::from_toml(POLICY).unwrap().into_layer();
    let layer = layer.clock(clock.clone()).build().unwrap();
    let served = Served::of(layer, clock).await;

    let policy = served.get("policy").await.json();
    assert_eq!(
        policy["policy"],
        run(&["check", "limits.toml", "--format", "json"])
    );

    let caller = json!({
        "subject": { "user": "alice" }, "tier": "team", "request": "GET /v1/secrets/42",
    });
    let found = served.post("lookup", &caller).await.json();
    let mut explanation = found["explanation"].clone();
    let at = explanation["at"].as_str().unwrap().to_owned();
    explanation.as_object_mut().unwrap().remove("text");
    let request = ["--request", "GET /v1/secrets/42", "--at", &at];
    let caller = ["--user", "alice", "--tier", "team", "--format", "json"];
    let arguments = [&["explain", "limits.toml"][..], &request, &caller].concat();
    assert_eq!(explanation, run(&arguments));
}
