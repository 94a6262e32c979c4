//! Admin tokens with names and roles.

use tollgate::RateLimitLayer;
use tollgate::admin::{Admin, AdminRole, Status};

use super::{Served, assert_rejected};
use crate::browser::Browser;
use crate::support::http::layer;
use crate::support::log::Log;

const WRITER: &str = "secret-of-the-writer";
const READER: &str = "secret-of-the-reader";

async fn served() -> Served {
    let (builder, clock) = layer("100/hour");
    let limits = builder.build().unwrap();
    let admin = Admin::new(&limits)
        .token("alice", AdminRole::Write, WRITER)
        .token("grafana", AdminRole::Read, READER);
    Served::with(limits.clone(), clock, Status::new(&limits), admin).await
}

const CHANGES: [(&str, &str); 5] = [
    ("reset", r#"{"subject":{"user":"bob"}}"#),
    (
        "overrides",
        r#"{"subject":{"user":"bob"},"rule":"global","limit":"5/hour"}"#,
    ),
    (
        "overrides/remove",
        r#"{"subject":{"user":"bob"},"rule":"global"}"#,
    ),
    ("maintenance", r#"{"until":"2025-01-01T00:10:00Z"}"#),
    ("reload", ""),
];

/// Returns the actions in the audit events.
fn actions(log: &Log) -> Vec<String> {
    let events = log.about("rate_limit_admin");
    let action = |event: &String| {
        let (_, rest) = event.split_once("action=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    events.iter().map(action).collect()
}

#[tokio::test]
async fn token_with_the_role_read_reads_everything_and_changes_nothing() {
    let (log, _listening) = Log::listen();
    let served = served().await;
    let bearer = format!("Bearer {READER}");
    let headers = [("authorization", &*bearer)];
    for path in ["statistics", "policy", "overrides", "maintenance"] {
        let answer = served
            .client
            .send(&format!("GET /admin/api/{path}"), &headers)
            .await;
        assert_eq!(answer.status, 200, "{path}");
    }
    let look_up = r#"{"subject":{"user":"bob"}}"#;
    let answer = served.post_with(READER, "lookup", look_up).await;
    assert_eq!(answer.status, 200);
    for (path, body) in CHANGES {
        let answer = served.post_with(READER, path, body).await;
        let message = assert_rejected(&answer, 403, "FORBIDDEN");
        assert!(message.contains("role `write`"), "{message}");
    }
    assert_eq!(actions(&log), ["look-up"]);
}

#[tokio::test]
async fn every_change_is_logged_with_the_name_of_the_token() {
    let (log, _listening) = Log::listen();
    let served = served().await;
    // A layer without a policy file cannot be reloaded.
    for (path, body) in &CHANGES[..4] {
        let answer = served.post_with(WRITER, path, body).await;
        assert!(answer.status < 300, "{path}: {}", answer.body);
    }
    let changes = ["reset", "override", "remove-override", "maintenance"];
    assert_eq!(actions(&log), changes);
    for event in log.about("rate_limit_admin") {
        assert!(event.contains(r#"actor="alice""#), "{event}");
    }
    assert!(!log.text().contains(WRITER));
}

#[tokio::test]
async fn statistics_have_the_role_of_the_token() {
    let served = served().await;
    for (secret, role) in [(WRITER, "write"), (READER, "read")] {
        let bearer = format!("Bearer {secret}");
        let headers = [("authorization", &*bearer)];
        let answer = served
            .client
            .send("GET /admin/api/statistics", &headers)
            .await;
        assert_eq!(answer.json()["role"], role);
    }
}

/// The page showed forms and buttons that all got 403.
#[tokio::test(flavor = "multi_thread")]
async fn page_offers_no_change_to_a_token_with_the_role_read() {
    let served = served().await;
    let page = format!("http://{}/admin", served.address);
    let offered = "[...document.querySelectorAll('[data-changes], .danger')] \
                   .filter((element) => element.checkVisibility()).length";
    for (secret, may_change) in [(READER, false), (WRITER, true)] {
        let mut browser = Browser::open(&page, (1280, 900), "light").await;
        browser.sign_in(secret).await;
        browser.write("#value", "bob").await;
        browser.press("Enter").await;
        browser.until_shows("#found h2", "user bob").await;
        let offered = browser.value(offered).await.as_u64().unwrap();
        assert_eq!(offered > 0, may_change, "{offered}");
        let note = "document.querySelector('[data-read-only]').checkVisibility()";
        assert_eq!(browser.value(note).await, !may_change);
        browser.close().await;
    }
}

#[test]
fn tokens_need_different_names_and_secrets() {
    let limits = RateLimitLayer::new("1/hour").unwrap();
    let problems = |admin: Admin| admin.router().unwrap_err().to_string();
    let writer = || Admin::new(&limits).token("alice", AdminRole::Write, WRITER);
    let same_name = problems(writer().token("alice", AdminRole::Read, READER));
    assert!(same_name.contains("one token for each name"), "{same_name}");
    let same_secret = problems(writer().token("bob", AdminRole::Read, WRITER));
    assert!(same_secret.contains("another secret"), "{same_secret}");
    let shared = problems(writer().shared_token(WRITER));
    assert!(shared.contains("another secret"), "{shared}");
    let all = problems(writer().token("", AdminRole::Read, READER).token(
        "carol",
        AdminRole::Read,
        "short",
    ));
    assert_eq!(all.lines().count(), 2, "{all}");
    for text in [same_name, same_secret, shared, all] {
        assert!(!text.contains(WRITER) && !text.contains("short"), "{text}");
    }
}
