//! What is told as events: names, fields, and how often.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tollgate::RateLimitLayerBuilder;
use tollgate::policy::{Count, Policy, Rule};

use super::Scene;
use super::statistics::scripted;
use crate::support::http::{layer, send};
use crate::support::log::Log;
use crate::support::scripted_store::{Script, ScriptedStore};

fn policy() -> Policy {
    Policy::builder()
        .authenticated("100/hour")
        .endpoint("GET /items/{id}", Rule::new("5/hour").name("items"))
        .build()
        .unwrap()
}

/// What a field says in a line.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let (_, rest) = line
        .split_once(&format!(" {name}="))
        .unwrap_or_else(|| panic!("no {name} in {line}"));
    rest.split(' ').next().unwrap().trim_matches('"')
}

fn number(line: &str, name: &str) -> u64 {
    field(line, name).parse().unwrap()
}

#[tokio::test]
async fn events_have_the_names_and_fields_that_are_promised() {
    let (log, _listening) = Log::listen();
    let scene = Scene::new(policy());
    for _ in 0..6 {
        scene.user("GET /items/4711", "alice").await;
    }
    let allowed = log.about("rate_limit_allowed");
    assert_eq!(allowed.len(), 5);
    assert!(allowed[0].contains("DEBUG tollgate: "), "{}", allowed[0]);

    let warned = log.about("rate_limit_warning");
    assert_eq!(warned.len(), 1, "at four of five, and not again at five");
    let warned = &warned[0];
    assert!(warned.contains(" INFO tollgate: "), "{warned}");
    for (name, value) in [
        ("policy", "user:items:1h"),
        ("endpoint", "/items/{id}"),
        ("method", "GET"),
        ("limit", "5"),
        ("used", "4"),
        ("remaining", "1"),
        ("window", "3600"),
        ("untold", "0"),
    ] {
        assert_eq!(field(warned, name), value, "{name}");
    }

    let exceeded = log.about("rate_limit_exceeded");
    assert_eq!(exceeded.len(), 1);
    let exceeded = &exceeded[0];
    assert!(exceeded.contains(" WARN tollgate: "), "{exceeded}");
    for (name, value) in [
        ("policy", "user:items:1h"),
        ("endpoint", "/items/{id}"),
        ("method", "GET"),
        ("limit", "5"),
        ("used", "5"),
        ("window", "3600"),
        ("untold", "0"),
        ("untold_others", "0"),
    ] {
        assert_eq!(field(exceeded, name), value, "{name}");
    }
    assert!(number(exceeded, "retry_after") > 0);
    assert!(field(exceeded, "request_id").starts_with("req_"));
    let name = field(exceeded, "identity");
    assert!(name.starts_with("user#") && name.len() == 21, "{name}");
    assert_eq!(name, field(warned, "identity"), "the same caller");
    assert!(!log.text().contains("alice"), "{}", log.text());
    assert!(!log.text().contains("4711"), "{}", log.text());
}

#[tokio::test]
async fn whoever_hammers_is_told_of_every_ten_seconds_with_what_was_not() {
    let (log, _listening) = Log::listen();
    let scene = Scene::new("blocked");
    // Ten times a second, for half a minute.
    for _ in 0..300 {
        scene.user("GET /", "alice").await;
        scene.clock.advance(Duration::from_millis(100));
    }
    scene.user("GET /", "bob").await;
    let told = log.about("rate_limit_exceeded");
    let untold: Vec<u64> = told.iter().map(|line| number(line, "untold")).collect();
    assert_eq!(untold, [0, 99, 99, 0], "the last one is somebody else");
    scene.user("GET /", "alice").await;
    let told = log.about("rate_limit_exceeded");
    assert_eq!(number(told.last().unwrap(), "untold"), 99);
    assert_eq!(scene.limits.statistics().totals.denied, 302);
}

#[tokio::test]
async fn an_attack_from_everywhere_does_not_fill_the_disk() {
    let (log, _listening) = Log::listen();
    let scene = Scene::new("blocked");
    for number in 0..3_000 {
        scene.address("GET /", number).await;
    }
    assert_eq!(log.about("rate_limit_exceeded").len(), 100);
    scene.clock.advance(Duration::from_secs(1));
    scene.address("GET /", 3_000).await;
    let told = log.about("rate_limit_exceeded");
    assert_eq!(told.len(), 101);
    let last = told.last().unwrap();
    assert_eq!(
        (number(last, "untold"), number(last, "untold_others")),
        (0, 2_900)
    );
}

#[tokio::test]
async fn names_are_plain_or_under_a_key_if_that_is_wanted() {
    let told = async |settings: fn(RateLimitLayerBuilder) -> RateLimitLayerBuilder| {
        let (log, _listening) = Log::listen();
        let scene = Scene::with("blocked", settings);
        scene.user("GET /", "alice").await;
        scene.address("GET /", 1).await;
        let lines = log.about("rate_limit_exceeded");
        let names = lines.iter().map(|line| field(line, "identity").to_owned());
        names.collect::<Vec<_>>()
    };
    let plain = told(RateLimitLayerBuilder::log_plain_identities).await;
    assert_eq!(plain, ["user=alice", "ip=10.0.0.1"]);
    let keyed: fn(RateLimitLayerBuilder) -> RateLimitLayerBuilder =
        |builder| builder.hash_identities_with("a key that the fleet shares");
    assert_eq!(told(keyed).await, told(keyed).await, "a fleet agrees");
    assert_ne!(told(keyed).await, told(|builder| builder).await);
    assert_ne!(told(|builder| builder).await, told(|builder| builder).await);
}

#[tokio::test]
async fn a_store_that_fails_and_recovers_is_told_of() {
    let (log, _listening) = Log::listen();
    let (scene, store) = scripted(policy());
    store.follow(Script::Unavailable);
    for _ in 0..4 {
        scene.user("GET /items/1", "alice").await;
    }
    scene.clock.advance(Duration::from_secs(30));
    store.follow(Script::Reply);
    assert_eq!(log.about("rate_limit_store_failed").len(), 1);
    assert!(log.about("rate_limit_store_recovered").is_empty());
    for _ in 0..3 {
        scene.user("GET /items/1", "alice").await;
    }
    let told = log.about("rate_limit_store_recovered");
    assert_eq!(told.len(), 1, "once");
    assert_eq!(
        (number(&told[0], "failing_for"), number(&told[0], "untold")),
        (30, 3)
    );
}

/// A store that decides and then does not take back what it has charged is no outage; but it is
/// counted, and does not fill the log either.
#[tokio::test]
async fn what_cannot_be_given_back_is_told_no_more_often_than_other_failures() {
    let (log, _listening) = Log::listen();
    let store = ScriptedStore::default();
    let rule = Rule::new("9/hour").count(Count::failure());
    let limits = layer(Policy::builder().everyone(rule)).0;
    let limits = limits.store(store.clone()).build().unwrap();
    let inner = store.clone();
    let fail = || async move { inner.follow(Script::Unavailable) };
    let app = Router::new().route("/", get(fail)).layer(limits.clone());
    for _ in 0..5 {
        store.follow(Script::Reply);
        assert_eq!(send(&app, "GET /", &[]).await.status, 200);
    }
    assert_eq!(log.about("rate_limit_store_failed").len(), 1);
    assert!(log.about("rate_limit_store_recovered").is_empty());
    let statistics = limits.statistics();
    assert_eq!(statistics.totals.store_failures, 5);
    assert_eq!(statistics.store.since, None);
}

#[tokio::test]
async fn alerts_are_told_as_events_and_name_nobody() {
    let (log, _listening) = Log::listen();
    let scene = Scene::new("blocked");
    for _ in 0..51 {
        scene.user("GET /", "alice").await;
    }
    scene.clock.advance(Duration::from_secs(1));
    // Whoever comes next finds out.
    scene.user("GET /", "bob").await;
    let told = log.about("rate_limit_alert");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(" WARN "), "{}", told[0]);
    assert_eq!(field(&told[0], "alert"), "offender");
    assert_eq!(field(&told[0], "severity"), "low");
    let exceeded = log.about("rate_limit_exceeded");
    assert_eq!(field(&told[0], "identity"), field(&exceeded[0], "identity"));
    scene.clock.advance(Duration::from_hours(1));
    scene.user("GET /", "bob").await;
    assert_eq!(log.about("rate_limit_alert_resolved").len(), 1);
    assert!(!log.text().contains("alice"));
}
