//! Metrics: exact, with few labels, without callers.

use std::time::Duration;

use ::metrics::with_local_recorder;
use tollgate::observe::{METRICS, MetricKind};
use tollgate::policy::{OnStoreFailure, Policy, Rule, RuleMode};

use super::Scene;
use super::recorder::TestRecorder;
use super::statistics::scripted;
use crate::support::scripted_store::Script;

/// Runs a future with a recorder.
fn recorded(recorder: &TestRecorder, happens: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    with_local_recorder(recorder, || runtime.block_on(happens));
}

#[test]
fn metrics_agree_with_the_requests_and_contain_no_caller() {
    let recorder = TestRecorder::default();
    recorded(&recorder, async {
        let policy = Policy::builder()
            .authenticated("1000/hour")
            .endpoint("GET /items/{id}", Rule::new("32/hour").name("items"))
            .endpoint(
                "GET /try",
                Rule::new("blocked").name("try").mode(RuleMode::DryRun),
            )
            .exempt_route("GET /health");
        let scene = Scene::new(policy);
        for user in ["alice", "bob"] {
            for number in 0..40 {
                scene.user(&format!("GET /items/{number}"), user).await;
            }
        }
        for _ in 0..3 {
            scene.user("GET /try", "carol").await;
            scene.user("GET /health", "carol").await;
        }
        scene.clock.advance(Duration::from_secs(1));
        scene.user("GET /elsewhere", "carol").await;
        let _ = scene.limits.statistics();
    });
    for (name, expected) in [
        (
            "tollgate_decisions_total{policy=user:items:1h,outcome=allowed}",
            64,
        ),
        (
            "tollgate_decisions_total{policy=user:items:1h,outcome=denied}",
            16,
        ),
        (
            "tollgate_decisions_total{policy=user:global:1h,outcome=allowed}",
            4,
        ),
        (
            "tollgate_decisions_total{policy=user:try:blocked,outcome=would_deny}",
            3,
        ),
        (
            "tollgate_endpoint_denied_total{endpoint=GET /items/{id}}",
            16,
        ),
        ("tollgate_exempt_total{why=route}", 3),
        ("tollgate_retries_total{outcome=too_soon}", 14),
    ] {
        assert_eq!(recorder.counter(name), expected, "{name}");
    }
    for (name, expected) in [
        ("tollgate_violators{}", 2.0),
        // Without a peer address all requests share one.
        ("tollgate_violating_addresses{}", 1.0),
        ("tollgate_worst_offender_denials{}", 8.0),
        ("tollgate_ordinary_denied_ratio{}", 0.0),
        ("tollgate_alerts_firing{alert=many_denials}", 0.0),
        ("tollgate_store_healthy{}", 1.0),
        ("tollgate_store_keys{}", 5.0),
        // Also without a reload.
        ("tollgate_policy_version{}", 1.0),
    ] {
        let found = recorder.gauge(name);
        assert!(
            (found - expected).abs() < 1e-9,
            "{name} is {found}, not {expected}"
        );
    }
    let left = recorder.gauge("tollgate_endpoint_remaining_ratio{endpoint=GET /items/{id}}");
    let expected = (0..32).map(|left| f64::from(left) / 32.0).sum::<f64>() / 40.0;
    assert!((left - expected).abs() < 0.001, "{left}, not {expected}");
    let remaining = recorder.values("tollgate_remaining_ratio{policy=user:items:1h}");
    assert_eq!(remaining.len(), 64 / 16, "{remaining:?}");
    assert!(remaining.iter().all(|share| (0.0..=1.0).contains(share)));
    let measured = recorder.values("tollgate_decision_duration_seconds{store=at_once}");
    assert!(!measured.is_empty());
    for name in recorder.names() {
        for who in ["alice", "bob", "carol"] {
            assert!(!name.contains(who), "{name}");
        }
    }
}

#[test]
fn the_remaining_ratio_is_nan_without_requests_in_the_last_hour() {
    const LEFT: &str = "tollgate_endpoint_remaining_ratio{endpoint=GET /items/{id}}";
    let recorder = TestRecorder::default();
    recorded(&recorder, async {
        let rule = Rule::new("2/hour").name("items");
        let scene = Scene::new(Policy::builder().endpoint("GET /items/{id}", rule));
        for _ in 0..3 {
            scene.user("GET /items/1", "alice").await;
        }
        let _ = scene.limits.statistics();
        let left = recorder.gauge(LEFT);
        assert!((left - 0.5 / 3.0).abs() < 0.001, "{left}");
        scene.clock.advance(Duration::from_hours(2));
        let _ = scene.limits.statistics();
        let left = recorder.gauge(LEFT);
        assert!(left.is_nan(), "{left}");
        scene.user("GET /items/1", "alice").await;
        let _ = scene.limits.statistics();
        let left = recorder.gauge(LEFT);
        assert!((left - 0.5).abs() < 0.001, "{left}");
    });
}

#[test]
fn every_series_is_in_the_list_and_described() {
    let recorder = TestRecorder::default();
    recorded(&recorder, async {
        let strict = Rule::new("5/hour").on_store_failure(OnStoreFailure::Deny);
        let policy = Policy::builder()
            .endpoint("GET /strict", strict)
            .everyone("1/minute")
            .exempt_route("GET /health");
        let (scene, store) = scripted(policy.build().unwrap());
        for line in ["GET /strict", "GET /health", "GET /", "GET /", "GET /"] {
            scene.user(line, "alice").await;
        }
        store.follow(Script::Unavailable);
        scene.user("GET /strict", "alice").await;
        scene.limits.replace_policy("1/minute").unwrap();
        let _ = scene.limits.statistics();
    });
    assert_eq!(recorder.counter("tollgate_unavailable_total{}"), 1);
    assert_eq!(recorder.counter("tollgate_store_errors_total{}"), 1);
    let healthy = recorder.gauge("tollgate_store_healthy{}");
    assert!(healthy.abs() < 1e-9, "{healthy}");

    let mut listed: Vec<String> = METRICS
        .iter()
        .map(|metric| metric.name.to_owned())
        .collect();
    for name in recorder.names() {
        let (name, labels) = name.split_once('{').unwrap();
        let metric = METRICS.iter().find(|metric| metric.name == name);
        let metric = metric.unwrap_or_else(|| panic!("{name} is not on the list"));
        let labels = labels.trim_end_matches('}').split(',');
        let labels = labels.filter_map(|label| label.split_once('='));
        let labels: Vec<(&str, &str)> = labels.collect();
        assert_eq!(labels.len(), metric.labels.len(), "{name}");
        for ((label, value), defined) in labels.into_iter().zip(metric.labels) {
            assert_eq!(label, defined.name, "{name}");
            let is_defined = defined.values.is_empty() || defined.values.contains(&value);
            assert!(is_defined, "{name}: {value}");
        }
        let is_counter = metric.kind == MetricKind::Counter;
        assert_eq!(name.ends_with("_total"), is_counter, "{name}");
    }
    listed.sort();
    assert_eq!(recorder.described(), listed);
}

#[test]
fn rejected_requests_are_counted_by_reason() {
    let recorder = TestRecorder::default();
    recorded(&recorder, async {
        let policy = Policy::builder()
            .everyone("1000/hour")
            .endpoint("GET /items/{id}", Rule::new("32/hour").name("items"));
        let (builder, _) = crate::support::http::layer(policy);
        let limits = builder.build().unwrap();
        let app = crate::support::http::echo().layer(limits);
        for _ in 0..3 {
            crate::support::http::send(&app, "GET /items/../x", &[]).await;
        }
        let long = format!("GET /items/%61{}", "a/".repeat(5_000));
        crate::support::http::send(&app, &long, &[]).await;
    });
    let of = |reason: &str| {
        let name = format!("tollgate_rejected_requests_total{{reason={reason}}}");
        recorder.counter(&name)
    };
    assert_eq!((of("invalid-path"), of("path-too-long")), (3, 1));
}
