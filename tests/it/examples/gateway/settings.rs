//! Environment variables of the gateway.

use std::fs;
use std::path::PathBuf;

use super::{Caller, Gateway, usage_of};
use crate::curl::replay;
use crate::examples::process::{Example, ended, refuses};
use crate::examples::quickstart::commands;

const GATEWAY_TOML: &str = include_str!("../../../../examples/gateway/gateway.toml");

/// Writes a temporary file.
pub(super) fn file(name: &str, text: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = directory.join(format!("gateway-{}-{name}", std::process::id()));
    fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn invalid_values_are_rejected_by_name() {
    const NETWORKS: &str = "networks or addresses, separated by commas";
    let wrong = [
        ("JWT_SECRET", "", "not empty and not a PEM text"),
        ("JWT_SECRET", "-----BEGIN PUBLIC KEY-----", "not a PEM text"),
        ("TRUSTED_PROXIES", "localhost", NETWORKS),
        ("TRUSTED_PROXIES", "10.0.0.0/8,10.0.0.0/33", NETWORKS),
        ("TRUSTED_PROXIES", "127.0.0.1;10.0.0.1", NETWORKS),
        ("ADMIN_TOKEN", "", "at least 8 visible ASCII characters"),
        ("ADMIN_TOKEN", "hush hush hush", "without spaces"),
        ("ADMIN_TOKENS", "alice:write:short", "name:role:secret"),
        (
            "ADMIN_TOKENS",
            "alice:admin:a-secret-of-alice",
            "read or write",
        ),
        (
            "ADMIN_TOKENS",
            "alice:write:a-secret-of-alice,alice:read:another-secret",
            "names and secrets differ",
        ),
        (
            "ADMIN_TOKENS",
            "alice:write:the-same-secret,bob:read:the-same-secret",
            "names and secrets differ",
        ),
        ("ADMIN_TOKENS", "a-secret-of-alice", "name:role:secret"),
        ("REDIS_URL", "127.0.0.1:6379", "redis://"),
        ("REDIS_URL", "redis+tls://127.0.0.1:6379", "redis://"),
        ("TOLLGATE_CONFIG", "", "the path of a policy file"),
        (
            "TOLLGATE_CONFIG",
            "no-such-file.toml",
            "the path of a policy file",
        ),
    ];
    refuses("gateway", &wrong).await;
}

/// Bug: the gateway ended with code 1, and the error named no variable.
#[tokio::test]
async fn admin_secret_in_both_variables_is_rejected_by_name() {
    let variables = [
        ("ADMIN_TOKEN", "hush-hush"),
        (
            "ADMIN_TOKENS",
            "alice:write:another-secret,bob:read:hush-hush",
        ),
    ];
    let end = ended("gateway", &variables).await;
    assert_eq!((end.code, &*end.stdout), (Some(2), ""), "{}", end.stderr);
    let expected =
        "ADMIN_TOKENS=\"…\" cannot be used. Allowed: other secrets than that of ADMIN_TOKEN.";
    assert!(end.stderr.contains(expected), "{}", end.stderr);
    for secret in ["hush-hush", "another-secret"] {
        assert!(!end.stderr.contains(secret), "{}", end.stderr);
    }
}

#[tokio::test]
async fn invalid_file_is_rejected_with_all_its_errors() {
    let wrong = GATEWAY_TOML
        .replace("limit = \"60/hour\"", "limit = \"60/fortnight\"")
        .replace("category = \"ai\"", "category = \"ia\"");
    let path = file("wrong.toml", &wrong);
    let end = ended("gateway", &[("TOLLGATE_CONFIG", path.to_str().unwrap())]).await;
    assert_eq!((end.code, &*end.stdout), (Some(2), ""));
    for expected in ["TOLLGATE_CONFIG=", "60/fortnight", "`ia`", "ai"] {
        assert!(end.stderr.contains(expected), "{}", end.stderr);
    }
}

/// The message named the file instead of the variable.
#[tokio::test]
async fn the_message_for_a_wrong_variable_names_the_variable() {
    let end = ended("gateway", &[("TOLLGATE_GLOBAL__ANONYMOUS", "5/eon")]).await;
    assert_eq!((end.code, &*end.stdout), (Some(2), ""));
    let expected = "TOLLGATE_GLOBAL__ANONYMOUS=5/eon";
    assert!(end.stderr.contains(expected), "{}", end.stderr);
    assert!(!end.stderr.contains("TOLLGATE_CONFIG"), "{}", end.stderr);
}

#[tokio::test]
async fn another_file_has_other_limits() {
    let path = file("other.toml", "[global]\nanonymous = \"7/minute\"\n");
    let gateway = Gateway::start_with(&[("TOLLGATE_CONFIG", path.to_str().unwrap())]).await;
    let answer = gateway.send("GET /v1/secrets", &Caller::anonymous(1)).await;
    assert_eq!(usage_of(&answer), ("ip:global:1m", 7, 6));
}

#[tokio::test]
async fn single_settings_come_from_the_environment() {
    let variables = [
        ("TOLLGATE_GLOBAL__ANONYMOUS", "50/hour"),
        ("TOLLGATE_CATEGORIES__SECRETS__LIMIT", "20/hour"),
    ];
    let gateway = Gateway::start_with(&variables).await;
    let answer = gateway
        .send("GET /v1/projects", &Caller::anonymous(1))
        .await;
    assert_eq!(usage_of(&answer), ("ip:global:1h", 50, 49));
    let caller = Caller::user("alice", "team");
    let answer = gateway.send("GET /v1/secrets", &caller).await;
    assert_eq!(usage_of(&answer), ("user:secrets:1h", 100, 99));

    let end = ended("gateway", &[("TOLLGATE_GLOBAL__ANONYMOUS", "many")]).await;
    assert_eq!((end.code, &*end.stdout), (Some(2), ""));
    assert!(
        end.stderr.contains("TOLLGATE_GLOBAL__ANONYMOUS"),
        "{}",
        end.stderr
    );
}

/// Forwarding headers of a peer that is no trusted proxy are ignored.
#[tokio::test]
async fn forwarding_headers_count_only_from_trusted_proxies() {
    for proxies in [
        &[][..],
        &[("TRUSTED_PROXIES", "")],
        &[("TRUSTED_PROXIES", "10.0.0.0/8")],
    ] {
        let example = Example::start("gateway", proxies).await;
        let client = example.version_1();
        for (number, left) in (1..=3).zip([9, 8, 7]) {
            let forwarded = format!("203.0.113.{number}");
            let headers = [("x-forwarded-for", &*forwarded)];
            let answer = client.send("POST /auth/v1/token", &headers).await;
            assert_eq!(usage_of(&answer), ("ip:login:1h", 10, left), "{proxies:?}");
        }
    }
}

#[tokio::test]
async fn the_commands_in_its_documentation_work() {
    let mut example = Example::start("gateway", &[]).await;
    let [secret, assistant, logins] = commands(&mut example).await;
    let answers = replay(example.address(), &secret).await;
    assert_eq!(answers[0].status, 200);
    assert_eq!(usage_of(&answers[0]), ("user:secrets:1h", 2_500, 2_499));
    let answers = replay(example.address(), &assistant).await;
    assert_eq!(usage_of(&answers[0]), ("user:mcp-get:1h", 1_000, 999));
    let answers = replay(example.address(), &logins).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [[200; 10].as_slice(), &[429]].concat());
}

#[tokio::test]
async fn only_the_development_secret_is_printed() {
    for (variables, is_printed) in [(&[][..], true), (&[("JWT_SECRET", "hush-hush")], false)] {
        let mut example = Example::start("gateway", variables).await;
        let mut printed = String::new();
        while !printed.contains("curl") {
            printed += &example.line().await;
        }
        assert_eq!(
            printed.contains("JWT_SECRET is not set"),
            is_printed,
            "{printed}"
        );
        assert!(!printed.contains("hush-hush"), "{printed}");
    }
}

/// Tokens with names replace the random one.
#[tokio::test]
async fn admin_tokens_of_the_environment_have_roles() {
    let tokens = "alice:write:secret-of-alice,grafana:read:secret-of-grafana";
    let mut example = Example::start("gateway", &[("ADMIN_TOKENS", tokens)]).await;
    loop {
        let line = example.line().await;
        assert!(
            !line.contains("Token of this run") && !line.contains("secret-of"),
            "{line}"
        );
        if line.contains("/v1/rate-limits/status") {
            break;
        }
    }
    let client = example.version_1();
    for (secret, reads, changes) in [
        ("secret-of-alice", 200, 409),
        ("secret-of-grafana", 200, 403),
        ("secret-of-mallory", 401, 401),
    ] {
        let bearer = format!("Bearer {secret}");
        let headers = [("authorization", &*bearer)];
        let answer = client.send("GET /admin/api/statistics", &headers).await;
        assert_eq!(answer.status, reads, "{secret}");
        let answer = client.send("POST /admin/api/reload", &headers).await;
        assert_eq!(
            answer.status == 403,
            changes == 403,
            "{secret}: {}",
            answer.body
        );
    }
}
