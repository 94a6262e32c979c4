//! Bounds on what callers can write into a log: length of fields, number of events.

use std::time::Duration;

use axum::http::Method;
use tollgate::RateLimitLayerBuilder;
use tollgate::policy::{Policy, Rule, RuleMode, Tiers};

use super::Scene;
use crate::support::http::request;
use crate::support::log::Log;

/// As long as a URI may be, in one segment.
fn long_path() -> String {
    format!("/{}", "a".repeat(60_000))
}

/// The value of a field that has no quotes in it.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
    rest.split('"').next().unwrap()
}

fn assert_cut(line: &str, name: &str, max: usize) {
    let value = field(line, name);
    assert!(value.len() <= max, "{name} has {} bytes", value.len());
    assert!(value.ends_with('…'), "{value}");
    assert!(line.len() < 1_024, "{line}");
}

#[tokio::test]
async fn denials_with_long_paths_leave_short_events() {
    let (log, _listening) = Log::listen();
    let scene = Scene::new("blocked");
    let line = format!("GET {}", long_path());
    for number in 0..100 {
        assert_eq!(scene.address(&line, number).await, 429);
    }
    let logged = log.about("rate_limit_exceeded");
    assert_eq!(logged.len(), 100);
    for line in &logged {
        assert_cut(line, "endpoint", 256);
    }
    assert!(log.text().len() < 64_000, "{}", log.text().len());
}

#[tokio::test]
async fn paths_are_cut_in_all_events() {
    let (log, _listening) = Log::listen();
    let policy = Policy::builder()
        .authenticated("5/hour")
        .rule("dry-run", Rule::new("1/hour").mode(RuleMode::DryRun))
        .exempt_subject("user", "ada")
        .exempt_when(|head| head.header("x-probe").is_some());
    let scene = Scene::new(policy);
    let line = format!("GET {}", long_path());
    for _ in 0..6 {
        scene.user(&line, "alice").await;
    }
    scene.user(&line, "ada").await;
    scene.send(request(&line, &[("x-probe", "1")])).await;
    let until = tollgate::Clock::now(&scene.clock).saturating_add(Duration::from_mins(1));
    scene.limits.start_maintenance(until).await.unwrap();
    scene.user(&line, "alice").await;
    for event in [
        "rate_limit_allowed",
        "rate_limit_warning",
        "rate_limit_exceeded",
        "rate_limit_dry_run",
        "why=\"subject\"",
        "why=\"predicate\"",
        "why=\"maintenance\"",
    ] {
        let logged = log.about(event);
        assert!(!logged.is_empty(), "{event}");
        for line in &logged {
            assert_cut(line, "endpoint", 256);
        }
    }
}

#[tokio::test]
async fn extension_methods_are_cut() {
    let (log, _listening) = Log::listen();
    let scene = Scene::new("blocked");
    let mut request = request("GET /", &[]);
    *request.method_mut() = Method::from_bytes("X".repeat(20_000).as_bytes()).unwrap();
    assert_eq!(scene.send(request).await, 429);
    let logged = log.about("rate_limit_exceeded");
    assert_cut(&logged[0], "method", 32);
}

#[tokio::test]
async fn names_that_callers_choose_are_cut() {
    let (log, _listening) = Log::listen();
    let tiers = Tiers::new("free").tier("team", 5);
    let policy = Policy::builder().tiers(tiers).authenticated("blocked");
    let scene = Scene::with(policy, RateLimitLayerBuilder::log_plain_identities);
    let name = "m".repeat(8_000);
    let headers = [("x-user", &*name), ("x-tier", &*name)];
    assert_eq!(scene.send(request("GET /", &headers)).await, 429);
    assert_cut(&log.about("rate_limit_exceeded")[0], "identity", 256);
    assert_cut(&log.about("unknown tier")[0], "tier", 256);
}

#[tokio::test]
async fn maintenance_leaves_sampled_audit_events_with_a_count() {
    let (log, _listening) = Log::listen();
    let scene = Scene::new("1/hour");
    let until = tollgate::Clock::now(&scene.clock).saturating_add(Duration::from_hours(1));
    scene.limits.start_maintenance(until).await.unwrap();
    for number in 0..1_000 {
        let line = format!("GET /items/{number}");
        assert_eq!(scene.address(&line, number).await, 200);
    }
    let logged = log.about("why=\"maintenance\"");
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert!(logged[0].contains("tollgate::audit"), "{}", logged[0]);
    assert!(logged[0].contains(" suppressed=0"), "{}", logged[0]);
    scene.clock.advance(Duration::from_secs(10));
    assert_eq!(scene.address("GET /", 1).await, 200);
    let logged = log.about("why=\"maintenance\"");
    assert_eq!(logged.len(), 2);
    assert!(logged[1].contains(" suppressed=999"), "{}", logged[1]);
    assert_eq!(scene.limits.statistics().totals.exempt, 1_001);
}
