//! Decisions of the layer while the store is unavailable.

use std::time::Duration;

use tollgate::headers::HeaderSet;
use tollgate::policy::{OnStoreFailure, Policy, Rule};
use tollgate::store::{CircuitBreaker, DenyCache};
use tollgate::{ManualClock, RateLimitLayer};

use crate::support::http::{echo, send};
use crate::support::log::Log;
use crate::support::scripted_store::{Script, ScriptedStore};

/// In an outage the rule admits requests without a limit. A wrong password is a permanent error, which
/// can last for days. Then local counters limit requests.
#[tokio::test]
async fn permanent_error_falls_back_to_local_limits() {
    let (log, _listening) = Log::listen();
    let (clock, store) = (ManualClock::new(), ScriptedStore::default());
    let policy = Policy::builder()
        .everyone("2/hour")
        .on_store_failure(OnStoreFailure::Allow)
        .endpoint(
            "POST /login",
            Rule::new("9/hour").on_store_failure(OnStoreFailure::Deny),
        );
    let layer = RateLimitLayer::builder(policy)
        .store(store.clone())
        .clock(clock.clone());
    let app = echo().layer(layer.build().unwrap());

    store.follow(Script::Unavailable);
    for _ in 0..5 {
        assert_eq!(send(&app, "GET /", &[]).await.status, 200);
    }
    store.follow(Script::Refused);
    clock.advance(Duration::from_secs(1));
    for status in [200, 200, 429, 429] {
        assert_eq!(send(&app, "GET /", &[]).await.status, status);
    }
    assert_eq!(send(&app, "POST /login", &[]).await.status, 503);
    let events = log.about("rate_limit_store_failed");
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(events[0].contains(r#"kind="unavailable""#), "{events:?}");
    assert!(events[1].contains("ERROR"), "{events:?}");
    assert!(events[1].contains(r#"kind="permanent""#), "{events:?}");
    assert!(events[1].contains("check the URL"), "{events:?}");
}

/// A blocked rule needs no counter.
#[tokio::test]
async fn blocked_rule_denies_without_the_store() {
    let store = ScriptedStore::default();
    let blocked = Rule::new("blocked").name("shut").global(false);
    let policy = Policy::builder()
        .everyone("2/hour")
        .on_store_failure(OnStoreFailure::Allow)
        .endpoint("GET /shut", blocked);
    let layer = RateLimitLayer::builder(policy)
        .store(store.clone())
        .clock(ManualClock::new());
    let app = echo().layer(layer.build().unwrap());
    for script in [Script::Reply, Script::Unavailable] {
        store.follow(script);
        assert_eq!(send(&app, "GET /shut", &[]).await.status, 429, "{script:?}");
        assert_eq!(send(&app, "GET /", &[]).await.status, 200, "{script:?}");
    }
}

/// Four processes that each admit a quarter admit one limit in all.
#[tokio::test]
async fn process_without_the_store_admits_its_share() {
    let (clock, store) = (ManualClock::new(), ScriptedStore::default());
    let policy = Policy::builder()
        .everyone("8/hour")
        .rule("all", Rule::new("3/minute").per([]))
        .local_share(0.25);
    let layer = RateLimitLayer::builder(policy)
        .store(store.clone())
        .headers(HeaderSet::Both)
        .clock(clock.clone());
    let app = echo().layer(layer.build().unwrap());

    let shared = send(&app, "GET /", &[]).await;
    assert_eq!(shared.number("x-ratelimit-limit"), 3);
    store.follow(Script::Unavailable);
    // The share of 3 is 0.75, which is rounded up to 1.
    let first = send(&app, "GET /", &[]).await;
    assert_eq!(first.status, 200);
    assert_eq!(first.number("x-ratelimit-limit"), 1);
    let quotas = first.header("ratelimit-policy").unwrap();
    assert!(quotas.contains(r#""ip:global:1h";q=2;w=3600"#), "{quotas}");
    assert!(quotas.contains(r#""all:all:1m";q=1;w=60"#), "{quotas}");
    assert_eq!(send(&app, "GET /", &[]).await.status, 429);
    clock.advance(Duration::from_mins(2));
    let second = send(&app, "GET /", &[]).await;
    assert_eq!(
        (second.status, second.number("x-ratelimit-remaining")),
        (200, 0)
    );
    clock.advance(Duration::from_mins(2));
    let third = send(&app, "GET /", &[]).await;
    assert_eq!(third.status, 429);
    assert_eq!(third.header("x-ratelimit-policy"), Some("ip:global:1h"));
    assert_eq!(third.json()["error"]["details"]["limit"], 2);
    // After recovery the full limits apply, with the counts of the store.
    store.follow(Script::Reply);
    let recovered = send(&app, "GET /", &[]).await;
    assert_eq!(
        (recovered.status, recovered.number("x-ratelimit-limit")),
        (200, 3)
    );
}

#[test]
fn local_share_must_be_above_0_and_at_most_1() {
    for wrong in [0.0, -0.5, 1.5, f64::NAN] {
        let policy = Policy::builder().everyone("8/hour").local_share(wrong);
        let errors = policy.build().unwrap_err();
        let wrong = errors.iter().next().unwrap();
        assert_eq!(wrong.path(), Some("defaults.local_share"), "{errors}");
        assert!(errors.to_string().contains("0.25"), "{errors}");
    }
}

/// The recovery event is logged once. A cached denial does not count as a recovery.
#[tokio::test]
async fn recovery_is_logged_once() {
    let (log, _listening) = Log::listen();
    let (clock, inner) = (ManualClock::new(), ScriptedStore::default());
    let breaker = CircuitBreaker::builder(inner.clone()).clock(clock.clone());
    let policy = Policy::builder()
        .everyone("100/hour")
        .endpoint("GET /tight", Rule::new("1/hour").name("tight"));
    let layer = RateLimitLayer::builder(policy)
        .store(DenyCache::new(breaker.build().unwrap()))
        .clock(clock.clone());
    let app = echo().layer(layer.build().unwrap());
    for status in [200, 429, 429] {
        assert_eq!(send(&app, "GET /tight", &[]).await.status, status);
    }
    inner.follow(Script::Unavailable);
    for _ in 0..10 {
        assert_eq!(send(&app, "GET /", &[]).await.status, 200);
        assert_eq!(send(&app, "GET /tight", &[]).await.status, 429);
    }
    assert_eq!(log.about("rate_limit_store_failed").len(), 1);
    assert_eq!(log.about("rate_limit_store_recovered").len(), 0);
    inner.follow(Script::Reply);
    clock.advance(Duration::from_secs(1));
    for _ in 0..10 {
        assert_eq!(send(&app, "GET /", &[]).await.status, 200);
    }
    let events = log.about("rate_limit_store_recovered");
    assert_eq!(events.len(), 1, "{events:?}");
}

/// Bug: a store that failed and recovered with every other request caused 242 events in 10 seconds.
#[tokio::test]
async fn events_of_a_flapping_store_are_rate_limited_across_recoveries() {
    let (log, _listening) = Log::listen();
    let (clock, store) = (ManualClock::new(), ScriptedStore::default());
    let layer = RateLimitLayer::builder("1000000/hour")
        .store(store.clone())
        .clock(clock.clone());
    let app = echo().layer(layer.build().unwrap());
    for _ in 0..240 {
        for script in [Script::Unavailable, Script::Reply] {
            store.follow(script);
            assert_eq!(send(&app, "GET /", &[]).await.status, 200);
        }
        clock.advance(Duration::from_micros(1_000_000 / 24));
    }
    let [failed, recovered] = ["rate_limit_store_failed", "rate_limit_store_recovered"];
    assert_eq!(log.about(failed).len(), 1);
    assert_eq!(log.about(recovered).len(), 1);
    // A lasting outage is reported, with the number of suppressed events.
    store.follow(Script::Unavailable);
    clock.advance(Duration::from_secs(1));
    for _ in 0..3 {
        assert_eq!(send(&app, "GET /", &[]).await.status, 200);
    }
    let failed = log.about(failed);
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed[1].contains("suppressed=239"), "{failed:?}");
}
