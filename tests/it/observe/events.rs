//! Events: names, fields and sampling.

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

/// Returns the value of a field in a line.
pub(super) fn field<'a>(line: &'a str, name: &str) -> &'a str {
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
        ("window", "1h"),
        ("suppressed", "0"),
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
        ("window", "1h"),
        ("suppressed", "0"),
        ("suppressed_others", "0"),
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
async fn repeated_denials_are_logged_every_ten_seconds_with_the_suppressed_number() {
    let (log, _listening) = Log::listen();
    let scene = Scene::new("blocked");
    // Ten times a second, for half a minute.
    for _ in 0..300 {
        scene.user("GET /", "alice").await;
        scene.clock.advance(Duration::from_millis(100));
    }
    scene.user("GET /", "bob").await;
    let logged = log.about("rate_limit_exceeded");
    let suppressed: Vec<u64> = logged
        .iter()
        .map(|line| number(line, "suppressed"))
        .collect();
    assert_eq!(suppressed, [0, 99, 99, 0], "the last one is another caller");
    scene.user("GET /", "alice").await;
    let logged = log.about("rate_limit_exceeded");
    assert_eq!(number(logged.last().unwrap(), "suppressed"), 99);
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
    let logged = log.about("rate_limit_exceeded");
    assert_eq!(logged.len(), 101);
    let last = logged.last().unwrap();
    assert_eq!(
        (
            number(last, "suppressed"),
            number(last, "suppressed_others")
        ),
        (0, 2_900)
    );
}

#[tokio::test]
async fn names_are_plain_or_under_a_key_if_that_is_wanted() {
    let logged = async |settings: fn(RateLimitLayerBuilder) -> RateLimitLayerBuilder| {
        let (log, _listening) = Log::listen();
        let scene = Scene::with("blocked", settings);
        scene.user("GET /", "alice").await;
        scene.address("GET /", 1).await;
        let lines = log.about("rate_limit_exceeded");
        let names = lines.iter().map(|line| field(line, "identity").to_owned());
        names.collect::<Vec<_>>()
    };
    let plain = logged(RateLimitLayerBuilder::log_plain_identities).await;
    assert_eq!(plain, ["user=alice", "ip=10.0.0.1"]);
    let keyed: fn(RateLimitLayerBuilder) -> RateLimitLayerBuilder =
        |builder| builder.hash_identities_with("a key that the fleet shares");
    assert_eq!(logged(keyed).await, logged(keyed).await, "a fleet agrees");
    assert_ne!(logged(keyed).await, logged(|builder| builder).await);
    assert_ne!(
        logged(|builder| builder).await,
        logged(|builder| builder).await
    );
}

#[tokio::test]
async fn store_failures_and_recoveries_are_logged() {
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
    let logged = log.about("rate_limit_store_recovered");
    assert_eq!(logged.len(), 1, "once");
    assert_eq!(
        (
            number(&logged[0], "failing_for"),
            number(&logged[0], "suppressed")
        ),
        (30, 3)
    );
}

/// A store that decides and then does not take back what it has charged is no outage; but it is
/// counted, and does not fill the log either.
#[tokio::test]
async fn failed_refunds_are_logged_no_more_often_than_other_failures() {
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
async fn alerts_are_logged_without_the_caller() {
    let (log, _listening) = Log::listen();
    let scene = Scene::new("blocked");
    for _ in 0..51 {
        scene.user("GET /", "alice").await;
    }
    scene.clock.advance(Duration::from_secs(1));
    // The next request ticks.
    scene.user("GET /", "bob").await;
    let logged = log.about("rate_limit_alert");
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert!(logged[0].contains(" WARN "), "{}", logged[0]);
    assert_eq!(field(&logged[0], "alert"), "offender");
    assert_eq!(field(&logged[0], "severity"), "low");
    let exceeded = log.about("rate_limit_exceeded");
    assert_eq!(
        field(&logged[0], "identity"),
        field(&exceeded[0], "identity")
    );
    scene.clock.advance(Duration::from_hours(1));
    scene.user("GET /", "bob").await;
    assert_eq!(log.about("rate_limit_alert_resolved").len(), 1);
    assert!(!log.text().contains("alice"));
}
