//! Denials, warnings and exemptions of the gateway.

use serde_json::json;

use super::{Caller, Gateway, OWN, usage_of};
use crate::examples::process::Example;
use crate::support::http::Answer;

/// Parses a duration in words. Returns seconds.
fn read(words: &str) -> u64 {
    let words: Vec<&str> = words.split(' ').filter(|word| *word != "and").collect();
    let amounts = words.chunks(2).map(|pair| {
        let [count, unit] = pair else {
            panic!("a number and a unit: {words:?}");
        };
        let count: u64 = count.parse().unwrap();
        assert_eq!(unit.ends_with('s'), count != 1, "{count} {unit}");
        let seconds = match unit.trim_end_matches('s') {
            "hour" => 3_600,
            "minute" => 60,
            "second" => 1,
            unit => panic!("{unit} is too long for an hour, or none"),
        };
        count * seconds
    });
    amounts.sum()
}

/// Checks all fields of a denial. `message` has `{}` in place of the wait.
fn check(denied: &Answer, message: &str, limit: u64, policy: &str, suggestion: Option<&str>) {
    assert_eq!(denied.status, 429);
    assert_eq!(usage_of(denied), (policy, limit, 0));
    let error = &denied.json()["error"];
    assert_eq!(error["code"], "RATE_LIMIT_EXCEEDED");
    let details = &error["details"];
    let wait = denied.number("retry-after");
    let expected = match suggestion {
        Some(_) => json!({ "limit": limit, "remaining": 0, "reset_at": details["reset_at"],
            "retry_after": wait, "policy": policy, "suggestion": suggestion }),
        None => json!({ "limit": limit, "remaining": 0, "reset_at": details["reset_at"],
            "retry_after": wait, "policy": policy }),
    };
    assert_eq!(*details, expected);

    // Capacity returns in the next hour, when the usage of this one begins to fade.
    assert!((1..=3_600 + 3_600 / limit + 1).contains(&wait), "{wait} s");
    let (before, after) = message.split_once("{}").unwrap();
    let text = error["message"].as_str().unwrap();
    let words = text
        .strip_prefix(before)
        .and_then(|rest| rest.strip_suffix(after))
        .unwrap_or_else(|| panic!("{text}"));
    let said = read(words);
    assert!(
        (wait..=wait + wait / 10 + 1).contains(&said),
        "{words} for {wait} s"
    );

    let at =
        |value: &serde_json::Value| -> jiff::Timestamp { value.as_str().unwrap().parse().unwrap() };
    let until = at(&details["reset_at"]).duration_since(at(&error["timestamp"]));
    let until = until.as_millis();
    let wait = i128::from(wait) * 1_000;
    // Both are whole seconds.
    assert!((wait - 1_000..wait + 1_000).contains(&until), "{until} ms");
    assert_eq!(denied.header("x-request-id"), error["request_id"].as_str());
}

#[tokio::test]
async fn denial_of_the_secrets_category() {
    let gateway = Gateway::start().await;
    let caller = Caller::user("alice", "free");
    let denied = gateway.exhaust("GET /v1/secrets/42", &caller, 500).await;
    check(
        &denied,
        "Secret access rate limit exceeded. You've made 500 requests in the past hour. Please try \
         again in {}.",
        500,
        "user:secrets:1h",
        Some("Consider upgrading to Team plan for 5,000 requests/hour"),
    );
}

/// Logins count per IP without a token and per user with one, and do not scale with the tier.
#[tokio::test]
async fn denial_of_logins() {
    let gateway = Gateway::start().await;
    let callers = [
        (Caller::anonymous(1), "ip:login:1h"),
        (
            Caller::anonymous(2).and_user("alice", "free"),
            "user:login:1h",
        ),
        (
            Caller::anonymous(2).and_user("bob", "enterprise"),
            "user:login:1h",
        ),
    ];
    for (caller, policy) in callers {
        let denied = gateway.exhaust("POST /auth/v1/token", &caller, 10).await;
        check(
            &denied,
            "Too many login attempts. Please try again in {}.",
            10,
            policy,
            Some("If you forgot your password, use the 'Forgot Password' link"),
        );
    }
    // Another address has its own counter.
    let other = gateway
        .send("POST /auth/v1/token", &Caller::anonymous(3))
        .await;
    assert_eq!(usage_of(&other), ("ip:login:1h", 10, 9));
}

#[tokio::test]
async fn denial_of_research() {
    let gateway = Gateway::start().await;
    let caller = Caller::user("alice", "free");
    let denied = gateway.exhaust("POST /v1/ai/research", &caller, 10).await;
    check(
        &denied,
        "AI research rate limit exceeded. You've used 10 research requests in the past hour. \
         Please try again in {}.",
        10,
        "user:ai-research:1h",
        Some(
            "AI research uses FireCrawl API credits. Consider manual documentation lookup for \
             faster answers.",
        ),
    );
}

#[tokio::test]
async fn denial_of_the_global_rule() {
    let gateway = Gateway::start().await;
    let denied = gateway
        .exhaust("GET /v1/projects", &Caller::anonymous(1), 100)
        .await;
    let message = "Rate limit exceeded. Please try again in {}.";
    check(&denied, message, 100, "ip:global:1h", None);
}

/// From 80 % usage on.
#[tokio::test]
async fn responses_carry_a_warning_before_the_limit() {
    let gateway = Gateway::start().await;
    let caller = Caller::user("alice", "free");
    for used in 1..=20 {
        let answer = gateway.send("POST /auth/v1/mfa/verify", &caller).await;
        let expected = (used >= 16).then_some("Approaching rate limit");
        assert_eq!(answer.header("x-ratelimit-warning"), expected, "{used}");
    }
}

/// Service accounts are exempt, with an audit event.
#[tokio::test]
async fn service_accounts_are_exempt_and_audited() {
    let mut gateway = Gateway::of(Example::start_with_stderr("gateway", &OWN).await);
    let service = Caller::with_claims(&json!({ "sub": "migrations", "roles": ["service"] }));
    for _ in 0..12 {
        let answer = gateway.send("POST /auth/v1/token", &service).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-ratelimit-limit"), None);
    }
    let event = gateway.example.stderr_line("tollgate::audit").await;
    for expected in ["INFO", "role", "/auth/v1/token"] {
        assert!(event.contains(expected), "{event}");
    }
    // Only roles of a verified token count.
    let mut forged = Caller::anonymous(1);
    forged.headers.push(("roles", "service".to_owned()));
    let answer = gateway.send("POST /auth/v1/token", &forged).await;
    assert_eq!(usage_of(&answer), ("ip:login:1h", 10, 9));
}

/// An unknown plan has the limits of the default tier.
#[tokio::test]
async fn an_unknown_plan_has_the_limits_of_the_free_tier() {
    let gateway = Gateway::start().await;
    for plan in ["platinum", "", "Enterprise"] {
        let caller = Caller::user(&format!("user of {plan:?}"), plan);
        let answer = gateway.send("POST /v1/mcp/secrets/get", &caller).await;
        assert_eq!(usage_of(&answer), ("user:mcp-get:1h", 200, 199), "{plan:?}");
    }
}
