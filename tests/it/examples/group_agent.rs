//! The group agent: which messages count, and which limit applies.

use serde_json::{Value, json};

use super::process::{Example, refuses};
use super::send_json;
use crate::support::http::Answer;
use crate::support::sockets::Client;

const PER_USER: &str = "MERCURY_RATE_LIMIT_PER_USER";
const WINDOW: &str = "MERCURY_RATE_LIMIT_WINDOW_MS";
/// The longest window that is allowed, so that no entry leaves it while a test runs.
const HOUR: (&str, &str) = (WINDOW, "3600000");

struct Agent {
    _example: Example,
    client: Client,
}

impl Agent {
    async fn start(variables: &[(&str, &str)]) -> Self {
        let example = Example::start("group_agent", variables).await;
        Self {
            client: example.version_1(),
            _example: example,
        }
    }

    async fn post(&self, group: &str, user: &str, text: &str) -> Value {
        let message = json!({ "group": group, "user": user, "text": text });
        let answer = send_json(&self.client, "POST /message", &[], &message).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }

    /// Sends a message for the assistant. Returns whether it was allowed.
    async fn is_allowed(&self, group: &str, user: &str) -> bool {
        let answer = self.post(group, user, "@agent hello").await;
        if answer["type"] == "assistant" {
            return true;
        }
        let denied = json!({
            "type": "denied",
            "reason": "Rate limit exceeded. Try again shortly.",
        });
        assert_eq!(answer, denied);
        false
    }

    /// Limit and remaining.
    async fn usage(&self, group: &str, user: &str) -> (u64, u64) {
        let line = format!("GET /api/rate-limit?group={group}&user={user}");
        let body = self.client.send(&line, &[]).await.json();
        assert_eq!(
            (&body["group"], &body["user"]),
            (&json!(group), &json!(user))
        );
        let number = |name: &str| body[name].as_u64().unwrap();
        assert_eq!(
            number("limit").saturating_sub(number("used")),
            number("remaining")
        );
        (number("limit"), number("remaining"))
    }

    async fn configure(&self, group: &str, body: &Value) -> Answer {
        let headers = [
            ("x-mercury-group", group),
            ("x-mercury-caller", "slack:U456"),
        ];
        send_json(&self.client, "PUT /api/config", &headers, body).await
    }

    async fn set_limit(&self, group: &str, limit: &str) {
        let setting = json!({ "key": "rate_limit", "value": limit });
        let answer = self.configure(group, &setting).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let body = json!({ "group": group, "key": "rate_limit", "value": limit });
        assert_eq!(answer.json(), body);
    }

    async fn buckets(&self) -> u64 {
        let answer = self.client.send("GET /api/buckets", &[]).await;
        answer.json()["buckets"].as_u64().unwrap()
    }
}

/// Ten messages in quick succession are allowed, the eleventh is denied.
#[tokio::test]
async fn ten_messages_are_allowed_and_no_more() {
    let agent = Agent::start(&[HOUR]).await;
    for left in (0..10).rev() {
        let answer = agent
            .post("slack:C123", "slack:U456", "@agent  show me more ")
            .await;
        let expected = json!({ "type": "assistant", "prompt": "show me more", "remaining": left });
        assert_eq!(answer, expected);
    }
    for _ in 11..=12 {
        assert!(!agent.is_allowed("slack:C123", "slack:U456").await);
    }
    assert_eq!(agent.usage("slack:C123", "slack:U456").await, (10, 0));
}

#[tokio::test]
async fn commands_always_work_and_ignored_messages_do_not_count() {
    let agent = Agent::start(&[(PER_USER, "2"), HOUR]).await;
    let bypasses = [
        ("stop", json!({ "type": "command", "command": "stop" })),
        (
            "compact",
            json!({ "type": "command", "command": "compact" }),
        ),
        (" Stop ", json!({ "type": "command", "command": "stop" })),
        ("good morning", json!({ "type": "ignore" })),
        ("please stop", json!({ "type": "ignore" })),
        ("hello @agent", json!({ "type": "ignore" })),
        ("", json!({ "type": "ignore" })),
    ];
    for round in 0..2 {
        for (text, expected) in &bypasses {
            assert_eq!(agent.post("g", "u", text).await, *expected, "{text:?}");
        }
        let left = if round == 0 { 2 } else { 0 };
        assert_eq!(agent.usage("g", "u").await, (2, left));
        assert_eq!(agent.buckets().await, u64::from(round > 0));
        // Once more, with nothing remaining.
        while agent.is_allowed("g", "u").await {}
    }
}

#[tokio::test]
async fn other_users_and_other_groups_have_buckets_of_their_own() {
    let agent = Agent::start(&[(PER_USER, "1"), HOUR]).await;
    // Names that are equal when group and user are concatenated.
    let members = [
        ("g", "u"),
        ("g", "v"),
        ("h", "u"),
        ("g:u", "v"),
        ("g", "u:v"),
    ];
    for (number, (group, user)) in (1..).zip(members) {
        assert!(agent.is_allowed(group, user).await, "{group} {user}");
        assert!(!agent.is_allowed(group, user).await, "{group} {user}");
        assert_eq!(agent.buckets().await, number);
    }
    // A look-up creates no counter.
    assert_eq!(agent.usage("unknown", "here").await, (1, 1));
    assert_eq!(agent.buckets().await, 5);
}

#[tokio::test]
async fn the_limit_of_a_group_applies_at_once() {
    let agent = Agent::start(&[(PER_USER, "3"), HOUR]).await;
    assert!(agent.is_allowed("slack:C123", "u").await);
    agent.set_limit("slack:C123", "5").await;
    assert_eq!(agent.usage("slack:C123", "u").await, (5, 4));
    for _ in 0..4 {
        assert!(agent.is_allowed("slack:C123", "u").await);
    }
    assert!(!agent.is_allowed("slack:C123", "u").await);
    // Also a lower limit: usage is kept.
    agent.set_limit("slack:C123", "2").await;
    assert_eq!(agent.usage("slack:C123", "u").await, (2, 0));
    assert_eq!(agent.usage("slack:C123", "carol").await, (2, 2));
    agent.set_limit("slack:C123", "1000").await;
    assert!(agent.is_allowed("slack:C123", "u").await);
    assert_eq!(agent.usage("slack:C124", "u").await, (3, 3));
}

#[tokio::test]
async fn wrong_settings_of_a_group_change_nothing() {
    let agent = Agent::start(&[HOUR]).await;
    let wrong = [
        json!({ "key": "rate_limit", "value": "0" }),
        json!({ "key": "rate_limit", "value": "1001" }),
        json!({ "key": "rate_limit", "value": "many" }),
        json!({ "key": "rate_limit", "value": "-5" }),
        json!({ "key": "rate", "value": "5" }),
    ];
    for body in &wrong {
        let answer = agent.configure("g", body).await;
        assert_eq!(answer.status, 400, "{body}");
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains("Allowed: "), "{error}");
    }
    let setting = json!({ "key": "rate_limit", "value": "5" });
    for headers in [
        &[][..],
        &[("x-mercury-group", "g")],
        &[("x-mercury-caller", "u")],
        &[("x-mercury-group", ""), ("x-mercury-caller", "u")],
    ] {
        let answer = send_json(&agent.client, "PUT /api/config", headers, &setting).await;
        assert_eq!(answer.status, 400);
        assert!(answer.body.contains("is missing"), "{}", answer.body);
    }
    assert_eq!(agent.usage("g", "u").await, (10, 10));
    let half = agent.client.send("GET /api/rate-limit?group=g", &[]).await;
    assert_eq!(half.status, 400);
    let half = send_json(
        &agent.client,
        "POST /message",
        &[],
        &json!({ "group": "g" }),
    )
    .await;
    assert_eq!(half.status, 422);
}

/// The oldest message leaves the window first, and expired counters are removed.
#[tokio::test]
async fn the_window_slides() {
    let agent = Agent::start(&[(PER_USER, "1"), (WINDOW, "1000")]).await;
    while agent.is_allowed("g", "u").await {}
    while !agent.is_allowed("g", "u").await {}
    while agent.buckets().await > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn invalid_values_are_rejected_by_name() {
    let per_user = "a whole number from 1 to 1000";
    let window = "a whole number from 1000 to 3600000";
    refuses(
        "group_agent",
        &[
            (PER_USER, "0", per_user),
            (PER_USER, "1001", per_user),
            (PER_USER, "ten", per_user),
            (PER_USER, "", per_user),
            (WINDOW, "999", window),
            (WINDOW, "3600001", window),
            (WINDOW, "1m", window),
        ],
    )
    .await;
    for (name, value) in [
        (PER_USER, "1"),
        (PER_USER, "1000"),
        (WINDOW, "1000"),
        (WINDOW, "3600000"),
    ] {
        Agent::start(&[(name, value)]).await;
    }
}

/// The overrides have never been loaded, so no check waits for them.
#[tokio::test]
async fn messages_count_locally_if_redis_is_down_from_the_start() {
    let redis = crate::redis::Server::absent(&[]);
    let url = redis.url();
    let agent = Agent::start(&[("REDIS_URL", &url), (PER_USER, "2"), HOUR]).await;
    for is_allowed in [true, true, false] {
        assert_eq!(agent.is_allowed("g", "u").await, is_allowed);
    }
}

#[tokio::test]
async fn two_agents_share_counters_and_the_limits_of_groups() {
    let mut redis = crate::redis::Server::start();
    let url = redis.url();
    let variables = [("REDIS_URL", url.as_str()), (PER_USER, "4"), HOUR];
    let (one, other) = (
        Agent::start(&variables).await,
        Agent::start(&variables).await,
    );
    for number in 0..4 {
        let agent = if number % 2 == 0 { &one } else { &other };
        assert!(agent.is_allowed("g", "u").await);
    }
    for agent in [&one, &other] {
        assert!(!agent.is_allowed("g", "u").await);
        assert_eq!(agent.buckets().await, 1);
    }
    one.set_limit("g", "6").await;
    assert_eq!(one.usage("g", "u").await, (6, 2));
    let followed = async {
        while other.usage("g", "u").await != (6, 2) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let followed = tokio::time::timeout(super::process::PATIENCE, followed).await;
    followed.expect("the other process has the override");
    assert!(one.is_allowed("g", "u").await && other.is_allowed("g", "u").await);
    assert!(!one.is_allowed("g", "u").await && !other.is_allowed("g", "u").await);

    // Without Redis, each agent counts by itself, with the limits of the groups.
    redis.kill();
    for agent in [&one, &other] {
        for _ in 0..6 {
            assert!(agent.is_allowed("g", "carol").await);
        }
        assert!(!agent.is_allowed("g", "carol").await);
        let stand = "GET /api/rate-limit?group=g&user=u";
        assert_eq!(agent.client.send(stand, &[]).await.status, 503);
    }
}
