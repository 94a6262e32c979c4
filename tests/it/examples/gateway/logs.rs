//! JSON logs of the gateway, in the shape of the design that it replaces.

use serde_json::{Map, Value, json};

use super::{Caller, Gateway, OWN};
use crate::examples::process::{Example, refuses};

/// Keys of the two samples in the design, in their order, each with a value of its type.
const EXCEEDED: &[(&str, &str)] = &[
    ("level", "\"warn\""),
    ("event", "\"rate_limit_exceeded\""),
    ("user_id", "\"f47ac10b-58cc-4372-a567-0e02b2c3d479\""),
    ("ip", "\"203.0.0.9\""),
    ("endpoint", "\"/v1/secrets/{id}\""),
    ("method", "\"GET\""),
    ("limit", "500"),
    ("actual_requests", "501"),
    ("window", "\"1h\""),
    ("policy", "\"user:secrets:1h\""),
    ("retry_after", "number"),
    ("request_id", "\"req_abc123\""),
    ("timestamp", "time"),
];
const WARNING: &[(&str, &str)] = &[
    ("level", "\"info\""),
    ("event", "\"rate_limit_warning\""),
    ("user_id", "\"f47ac10b-58cc-4372-a567-0e02b2c3d479\""),
    ("endpoint", "\"/v1/mcp/secrets/get\""),
    ("remaining", "40"),
    ("limit", "200"),
    ("percentage_remaining", "20.0"),
    ("request_id", "\"req_abc123\""),
    ("timestamp", "time"),
];
const USER: &str = "f47ac10b-58cc-4372-a567-0e02b2c3d479";

/// Asserts that an event has these keys in this order, and besides them only `more`.
fn assert_shape(line: &str, keys: &[(&str, &str)], more: &[&str]) {
    let event: Map<String, Value> = serde_json::from_str(line).unwrap();
    let mut after = 0;
    for (key, expected) in keys {
        let value = event
            .get(*key)
            .unwrap_or_else(|| panic!("no {key}: {line}"));
        match *expected {
            "number" => assert!(value.as_u64().is_some_and(|wait| wait <= 3_600), "{line}"),
            "time" => {
                let text = value.as_str().unwrap();
                let digits = text.replace(|digit: char| digit.is_ascii_digit(), "0");
                assert_eq!(digits, "0000-00-00T00:00:00.000Z");
            }
            expected => assert_eq!(value.to_string(), expected, "{key}"),
        }
        let at = line.find(&format!("\"{key}\":")).unwrap();
        assert!(at > after, "{key} is out of order: {line}");
        after = at;
    }
    let expected = keys.iter().map(|(key, _)| *key);
    let mut expected: Vec<&str> = expected.chain(more.iter().copied()).collect();
    let mut names: Vec<&str> = event.keys().map(String::as_str).collect();
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected, "{line}");
}

async fn start(variables: &[(&str, &str)]) -> Gateway {
    let variables = [&OWN[..], &[("LOG_FORMAT", "json")], variables].concat();
    Gateway::of(Example::start_with_stderr("gateway", &variables).await)
}

/// Returns a user whose requests have an id.
fn user() -> Caller {
    let mut caller = Caller::user(USER, "free");
    caller
        .headers
        .push(("x-request-id", "req_abc123".to_owned()));
    caller
}

#[tokio::test]
async fn json_logs_have_the_keys_of_the_design() {
    let mut gateway = start(&[("LOG_IDENTITIES", "plain")]).await;
    for _ in 0..160 {
        gateway.send("POST /v1/mcp/secrets/get", &user()).await;
    }
    let warning = gateway.example.stderr_line("rate_limit_warning").await;
    assert_shape(&warning, WARNING, &["method", "used", "window", "policy"]);

    gateway.exhaust("GET /v1/secrets/42", &user(), 500).await;
    let exceeded = gateway.example.stderr_line("rate_limit_exceeded").await;
    assert_shape(&exceeded, EXCEEDED, &["used"]);

    let mut service = Caller::with_claims(&json!({ "sub": "nightly", "roles": ["service"] }));
    service
        .headers
        .push(("x-request-id", "req_abc123".to_owned()));
    gateway.send("GET /v1/secrets/42", &service).await;
    let exempt = gateway.example.stderr_line("rate_limit_exempt").await;
    let keys = [
        ("level", "\"info\""),
        ("event", "\"rate_limit_exempt\""),
        ("why", "\"role\""),
        ("user_id", "\"nightly\""),
        ("role", "\"service\""),
        ("endpoint", "\"/v1/secrets/42\""),
        ("method", "\"GET\""),
        ("request_id", "\"req_abc123\""),
        ("timestamp", "time"),
    ];
    assert_shape(&exempt, &keys, &[]);
}

/// By default callers are hashed. Every line is one JSON object, whatever callers send.
#[tokio::test]
async fn json_logs_hash_callers_and_quote_their_text() {
    let gateway = start(&[("TOLLGATE_GLOBAL__ANONYMOUS", "1/hour")]).await;
    let caller = Caller::anonymous(7);
    for _ in 0..2 {
        gateway.send("GET /%22%0a{\"x\":1}", &caller).await;
    }
    gateway.exhaust("POST /auth/v1/token", &user(), 10).await;
    let log = gateway.example.into_stderr().await;
    let events: Vec<Value> = log
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    for event in &events {
        let is_named = event["event"].is_string() != event["message"].is_string();
        assert!(is_named && event["level"].is_string(), "{event}");
    }
    let exceeded: Vec<_> = events
        .iter()
        .filter(|event| event["event"] == "rate_limit_exceeded")
        .collect();
    let [by_address, by_user] = &exceeded[..] else {
        panic!("{log:#?}");
    };
    assert!(by_address.get("user_id").is_none(), "{by_address}");
    let is_hash =
        |value: &Value, kind: &str| value.as_str().is_some_and(|value| value.starts_with(kind));
    assert!(is_hash(&by_address["ip"], "ip#"), "{by_address}");
    assert!(is_hash(&by_user["ip"], "ip#"), "{by_user}");
    assert!(is_hash(&by_user["user_id"], "user#"), "{by_user}");
    assert!(
        log.iter()
            .all(|line| !line.contains(USER) && !line.contains("203.0."))
    );
}

#[tokio::test]
async fn invalid_log_settings_are_rejected_by_name() {
    let wrong = [
        ("LOG_FORMAT", "xml", "text or json"),
        ("LOG_FORMAT", "", "text or json"),
        ("LOG_FORMAT", "JSON", "text or json"),
        ("LOG_IDENTITIES", "all", "hashed or plain"),
    ];
    refuses("gateway", &wrong).await;
}
