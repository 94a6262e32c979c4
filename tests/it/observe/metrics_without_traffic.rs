//! Metrics are current, and all series exist, without requests.

use std::time::Duration;

use ::metrics::with_local_recorder;
use tollgate::identity::ApiKey;
use tollgate::policy::{Policy, Rule, RuleMode, Tiers};
use tollgate::{MemoryStore, RateLimitLayer};

use super::Scene;
use super::recorder::TestRecorder;
use crate::redis::Server;
use crate::support::http::layer;

const HEALTHY: &str = "tollgate_store_healthy{}";
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the values of the label `policy` of all series of decisions.
fn policies(recorder: &TestRecorder) -> Vec<String> {
    let prefix = "tollgate_decisions_total{policy=";
    let names = recorder.names();
    let names = names.iter().filter_map(|name| name.strip_prefix(prefix));
    let names = names.filter_map(|name| name.strip_suffix(",outcome=denied}"));
    names.map(str::to_owned).collect()
}

#[test]
fn every_quota_has_its_series_before_the_first_request_and_after_a_reload() {
    let recorder = TestRecorder::default();
    with_local_recorder(&recorder, || {
        let policy = Policy::builder()
            .tiers(Tiers::new("free").tier("team", 5))
            .authenticated("1000/hour")
            .anonymous("100/hour")
            .category("reads", Rule::new("10/minute").tier("team", ["unlimited"]))
            .endpoint("GET /items/{id}", Rule::in_category("reads"))
            .endpoint("POST /login", Rule::new("5/hour").name("login").per(["ip"]))
            .endpoint("GET /me", Rule::new("5/hour").name("me").per(["user"]))
            .rule("tenants", Rule::new("9/day").per(["tenant"]))
            .rule("all", Rule::new("7/second").per([]).mode(RuleMode::DryRun));
        let (builder, _) = layer(policy);
        let keys = ApiKey::known("x-api-key", ["k_1"]).unwrap();
        let limits = builder.identify(keys).build().unwrap();
        assert_eq!(
            policies(&recorder),
            [
                "all:all:1s",
                "api-key:global:1h",
                "api-key:reads:1m",
                "api-key:reads:unlimited",
                "ip:global:1h",
                "ip:invalid-credentials:1m",
                "ip:login:1h",
                "ip:me:1h",
                "ip:preflight:1m",
                "ip:reads:1m",
                "ip:reads:unlimited",
                "tenant:tenants:1d",
                "user:global:1h",
                "user:me:1h",
                "user:reads:1m",
                "user:reads:unlimited",
            ]
        );
        limits
            .replace_policy(Policy::builder().everyone("3/minute").rule("new", "4/day"))
            .unwrap();
        let after = policies(&recorder);
        for name in ["ip:global:1m", "user:global:1m", "ip:new:1d", "user:new:1d"] {
            assert!(after.iter().any(|known| known == name), "{name}: {after:?}");
        }
        assert!(
            limits.statistics().policies.is_empty(),
            "none has decided a request"
        );
    });
}

/// A policy with thousands of quotas leaves room for names that only requests show.
#[test]
fn the_number_of_series_without_requests_is_bounded() {
    let recorder = TestRecorder::default();
    with_local_recorder(&recorder, || {
        let mut policy = Policy::builder();
        for number in 0..2_000 {
            let rule = Rule::new("5/hour").name(format!("rule-{number}"));
            policy = policy.endpoint(format!("GET /{number}"), rule);
        }
        RateLimitLayer::new(policy).unwrap();
    });
    // Half of the names, with that of wrong credentials.
    assert_eq!(policies(&recorder).len(), 512);
}

#[test]
fn overflowed_checks_are_a_metric_and_a_statistic() {
    const OVERFLOWED: &str = "tollgate_store_overflowed_total{}";
    let recorder = TestRecorder::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    with_local_recorder(&recorder, || {
        runtime.block_on(async {
            let store = std::sync::Arc::new(MemoryStore::builder().capacity(1).build().unwrap());
            let scene = Scene::with("1/hour", |builder| builder.store(store.clone()));
            assert_eq!(recorder.counter(OVERFLOWED), 0);
            // Each uses up its limit, so that its counter is protected.
            let callers = 2 * u32::try_from(store.capacity()).unwrap() + 100;
            for number in 0..callers {
                scene.address("GET /", number).await;
            }
            assert!(store.overflowed() > 0);
            // Without a request, and once.
            for _ in 0..2 {
                scene.limits.refresh_metrics();
                assert_eq!(recorder.counter(OVERFLOWED), store.overflowed());
            }
            let statistics = scene.limits.statistics().store;
            assert_eq!(statistics.overflowed, Some(store.overflowed()));
        });
    });
}

/// Bug: after a failed request, the store counted as failing until the next request.
#[test]
fn the_health_of_redis_is_current_without_requests() {
    let recorder = TestRecorder::default();
    let mut server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    with_local_recorder(&recorder, || {
        runtime.block_on(async {
            let store = server
                .store()
                .deadline(Duration::from_secs(1))
                .build()
                .unwrap();
            let builder = RateLimitLayer::builder("1000/hour").store(store);
            let limits = builder.build().unwrap();
            let app = crate::support::http::echo().layer(limits.clone());
            let becomes = async |expected: f64| {
                let reached = async {
                    loop {
                        limits.refresh_metrics();
                        if (recorder.gauge(HEALTHY) - expected).abs() < 1e-9 {
                            return limits.statistics().store.healthy;
                        }
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                };
                let healthy = tokio::time::timeout(PATIENCE, reached).await;
                assert_eq!(healthy.expect("in time"), expected > 0.5);
            };
            crate::support::http::send(&app, "GET /", &[]).await;
            becomes(1.0).await;
            server.kill();
            becomes(0.0).await;
            server.launch();
            becomes(1.0).await;
            // A request fails in between, and no other follows.
            server.kill();
            becomes(0.0).await;
            crate::support::http::send(&app, "GET /", &[]).await;
            assert_eq!(limits.statistics().totals.store_failures, 1);
            server.launch();
            becomes(1.0).await;
        });
    });
}
