//! Changes at run time: a new policy, overrides for one subject.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::Router;
use tollgate::headers::HeaderSet;
use tollgate::policy::{Policy, Rule, Tiers};
use tollgate::{Clock, ManualClock, MemoryStore, Override, RateLimitLayer, Timestamp};

use super::{Answer, echo, layer, send};
use crate::support::log::Log;
use crate::support::scripted_store::{Script, ScriptedStore};

const ALICE: [(&str, &str); 1] = [("x-user", "alice")];

fn with(policy: impl tollgate::policy::IntoPolicy) -> (RateLimitLayer, Router, ManualClock) {
    let (builder, clock) = layer(policy);
    let limits = builder.headers(HeaderSet::Both).build().unwrap();
    (limits.clone(), echo().layer(limits), clock)
}

async fn limit_and_remaining(app: &Router, line: &str) -> (u64, u64) {
    let answer = send(app, line, &ALICE).await;
    let of = |answer: &Answer, name: &str| answer.number(name);
    (
        of(&answer, "x-ratelimit-limit"),
        of(&answer, "x-ratelimit-remaining"),
    )
}

#[tokio::test]
async fn a_new_policy_keeps_the_counters() {
    let policy = |limit: &str| {
        Policy::builder()
            .authenticated(limit)
            .endpoint("GET /b", Rule::new("50/hour").name("b"))
            .endpoint("GET /a", Rule::new("5/minute").name("a"))
    };
    let (limits, app, _) = with(policy("10/hour"));
    for left in [9, 8, 7] {
        assert_eq!(limit_and_remaining(&app, "GET /").await, (10, left));
    }
    assert_eq!(
        limits.replace_policy(policy("20/hour")).unwrap().version(),
        2
    );
    assert_eq!(
        limit_and_remaining(&app, "GET /").await,
        (20, 16),
        "a higher limit does not reset the counter"
    );
    limits.replace_policy(policy("5/hour")).unwrap();
    assert_eq!(
        limit_and_remaining(&app, "GET /").await,
        (5, 0),
        "a lower limit applies at once"
    );
    assert_eq!(send(&app, "GET /", &ALICE).await.status, 429);

    // A counter belongs to the name of its rule, not to its position.
    let reordered = Policy::builder()
        .endpoint("GET /a", Rule::new("5/minute").name("a"))
        .endpoint("GET /new", Rule::new("1/minute").name("new"))
        .authenticated("6/hour");
    limits.replace_policy(reordered).unwrap();
    assert_eq!(limit_and_remaining(&app, "GET /").await, (6, 0));
}

#[tokio::test]
async fn a_wrong_policy_changes_nothing_and_is_reported() {
    let (log, _listening) = Log::listen();
    let (limits, app, clock) = with("10/hour");
    let built = limits.policy_status();
    assert_eq!(
        (built.version(), built.failures(), built.problem()),
        (1, 0, None)
    );
    clock.advance(Duration::from_secs(1));

    let rejected = limits.replace_policy("0/hour").unwrap_err().to_string();
    let wrong_message = Rule::new("5/hour").message("{retri_in}");
    limits.replace_policy(wrong_message).unwrap_err();
    assert_eq!(limit_and_remaining(&app, "GET /").await, (10, 9));
    let status = limits.policy_status();
    assert_eq!((status.version(), status.failures()), (1, 2));
    assert!(status.problem().unwrap().contains("retri_in"), "{status:?}");
    assert!(rejected.contains("blocked"), "{rejected}");
    assert_eq!(log.about("rate_limit_policy_not_reloaded").len(), 2);

    limits.replace_policy("11/hour").unwrap();
    let status = limits.policy_status();
    assert_eq!(
        (status.version(), status.reloads(), status.problem()),
        (2, 1, None)
    );
    assert_eq!(status.since(), clock.now());
    assert_eq!(log.about("rate_limit_policy_reloaded").len(), 1);

    let error = limits.reload().unwrap_err().to_string();
    assert!(error.contains("not read from a file"), "{error}");
}

fn acme() -> Policy {
    Policy::builder()
        .tiers(Tiers::new("free").tier("team", 5))
        .authenticated(Rule::new("2/minute").limit("10/hour"))
        .rule(
            "outbound",
            Rule::new("5/hour, token-bucket").per(["tenant"]),
        )
        .build()
        .unwrap()
}

#[tokio::test]
async fn an_override_is_for_one_subject_and_one_rule() {
    let (log, _listening) = Log::listen();
    let (limits, app, _) = with(acme());
    let more = Override::new([("user", "alice")], "global", "4/minute").unwrap();
    limits.set_override(more).await.unwrap();
    let answer = send(&app, "GET /", &ALICE).await;
    assert_eq!(answer.number("x-ratelimit-limit"), 4);
    assert_eq!(answer.header("x-ratelimit-policy"), Some("user:global:1m"));
    let listed = answer.header("ratelimit-policy").unwrap();
    assert!(listed.contains("\"user:global:1m\";q=4;w=60"), "{listed}");
    assert!(
        listed.contains("\"user:global:1h\";q=10;w=3600"),
        "{listed}"
    );

    // The override replaces the larger quota of a tier, and applies to no other caller.
    let of_team = [("x-user", "alice"), ("x-tier", "team")];
    assert_eq!(
        send(&app, "GET /", &of_team)
            .await
            .number("x-ratelimit-limit"),
        4
    );
    let bob = [("x-user", "bob")];
    assert_eq!(
        send(&app, "GET /", &bob).await.number("x-ratelimit-limit"),
        2
    );

    assert!(
        limits
            .remove_override([("user", "alice")], "global")
            .await
            .unwrap()
    );
    assert!(
        !limits
            .remove_override([("user", "alice")], "global")
            .await
            .unwrap()
    );
    assert_eq!(
        send(&app, "GET /", &ALICE).await.status,
        429,
        "the counter was reset"
    );
    let audit = log.about("tollgate::audit");
    assert_eq!(
        audit.len(),
        2,
        "a change without effect is logged: {audit:?}"
    );
    assert!(!log.text().contains("alice"));
}

#[tokio::test]
async fn an_override_for_a_tenant_is_for_its_counter_or_for_each_of_its_users() {
    let (limits, app, _) = with(acme());
    let tenant = [("tenant", "acme")];
    for (rule, quota) in [("outbound", "unlimited"), ("global", "1/minute")] {
        let new = Override::new(tenant, rule, quota).unwrap();
        limits.set_override(new).await.unwrap();
    }
    for user in ["alice", "bob"] {
        let of_acme = [("x-user", user), ("x-tenant", "acme")];
        let answer = send(&app, "GET /", &of_acme).await;
        assert_eq!(
            (answer.status, answer.number("x-ratelimit-limit")),
            (200, 1)
        );
        assert_eq!(send(&app, "GET /", &of_acme).await.status, 429);
        let other = [("x-user", user), ("x-tenant", "other")];
        assert_eq!(
            send(&app, "GET /", &other).await.status,
            200,
            "{user} elsewhere"
        );
    }
    // An override for the user takes precedence.
    let own = Override::new([("user", "alice")], "global", "3/minute").unwrap();
    limits.set_override(own).await.unwrap();
    let of_acme = [("x-user", "alice"), ("x-tenant", "acme")];
    assert_eq!(
        send(&app, "GET /", &of_acme)
            .await
            .number("x-ratelimit-limit"),
        3
    );
}

#[tokio::test]
async fn an_override_expires_and_survives_a_reload() {
    let (limits, app, clock) = with("2/hour");
    let until = clock.now().saturating_add(Duration::from_mins(1));
    let new = Override::new([("user", "alice")], "global", "100/hour").unwrap();
    limits.set_override(new.until(until)).await.unwrap();
    limits.replace_policy("3/hour").unwrap();
    assert_eq!(limit_and_remaining(&app, "GET /").await, (100, 99));
    // Another algorithm has another counter. The override applies to its window nevertheless.
    limits.replace_policy("3/hour, token-bucket").unwrap();
    assert_eq!(limit_and_remaining(&app, "GET /").await, (100, 99));
    clock.advance(Duration::from_mins(1));
    assert_eq!(limit_and_remaining(&app, "GET /").await.0, 3);
    assert!(limits.overrides().is_empty());
}

#[tokio::test]
async fn an_override_can_block_and_lift() {
    let (limits, app, _) = with(acme());
    let set = |quota: &str| {
        let new = Override::new([("user", "alice")], "global", quota).unwrap();
        limits.set_override(new)
    };
    set("blocked").await.unwrap();
    let answer = send(&app, "GET /", &ALICE).await;
    assert_eq!(answer.status, 429);
    set("unlimited").await.unwrap();
    for _ in 0..50 {
        assert_eq!(send(&app, "GET /", &ALICE).await.status, 200);
    }
    assert_eq!(
        limits.overrides().len(),
        1,
        "the first override was not replaced"
    );
    // An override for one window replaces one for all windows.
    set("7/minute").await.unwrap();
    set("70/hour").await.unwrap();
    assert_eq!(limits.overrides().len(), 2);
    assert_eq!(
        send(&app, "GET /", &ALICE)
            .await
            .number("x-ratelimit-limit"),
        7
    );
}

#[tokio::test]
async fn an_override_without_effect_is_rejected() {
    let (limits, _, _) = with(acme());
    for (rule, quota, expected) in [
        ("globl", "5/minute", "global, outbound"),
        ("global", "5/day", "window of `10/1h` or `2/1m`, or"),
        ("global", "0/minute", "blocked"),
    ] {
        let set = async {
            let new = Override::new([("user", "alice")], rule, quota)?;
            limits.set_override(new).await
        };
        let error: tollgate::Error = set.await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(limits.overrides().is_empty());
}

#[tokio::test]
async fn overrides_for_addresses_apply_to_their_network() {
    let limits = RateLimitLayer::new("2/hour").unwrap();
    for (written, as_counted) in [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8::1:2:3:4", "2001:db8::"),
    ] {
        let new = Override::new([("ip", written)], "global", "5/hour").unwrap();
        limits.set_override(new).await.unwrap();
        let of: std::net::IpAddr = as_counted.parse().unwrap();
        let counted = Override::new([("ip", of)], "global", "5/hour").unwrap();
        let known = limits.overrides();
        assert!(
            known.contains(&counted),
            "{written} is not stored as {as_counted}"
        );
        assert!(
            limits
                .remove_override([("ip", written)], "global")
                .await
                .unwrap()
        );
    }
}

#[test]
fn layers_on_one_store_share_overrides() {
    let store = std::sync::Arc::new(MemoryStore::new());
    let one = RateLimitLayer::builder("2/hour").store(std::sync::Arc::clone(&store));
    let other = RateLimitLayer::builder("2/hour").store(store);
    let (one, other) = (one.build().unwrap(), other.build().unwrap());
    let new = Override::new([("user", "alice")], "global", "5/hour").unwrap();
    let new = new.until(Timestamp::MAX);
    one.set_override(new.clone()).wait().unwrap();
    assert_eq!(other.overrides(), [new]);
}

/// Bug: the audit event was written before the store had accepted the override.
#[test]
fn an_override_that_the_store_rejects_is_not_audited() {
    let (log, _listening) = Log::listen();
    let limits = RateLimitLayer::builder("2/hour").store(ScriptedStore::new(Script::Unavailable));
    let limits = limits.build().unwrap();
    let new = Override::new([("user", "alice")], "global", "5/hour").unwrap();
    assert!(limits.set_override(new).wait().is_err());
    assert!(log.about("tollgate::audit").is_empty());
}

/// Bug: expired overrides were removed only by a listing. A program that sets one every hour kept all of
/// them.
#[test]
fn expired_overrides_do_not_accumulate() {
    let store = std::sync::Arc::new(MemoryStore::new());
    let (builder, clock) = layer("2/hour");
    let limits = builder.store(std::sync::Arc::clone(&store)).build();
    let limits = limits.unwrap();
    let started = clock.now();
    for user in 0..10_u32 {
        let new = Override::new([("user", user)], "global", "5/hour").unwrap();
        let until = clock.now().saturating_add(Duration::from_mins(1));
        limits.set_override(new.until(until)).wait().unwrap();
        clock.advance(Duration::from_hours(1));
    }
    let kept = tollgate::Store::overrides(&store)
        .unwrap()
        .table()
        .list(started);
    assert_eq!(kept.len(), 1, "only the last one is kept: {kept:?}");
}

/// Metrics recorded by one thread.
#[derive(Default)]
struct Recorded(std::sync::Mutex<std::collections::BTreeMap<String, std::sync::Arc<AtomicU64>>>);

impl Recorded {
    fn named(&self, key: &metrics::Key) -> std::sync::Arc<AtomicU64> {
        let labels: Vec<&str> = key.labels().map(metrics::Label::value).collect();
        let name = format!("{}/{}", key.name(), labels.join("/"));
        let mut known = self.0.lock().unwrap();
        std::sync::Arc::clone(known.entry(name).or_default())
    }

    fn all(&self) -> Vec<(String, u64)> {
        let known = self.0.lock().unwrap();
        let value = |metric: &AtomicU64| metric.load(std::sync::atomic::Ordering::Relaxed);
        known
            .iter()
            .map(|(name, metric)| (name.clone(), value(metric)))
            .collect()
    }
}

impl metrics::Recorder for Recorded {
    fn describe_counter(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }
    fn describe_gauge(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }
    fn describe_histogram(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }

    fn register_counter(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
        metrics::Counter::from_arc(self.named(key))
    }

    fn register_gauge(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
        metrics::Gauge::from_arc(self.named(key))
    }

    fn register_histogram(
        &self,
        _: &metrics::Key,
        _: &metrics::Metadata<'_>,
    ) -> metrics::Histogram {
        metrics::Histogram::noop()
    }
}

#[test]
fn reloads_are_counted() {
    let recorded = Recorded::default();
    metrics::with_local_recorder(&recorded, || {
        let limits = RateLimitLayer::new("1/hour").unwrap();
        limits.replace_policy("2/hour").unwrap();
        limits.replace_policy("0/hour").unwrap_err();
        limits.replace_policy("3/hour").unwrap();
    });
    let expected = [
        ("tollgate_policy_reloads_total/failed".to_owned(), 1),
        ("tollgate_policy_reloads_total/ok".to_owned(), 2),
    ];
    let mut reloads = recorded.all();
    reloads.retain(|(series, _)| series.starts_with("tollgate_policy_reloads_total"));
    assert_eq!(reloads, expected);
}
