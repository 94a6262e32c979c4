//! What becomes of requests while the store cannot answer.

use std::time::Duration;

use tollgate::headers::HeaderSet;
use tollgate::policy::{OnStoreFailure, Policy, Rule};
use tollgate::store::{CircuitBreaker, DenyCache};
use tollgate::{ManualClock, RateLimitLayer};

use crate::support::http::{echo, send};
use crate::support::log::Log;
use crate::support::scripted_store::{Script, ScriptedStore};

/// In an outage requests go on, as the rule has said. A wrong password is no outage: it would stay
/// so until somebody reads the log, and nobody has said that there should be no limit till then.
#[tokio::test]
async fn what_is_refused_goes_on_only_if_it_is_counted() {
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
    let told = log.about("rate_limit_store_failed");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains(r#"kind="unavailable""#), "{told:?}");
    assert!(told[1].contains("ERROR"), "{told:?}");
    assert!(told[1].contains(r#"kind="refused""#), "{told:?}");
    assert!(told[1].contains("check the URL"), "{told:?}");
}

/// No counter says so, and so none is missed.
#[tokio::test]
async fn who_is_blocked_is_blocked_without_the_store() {
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

/// Four processes that each admit a quarter admit what one limit says.
#[tokio::test]
async fn a_process_on_its_own_admits_its_share() {
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
    // Three quarters of one are one: never nothing.
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
    // With the store the whole limits are back, and what was counted there.
    store.follow(Script::Reply);
    let back = send(&app, "GET /", &[]).await;
    assert_eq!((back.status, back.number("x-ratelimit-limit")), (200, 3));
}

#[test]
fn a_share_is_more_than_nothing_and_no_more_than_all() {
    for wrong in [0.0, -0.5, 1.5, f64::NAN] {
        let policy = Policy::builder().everyone("8/hour").local_share(wrong);
        let told = policy.build().unwrap_err();
        let wrong = told.iter().next().unwrap();
        assert_eq!(wrong.path(), Some("defaults.local_share"), "{told}");
        assert!(told.to_string().contains("0.25"), "{told}");
    }
}

/// An outage has an end, and it is told once. An answer that was remembered is not one.
#[tokio::test]
async fn a_store_that_is_back_is_told_of_once() {
    let (log, _listening) = Log::listen();
    let (clock, inner) = (ManualClock::new(), ScriptedStore::default());
    let failover = CircuitBreaker::builder(inner.clone()).clock(clock.clone());
    let policy = Policy::builder()
        .everyone("100/hour")
        .endpoint("GET /tight", Rule::new("1/hour").name("tight"));
    let layer = RateLimitLayer::builder(policy)
        .store(DenyCache::new(failover.build().unwrap()))
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
    let told = log.about("rate_limit_store_recovered");
    assert_eq!(told.len(), 1, "{told:?}");
}

/// 242 events in 10 seconds were seen of a store that failed and recovered with every other request.
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
    // An outage that lasts is reported, with the number of failures that were not.
    store.follow(Script::Unavailable);
    clock.advance(Duration::from_secs(1));
    for _ in 0..3 {
        assert_eq!(send(&app, "GET /", &[]).await.status, 200);
    }
    let failed = log.about(failed);
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed[1].contains("untold=239"), "{failed:?}");
}
