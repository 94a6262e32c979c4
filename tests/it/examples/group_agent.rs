//! The agent in its groups: who is counted, who is not, and which limit wins.

use serde_json::{Value, json};

use super::process::{Example, refuses};
use super::send_json;
use crate::layer::Answer;
use crate::wire::Client;

const PER_USER: &str = "MERCURY_RATE_LIMIT_PER_USER";
const WINDOW: &str = "MERCURY_RATE_LIMIT_WINDOW_MS";
/// The longest there is, so that nothing leaves it while a test runs.
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

    async fn say(&self, group: &str, user: &str, text: &str) -> Value {
        let message = json!({ "group": group, "user": user, "text": text });
        let answer = send_json(&self.client, "POST /message", &[], &message).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }

    /// Whether the assistant is asked.
    async fn asks(&self, group: &str, user: &str) -> bool {
        let answer = self.say(group, user, "@agent hello").await;
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
    async fn stand(&self, group: &str, user: &str) -> (u64, u64) {
        let line = format!("GET /api/rate-limit?group={group}&user={user}");
        let told = self.client.send(&line, &[]).await.json();
        assert_eq!(
            (&told["group"], &told["user"]),
            (&json!(group), &json!(user))
        );
        let number = |name: &str| told[name].as_u64().unwrap();
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
        let told = json!({ "group": group, "key": "rate_limit", "value": limit });
        assert_eq!(answer.json(), told);
    }

    async fn buckets(&self) -> u64 {
        let answer = self.client.send("GET /api/buckets", &[]).await;
        answer.json()["buckets"].as_u64().unwrap()
    }
}

/// The example of the seed: ten in quick succession, and no eleventh.
#[tokio::test]
async fn ten_messages_are_allowed_and_no_more() {
    let agent = Agent::start(&[HOUR]).await;
    for left in (0..10).rev() {
        let answer = agent
            .say("slack:C123", "slack:U456", "@agent  tell me more ")
            .await;
        let expected = json!({ "type": "assistant", "prompt": "tell me more", "remaining": left });
        assert_eq!(answer, expected);
    }
    for _ in 11..=12 {
        assert!(!agent.asks("slack:C123", "slack:U456").await);
    }
    assert_eq!(agent.stand("slack:C123", "slack:U456").await, (10, 0));
}

#[tokio::test]
async fn commands_always_work_and_what_is_ignored_does_not_count() {
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
            assert_eq!(agent.say("g", "u", text).await, *expected, "{text:?}");
        }
        let left = if round == 0 { 2 } else { 0 };
        assert_eq!(agent.stand("g", "u").await, (2, left));
        assert_eq!(agent.buckets().await, u64::from(round > 0));
        // Then once more, when there is nothing left.
        while agent.asks("g", "u").await {}
    }
}

#[tokio::test]
async fn other_users_and_other_groups_have_buckets_of_their_own() {
    let agent = Agent::start(&[(PER_USER, "1"), HOUR]).await;
    // Names that would be the same if they were only put together.
    let members = [
        ("g", "u"),
        ("g", "v"),
        ("h", "u"),
        ("g:u", "v"),
        ("g", "u:v"),
    ];
    for (number, (group, user)) in (1..).zip(members) {
        assert!(agent.asks(group, user).await, "{group} {user}");
        assert!(!agent.asks(group, user).await, "{group} {user}");
        assert_eq!(agent.buckets().await, number);
    }
    // To look makes no bucket.
    assert_eq!(agent.stand("nobody", "here").await, (1, 1));
    assert_eq!(agent.buckets().await, 5);
}

#[tokio::test]
async fn the_limit_of_a_group_wins_at_once() {
    let agent = Agent::start(&[(PER_USER, "3"), HOUR]).await;
    assert!(agent.asks("slack:C123", "u").await);
    agent.set_limit("slack:C123", "5").await;
    assert_eq!(agent.stand("slack:C123", "u").await, (5, 4));
    for _ in 0..4 {
        assert!(agent.asks("slack:C123", "u").await);
    }
    assert!(!agent.asks("slack:C123", "u").await);
    // Lower, too: what was counted stays counted.
    agent.set_limit("slack:C123", "2").await;
    assert_eq!(agent.stand("slack:C123", "u").await, (2, 0));
    assert_eq!(agent.stand("slack:C123", "somebody").await, (2, 2));
    agent.set_limit("slack:C123", "1000").await;
    assert!(agent.asks("slack:C123", "u").await);
    assert_eq!(agent.stand("slack:C124", "u").await, (3, 3));
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
    assert_eq!(agent.stand("g", "u").await, (10, 10));
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

/// What was asked longest ago leaves the window first, and buckets that are over are not kept.
#[tokio::test]
async fn the_window_slides() {
    let agent = Agent::start(&[(PER_USER, "1"), (WINDOW, "1000")]).await;
    while agent.asks("g", "u").await {}
    while !agent.asks("g", "u").await {}
    while agent.buckets().await > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn wrong_values_are_refused_by_name() {
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

#[cfg(feature = "redis")]
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
        assert!(agent.asks("g", "u").await);
    }
    for agent in [&one, &other] {
        assert!(!agent.asks("g", "u").await);
        assert_eq!(agent.buckets().await, 1);
    }
    one.set_limit("g", "6").await;
    assert_eq!(one.stand("g", "u").await, (6, 2));
    let followed = async {
        while other.stand("g", "u").await != (6, 2) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let followed = tokio::time::timeout(super::process::PATIENCE, followed).await;
    followed.expect("the other knows it, too");
    assert!(one.asks("g", "u").await && other.asks("g", "u").await);
    assert!(!one.asks("g", "u").await && !other.asks("g", "u").await);

    // Without it each counts by itself, also by the limits that groups were given.
    redis.kill();
    for agent in [&one, &other] {
        for _ in 0..6 {
            assert!(agent.asks("g", "somebody").await);
        }
        assert!(!agent.asks("g", "somebody").await);
        let stand = "GET /api/rate-limit?group=g&user=u";
        assert_eq!(agent.client.send(stand, &[]).await.status, 503);
    }
}
