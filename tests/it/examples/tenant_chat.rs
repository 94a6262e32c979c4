//! The multi-tenant chat: which limits apply, and that tenants do not affect each other.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};
use tollgate::identity::Jwt;
use tower::ServiceExt;

use super::process::{Example, ended, refuses};
use super::quickstart::commands;
use super::send_json;
use crate::curl::replay;
use crate::support::http::Answer;
use crate::support::sockets::Client;

/// The program itself, for requests from addresses that are not those of this machine.
#[path = "../../../examples/tenant_chat.rs"]
#[allow(
    dead_code,
    unexpected_cfgs,
    reason = "only `POST /check` is tested here"
)]
mod program;

const SECRET: &str = "the secret of these tests";
const DEFAULT_SECRET: &str = "development-only secret";

/// Writes a temporary file.
fn file(text: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = directory.join(format!("tenants-{}-{number}.json", std::process::id()));
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// A bearer token with these claims, signed with this secret.
fn bearer(secret: &str, mut claims: Value) -> String {
    claims["exp"] = json!(seconds() + 3_600);
    let key = EncodingKey::from_secret(secret.as_bytes());
    format!(
        "Bearer {}",
        encode(&Header::default(), &claims, &key).unwrap()
    )
}

fn user(tenant: &str, name: &str) -> String {
    bearer(SECRET, json!({ "sub": name, "tenant_id": tenant }))
}

struct Chat {
    _example: Example,
    client: Client,
}

impl Chat {
    /// Starts it with tenants: name, requests per minute, burst.
    async fn start(tenants: &[(&str, u64, u64)]) -> Self {
        Self::start_with(tenants, &[]).await
    }

    async fn start_with(tenants: &[(&str, u64, u64)], variables: &[(&str, &str)]) -> Self {
        let limits = |&(name, per_minute, burst): &(&str, u64, u64)| {
            let limits = json!({ "rateLimit": { "perMinute": per_minute, "burst": burst } });
            (name.to_owned(), limits)
        };
        let config: Value = tenants
            .iter()
            .map(limits)
            .collect::<serde_json::Map<_, _>>()
            .into();
        let config = file(&config.to_string());
        let own = [("TENANT_CONFIG", config.as_str()), ("JWT_SECRET", SECRET)];
        let example = Example::start("tenant_chat", &[&own, variables].concat()).await;
        Self {
            client: example.version_1(),
            _example: example,
        }
    }

    async fn post(&self, headers: &[(&str, &str)]) -> Answer {
        let message = json!({ "message": "how are you?" });
        let answer = send_json(&self.client, "POST /chat", headers, &message).await;
        if answer.status == 200 {
            assert_eq!(answer.json(), json!({ "reply": "how are you?" }));
        }
        answer
    }

    async fn chat_as(&self, token: &str) -> Answer {
        self.post(&[("authorization", token)]).await
    }

    /// Sends this many messages, and one more that is denied with this limit.
    async fn exhaust(&self, token: &str, times: u64, limit: u64) {
        for left in (0..times).rev() {
            let answer = self.chat_as(token).await;
            assert_eq!(answer.status, 200, "{left} left");
            assert!(answer.number("x-ratelimit-remaining") >= left);
        }
        let denied = self.chat_as(token).await;
        assert_eq!(denied.status, 429);
        assert_eq!(denied.number("x-ratelimit-limit"), limit);
        assert_eq!(denied.number("x-ratelimit-remaining"), 0);
    }
}

#[tokio::test]
async fn the_tighter_of_minute_and_burst_applies() {
    // For acme the minute is tighter, for the others the burst.
    let chat = Chat::start(&[("default", 3, 2), ("acme", 3, 50), ("duo", 3, 2)]).await;
    for left in (0..3).rev() {
        let answer = chat.chat_as(&user("acme", "alice")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.number("x-ratelimit-limit"), 3);
        assert_eq!(answer.number("x-ratelimit-remaining"), left);
        let reset = answer.number("x-ratelimit-reset");
        assert!((seconds()..=seconds() + 61).contains(&reset), "{reset}");
        let policy = answer.header("x-ratelimit-policy");
        assert_eq!(policy, Some("tenant+user:global:1m"));
    }
    let denied = chat.chat_as(&user("acme", "alice")).await;
    assert_eq!(denied.status, 429);
    assert!((1..=60).contains(&denied.number("retry-after")));
    assert_eq!(denied.number("x-ratelimit-limit"), 3);
    let policy = denied.header("x-ratelimit-policy");
    assert_eq!(policy, Some("tenant+user:global:1m"));
    for tenant in ["duo", "unknown-tenant"] {
        chat.exhaust(&user(tenant, "alice"), 2, 2).await;
    }
}

/// Bug: allowed responses reported the burst, whose remaining amount is smaller.
#[tokio::test]
async fn responses_report_the_limit_per_minute_unless_the_burst_denies() {
    let chat = Chat::start(&[("default", 60, 2), ("public", 30, 1)]).await;
    let alice = user("acme", "alice");
    for left in [59, 58] {
        let answer = chat.chat_as(&alice).await;
        assert_eq!(answer.number("x-ratelimit-limit"), 60);
        assert_eq!(answer.number("x-ratelimit-remaining"), left);
        let policy = answer.header("x-ratelimit-policy");
        assert_eq!(policy, Some("tenant+user:global:1m"));
    }
    let denied = chat.chat_as(&alice).await;
    assert_eq!(denied.status, 429);
    assert_eq!(denied.number("x-ratelimit-limit"), 2);
    assert_eq!(denied.number("x-ratelimit-remaining"), 0);
    let policy = denied.header("x-ratelimit-policy");
    assert_eq!(policy, Some("tenant+user:burst:1m"));
    assert_eq!(
        denied.json()["error"]["details"]["policy"],
        "tenant+user:burst:1m"
    );

    let allowed = chat.post(&[]).await;
    assert_eq!(allowed.number("x-ratelimit-limit"), 30);
    assert_eq!(allowed.header("x-ratelimit-policy"), Some("ip:global:1m"));
    let denied = chat.post(&[]).await;
    assert_eq!(denied.number("x-ratelimit-limit"), 1);
    assert_eq!(denied.header("x-ratelimit-policy"), Some("ip:burst:1m"));
}

/// A request of the limiter object: `{limit, windowSec}` -> `{allowed, remaining, resetAt}`.
async fn checked(chat: &Chat, token: &str, limit: u64, window: u64) -> (bool, u64) {
    let request = json!({ "limit": limit, "windowSec": window });
    let headers: &[(&str, &str)] = if token.is_empty() {
        &[]
    } else {
        &[("authorization", token)]
    };
    let before = seconds() * 1_000;
    let answer = send_json(&chat.client, "POST /check", headers, &request).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let body = answer.json();
    assert_eq!(body.as_object().unwrap().len(), 3, "{body}");
    let reset_at = body["resetAt"].as_u64().unwrap();
    let latest = (seconds() + 1 + window) * 1_000;
    assert!(
        (before..=latest).contains(&reset_at),
        "{reset_at} is not in {before}..={latest}"
    );
    (
        body["allowed"].as_bool().unwrap(),
        body["remaining"].as_u64().unwrap(),
    )
}

#[tokio::test]
async fn check_counts_in_a_window_that_the_request_names() {
    let chat = Chat::start(&[("default", 60, 2)]).await;
    let alice = user("acme", "alice");
    for left in [2, 1, 0] {
        assert_eq!(checked(&chat, &alice, 3, 3_600).await, (true, left));
    }
    assert_eq!(checked(&chat, &alice, 3, 3_600).await, (false, 0));
    // The timestamps stay: another limit applies to the same requests.
    assert_eq!(checked(&chat, &alice, 5, 3_600).await, (true, 1));
    assert_eq!(checked(&chat, &alice, 2, 3_600).await, (false, 0));
    // Other members, and callers without a valid token, have counters of their own.
    let forged = bearer(
        "another secret",
        json!({ "sub": "alice", "tenant_id": "acme" }),
    );
    for other in [&user("acme", "bob"), &user("globex", "alice"), &forged] {
        assert_eq!(checked(&chat, other, 3, 3_600).await, (true, 2));
    }
    assert_eq!(
        checked(&chat, "", 3, 3_600).await,
        (true, 1),
        "the address of the forged token"
    );
    // A check is no message.
    assert_eq!(
        chat.chat_as(&alice).await.number("x-ratelimit-remaining"),
        59
    );
}

#[tokio::test]
async fn check_allows_again_when_the_oldest_request_leaves_the_window() {
    let chat = Chat::start(&[("default", 60, 2)]).await;
    let alice = user("acme", "alice");
    while checked(&chat, &alice, 1, 1).await.0 {}
    while !checked(&chat, &alice, 1, 1).await.0 {}
}

#[tokio::test]
async fn wrong_checks_are_rejected_with_the_reason() {
    let chat = Chat::start(&[("default", 60, 2)]).await;
    for (request, why) in [
        (json!({}), "missing field `limit`"),
        (json!({ "limit": 3 }), "missing field `windowSec`"),
        (
            json!({ "limit": 0, "windowSec": 60 }),
            "limit is 0. Allowed: a whole number from 1 to 1000",
        ),
        (json!({ "limit": 1_001, "windowSec": 60 }), "limit is 1001."),
        (json!({ "limit": -1, "windowSec": 60 }), "-1"),
        (
            json!({ "limit": 3, "windowSec": 0 }),
            "windowSec is 0. Allowed: a whole number from 1 to 3600",
        ),
        (
            json!({ "limit": 3, "windowSec": 3_601 }),
            "windowSec is 3601.",
        ),
        (
            json!({ "limit": 3, "windowSec": 60, "user": "bob" }),
            "unknown field `user`",
        ),
    ] {
        let answer = send_json(&chat.client, "POST /check", &[], &request).await;
        assert_eq!(answer.status, 400, "{request}");
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(why), "{request}: {error}");
    }
}

/// Sends a check of three per hour from a client IP.
async fn check_from(app: &Router, ip: &str) -> Answer {
    let mut request = Request::post("/check")
        .body(Body::from(r#"{ "limit": 3, "windowSec": 3600 }"#))
        .unwrap();
    let peer = SocketAddr::new(ip.parse().unwrap(), 50_000);
    request.extensions_mut().insert(ConnectInfo(peer));
    Answer::read(app.clone().oneshot(request).await.unwrap()).await
}

/// Bug: each of the 2^64 addresses of a customer had a counter of its own.
#[tokio::test]
async fn check_counts_ipv6_callers_per_network() {
    let tokens = Jwt::hs256(SECRET).build().unwrap();
    let app = program::checks(Arc::new(tokens)).await.unwrap();
    for (ip, left) in [
        ("2001:db8::1", 2),
        ("2001:db8::ffff:ffff:ffff:ffff", 1),
        ("2001:db8:0:1::1", 2),
        ("::ffff:203.0.113.9", 2),
        ("203.0.113.9", 1),
        ("203.0.113.10", 2),
    ] {
        let answer = check_from(&app, ip).await;
        assert_eq!(answer.status, 200, "{ip}: {}", answer.body);
        assert_eq!(answer.json()["remaining"], left, "{ip}");
    }
}

/// Bug: only `/chat` limited wrong tokens.
#[tokio::test]
async fn wrong_tokens_are_limited_by_check_and_by_chat() {
    let chat = Chat::start(&[("default", 1_000, 1_000)]).await;
    let check = json!({ "limit": 1_000, "windowSec": 3_600 });
    let message = json!({ "message": "how are you?" });
    for (line, body) in [("POST /check", &check), ("POST /chat", &message)] {
        for number in 0..=60 {
            let claims = json!({ "sub": "alice", "tenant_id": "acme", "try": number });
            let forged = bearer("another secret", claims);
            let headers = [("authorization", &*forged)];
            let answer = send_json(&chat.client, line, &headers, body).await;
            if number < 60 {
                assert_eq!(answer.status, 200, "{line} {number}: {}", answer.body);
                continue;
            }
            assert_eq!(answer.status, 429, "{line}: {}", answer.body);
            let policy = answer.header("x-ratelimit-policy");
            assert_eq!(policy, Some("ip:invalid-credentials:1m"), "{line}");
        }
        // Callers with a valid token, and without one, are not affected.
        for token in [user("acme", "alice"), user("globex", "bob")] {
            let headers = [("authorization", &*token)];
            let answer = send_json(&chat.client, line, &headers, body).await;
            assert_eq!(answer.status, 200, "{line}: {}", answer.body);
        }
        let answer = send_json(&chat.client, line, &[], body).await;
        assert_eq!(answer.status, 200, "{line}: {}", answer.body);
    }
}

/// The burst refills at the rate of the minute.
#[tokio::test]
async fn the_burst_bounds_messages_at_once() {
    let chat = Chat::start(&[("default", 3, 2)]).await;
    chat.exhaust(&user("acme", "alice"), 2, 2).await;
    let denied = chat.chat_as(&user("acme", "alice")).await;
    // Three per minute: one every 20 seconds.
    assert!((1..=20).contains(&denied.number("retry-after")));
}

#[tokio::test]
async fn tenants_and_users_never_affect_each_other() {
    let chat = Chat::start(&[("default", 1, 1), ("acme", 2, 2)]).await;
    chat.exhaust(&user("acme", "alice"), 2, 2).await;
    for (tenant, name, limit) in [
        ("acme", "bob", 2),
        ("globex", "alice", 1),
        // Names that are equal when tenant and user are concatenated.
        ("acme:ratelimit", "alice", 1),
        ("acme", "ratelimit:alice", 2),
    ] {
        chat.exhaust(&user(tenant, name), limit, limit).await;
    }
    // A user without a tenant has a counter of its own.
    let of_none = bearer(SECRET, json!({ "sub": "alice" }));
    chat.exhaust(&of_none, 1, 1).await;
}

#[tokio::test]
async fn unauthenticated_callers_are_counted_per_ip_in_tenant_public() {
    for (tenants, limit) in [
        (&[("default", 1, 1), ("public", 3, 3)][..], 3),
        (&[("default", 2, 2)], 2),
    ] {
        let chat = Chat::start(tenants).await;
        for left in (0..limit).rev() {
            let answer = chat.post(&[]).await;
            assert_eq!(answer.status, 200);
            assert_eq!(answer.number("x-ratelimit-remaining"), left);
            assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:global:1m"));
        }
        assert_eq!(chat.post(&[]).await.status, 429);
        // A forged token selects no other counter.
        let forged = bearer(
            "another secret",
            json!({ "sub": "alice", "tenant_id": "acme" }),
        );
        assert_eq!(chat.chat_as(&forged).await.status, 429);
        assert_eq!(chat.chat_as(&user("public", "alice")).await.status, 200);
    }
}

#[tokio::test]
async fn a_denial_has_the_trace_id_in_its_envelope() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let chat = Chat::start(&[("default", 1, 1)]).await;
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let token = user("acme", "alice");
    let headers = [("authorization", &*token), ("traceparent", &*parent)];
    assert_eq!(chat.post(&headers).await.status, 200);
    let denied = chat.post(&headers).await;
    assert_eq!(denied.status, 429);
    let error = &denied.json()["error"];
    assert_eq!(error["code"], "RATE_LIMIT_EXCEEDED");
    assert_eq!(error["request_id"], TRACE);
    assert_eq!(error["details"]["limit"], 1);
    assert_eq!(
        error["details"]["retry_after"],
        denied.number("retry-after")
    );
    assert_eq!(denied.header("x-request-id"), Some(TRACE));
    assert!(!denied.body.contains("alice") && !denied.body.contains("acme"));
}

#[tokio::test]
async fn invalid_tenant_files_are_rejected_with_the_reason() {
    let limit = |limit: Value| json!({ "default": { "rateLimit": limit } }).to_string();
    let good = json!({ "rateLimit": { "perMinute": 60, "burst": 10 } });
    for (text, why) in [
        ("{".to_owned(), "EOF"),
        ("[]".to_owned(), "expected a map"),
        ("{}".to_owned(), "there is no tenant `default`"),
        (json!({ "acme": good }).to_string(), "no tenant `default`"),
        (
            json!({ "default": {} }).to_string(),
            "missing field `rateLimit`",
        ),
        (limit(json!({ "perMinute": 60 })), "missing field `burst`"),
        (limit(json!({ "burst": 60 })), "missing field `perMinute`"),
        (limit(json!({ "perMinute": 0, "burst": 1 })), "quota limit"),
        (limit(json!({ "perMinute": 1, "burst": 0 })), "quota burst"),
        (
            limit(json!({ "perMinute": -1, "burst": 1 })),
            "integer `-1`",
        ),
        (limit(json!({ "perMinute": 1.5, "burst": 1 })), "1.5"),
        (
            limit(json!({ "perMinute": "60", "burst": 1 })),
            "expected u64",
        ),
        (
            limit(json!({ "perMinute": 200_000, "burst": 1 })),
            "at most 100000",
        ),
        (
            limit(json!({ "perMinute": 1, "burst": 1, "perHour": 1 })),
            "perHour",
        ),
        (
            json!({ "default": good, "acme": { "rateLimit": { "perMinute": 0, "burst": 1 } } })
                .to_string(),
            "acme: ",
        ),
    ] {
        let path = file(&text);
        let end = ended("tenant_chat", &[("TENANT_CONFIG", &path)]).await;
        assert_eq!((end.code, &*end.stdout), (Some(2), ""), "{text}");
        for expected in [&format!("TENANT_CONFIG={path:?}"), why, "perMinute"] {
            assert!(end.stderr.contains(expected), "{text}: {}", end.stderr);
        }
    }
}

#[tokio::test]
async fn invalid_values_are_rejected_by_name() {
    let form = "a file of the form";
    refuses(
        "tenant_chat",
        &[
            ("TENANT_CONFIG", "", form),
            ("TENANT_CONFIG", "no-such-file.json", form),
            ("JWT_SECRET", "", "not empty and not a PEM text"),
        ],
    )
    .await;
}

/// Any number of tenants; unknown keys of a tenant are ignored.
#[tokio::test]
async fn a_file_may_have_many_tenants() {
    let limits = |number: u64| {
        let limits = json!({ "perMinute": 1 + number % 7, "burst": 1 + number % 5 });
        json!({ "name": "Tenant", "rateLimit": limits })
    };
    let tenants = (0..2_000).map(|number| (format!("tenant-{number}"), limits(number)));
    let mut tenants: serde_json::Map<_, _> = tenants.collect();
    tenants.insert("default".to_owned(), limits(0));
    let path = file(&Value::from(tenants).to_string());
    let variables = [("TENANT_CONFIG", path.as_str()), ("JWT_SECRET", SECRET)];
    let example = Example::start("tenant_chat", &variables).await;
    let client = example.version_1();
    let token = user("tenant-1004", "alice");
    let answer = client
        .send("POST /chat", &[("authorization", &token)])
        .await;
    // 1 + 1004 % 7 and 1 + 1004 % 5: the minute is the tighter one.
    assert_eq!(answer.number("x-ratelimit-limit"), 4);
}

#[tokio::test]
async fn the_commands_in_its_documentation_work() {
    let mut example = Example::start("tenant_chat", &[]).await;
    let [alice, unauthenticated] = commands(&mut example).await;
    let answers = replay(example.address(), &alice).await;
    assert_eq!(answers[0].status, 200);
    assert_eq!(answers[0].number("x-ratelimit-limit"), 60);
    let answers = replay(example.address(), &unauthenticated).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
    let known = bearer(
        DEFAULT_SECRET,
        json!({ "sub": "bob", "tenant_id": "other" }),
    );
    let client = example.version_1();
    let answer = client
        .send("POST /chat", &[("authorization", &known)])
        .await;
    assert_eq!(answer.number("x-ratelimit-limit"), 30);
}

#[tokio::test]
async fn two_chats_share_one_limit() {
    let mut redis = crate::redis::Server::start();
    let url = redis.url();
    let (tenants, variables) = ([("default", 4, 4)], [("REDIS_URL", url.as_str())]);
    let one = Chat::start_with(&tenants, &variables).await;
    let other = Chat::start_with(&tenants, &variables).await;
    let token = user("acme", "alice");
    for left in (0..4).rev() {
        let chat = if left % 2 == 0 { &one } else { &other };
        let answer = chat.chat_as(&token).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.number("x-ratelimit-remaining"), left);
    }
    for chat in [&one, &other] {
        assert_eq!(chat.chat_as(&token).await.status, 429);
        assert_eq!(chat.chat_as(&user("globex", "alice")).await.status, 200);
    }
    redis.assert_that_every_key_ends();

    // Without Redis, each process counts by itself.
    redis.kill();
    for chat in [&one, &other] {
        chat.exhaust(&user("initech", "bob"), 4, 4).await;
    }
}
