//! Statistics.

use std::time::Duration;

use tollgate::observe::{EndpointStatistics, Offender, Statistics};
use tollgate::policy::{OnStoreFailure, Policy, Rule, RuleMode};
use tollgate::{Clock, Subject, Timestamp};

use super::Scene;
use crate::support::scripted_store::{Script, ScriptedStore};

fn policy() -> Policy {
    Policy::builder()
        .authenticated("100/hour")
        .endpoint("GET /items/{id}", Rule::new("4/hour").name("items"))
        .endpoint("POST /login", Rule::new("2/hour").name("login").per(["ip"]))
        .endpoint(
            "GET /try",
            Rule::new("1/hour").name("try").mode(RuleMode::DryRun),
        )
        .exempt_route("GET /health")
        .build()
        .unwrap()
}

fn endpoint<'a>(statistics: &'a Statistics, name: &str) -> &'a EndpointStatistics {
    let mut known = statistics.endpoints.iter();
    known
        .find(|endpoint| *endpoint.name == *name)
        .unwrap_or_else(|| panic!("no {name} in {:?}", statistics.endpoints))
}

fn bounds(offender: &Offender) -> (u64, u64, &str) {
    (offender.at_least, offender.denied, &offender.policy)
}

#[tokio::test]
async fn statistics_contain_every_request() {
    let scene = Scene::new(policy());
    for number in 0..6 {
        let status = scene.user(&format!("GET /items/{number}"), "alice").await;
        assert_eq!(status, if number < 4 { 200 } else { 429 });
    }
    for user in ["bob", "carol"] {
        assert_eq!(scene.user("GET /elsewhere", user).await, 200);
    }
    for _ in 0..3 {
        assert_eq!(scene.user("GET /try", "bob").await, 200);
        assert_eq!(scene.user("GET /health", "bob").await, 200);
    }
    for _ in 0..3 {
        scene.address("POST /login", 7).await;
    }

    let statistics = scene.limits.statistics();
    let totals = statistics.totals;
    assert_eq!(totals.allowed, 4 + 2 + 3 + 2);
    assert_eq!(totals.denied, 2 + 1);
    assert_eq!(totals.exempt, 3);
    assert_eq!(totals.would_deny, 2);
    // 4 of 4, and 2 of 2; no other caller is near a limit.
    assert_eq!(totals.warned, 2);
    assert_eq!((totals.uncounted, totals.unavailable), (0, 0));
    assert_eq!(statistics.denied_last_hour, 3);
    assert_eq!(statistics.denied_last_day, 3);
    assert_eq!(
        statistics.denied_the_day_before, None,
        "the layer is younger"
    );

    let items = endpoint(&statistics, "GET /items/{id}");
    assert_eq!((items.allowed, items.denied), (4, 2));
    // Three, two, one, none left of four; and the denied had nothing.
    let average = items.average_remaining.unwrap();
    assert!((average - 1.5 / 6.0).abs() < 0.001, "{average}");
    assert_eq!(endpoint(&statistics, "*").allowed, 2);
    assert_eq!(&*statistics.endpoints[0].name, "GET /items/{id}");
    let named = |name: &str| {
        let mut policies = statistics.policies.iter();
        let found = policies.find(|policy| *policy.name == *name);
        found.map(|policy| (policy.allowed, policy.denied, policy.would_deny))
    };
    assert_eq!(named("user:items:1h"), Some((4, 2, 0)));
    assert_eq!(named("ip:login:1h"), Some((2, 1, 0)));
    assert_eq!(named("user:try:1h"), Some((0, 0, 2)));

    let offenders = &statistics.offenders;
    assert_eq!(offenders.len(), 2);
    assert_eq!(
        offenders[0].subject.as_subject(),
        Subject::from([("user", "alice")])
    );
    assert_eq!(bounds(&offenders[0]), (2, 2, "user:items:1h"));
    assert_eq!(bounds(&offenders[1]), (1, 1, "ip:login:1h"));
    assert_eq!(statistics.violators.count, 2);
    assert!(statistics.violators.exact);
    let debug = format!("{statistics:?}");
    assert!(!debug.contains("alice"), "{debug}");
}

#[tokio::test]
async fn statistics_expire() {
    let scene = Scene::new("2/minute, fixed-window");
    let began = scene.clock.now();
    for _ in 0..3 {
        scene.user("GET /", "alice").await;
    }
    scene.clock.advance(Duration::from_mins(1));
    for _ in 0..4 {
        scene.user("GET /", "alice").await;
    }
    let statistics = scene.limits.statistics();
    let minutes = statistics.last_hour;
    assert_eq!(minutes.len(), 60);
    let tail: Vec<_> = minutes[57..]
        .iter()
        .map(|minute| (minute.from, minute.allowed, minute.denied))
        .collect();
    let minute = |number: u64| {
        let since = Duration::from_mins(1) * u32::try_from(number).unwrap();
        Timestamp::from_micros(began.as_micros()).saturating_add(since)
    };
    let before = Timestamp::from_micros(began.as_micros() - 60_000_000);
    assert_eq!(tail, [(before, 0, 0), (minute(0), 2, 1), (minute(1), 2, 2)]);
    assert_eq!(statistics.last_day.len(), 96);
    assert_eq!(statistics.last_day[95].allowed, 4);

    scene.clock.advance(Duration::from_mins(59));
    let later = scene.limits.statistics();
    assert_eq!(later.denied_last_hour, 2, "the first minute is over");
    assert_eq!(later.denied_last_day, 3);

    scene
        .clock
        .set(began.saturating_add(Duration::from_hours(24)));
    let later = scene.limits.statistics();
    assert_eq!((later.denied_last_hour, later.denied_last_day), (0, 0));
    assert!(later.offenders.is_empty());
    assert_eq!(later.violators.count, 0);
    assert_eq!(later.endpoints[0].average_remaining, None);
    assert_eq!(later.totals.denied, 3, "totals stay");
    scene.clock.advance(Duration::from_hours(23));
    let later = scene.limits.statistics();
    assert_eq!(later.denied_the_day_before, None, "it was not all of it");
    scene.clock.advance(Duration::from_mins(45));
    assert_eq!(scene.limits.statistics().denied_the_day_before, Some(3));
}

#[tokio::test]
async fn another_policy_goes_on_counting() {
    let scene = Scene::new(policy());
    for _ in 0..5 {
        scene.user("GET /items/1", "alice").await;
    }
    let reordered = Policy::builder()
        .endpoint("GET /other", "1/hour")
        .endpoint("GET /items/{id}", Rule::new("6/hour").name("items"));
    scene.limits.replace_policy(reordered).unwrap();
    for _ in 0..3 {
        scene.user("GET /items/1", "alice").await;
    }
    let statistics = scene.limits.statistics();
    let items = endpoint(&statistics, "GET /items/{id}");
    assert_eq!((items.allowed, items.denied), (6, 2));
    assert_eq!(statistics.totals.allowed, 6);
}

/// A caller that waits, one that does not, and one whose shared counter is used up by others.
#[tokio::test]
async fn retries_are_tracked() {
    let policy = Policy::builder()
        .authenticated("1/minute, fixed-window")
        .endpoint(
            "GET /shared",
            Rule::new("1/minute, fixed-window")
                .name("shared")
                .per([])
                .global(false),
        );
    let scene = Scene::new(policy);
    for user in ["patient", "hasty"] {
        scene.user("GET /", user).await;
        assert_eq!(scene.user("GET /", user).await, 429);
    }
    assert_eq!(scene.user("GET /shared", "first").await, 200);
    assert_eq!(scene.user("GET /shared", "second").await, 429);
    scene.clock.advance(Duration::from_secs(59));
    assert_eq!(scene.user("GET /", "hasty").await, 429);
    let retries = scene.limits.statistics().retries;
    assert_eq!((retries.admitted, retries.too_soon), (0, 1));
    assert_eq!(retries.success(), None);

    scene.clock.advance(Duration::from_secs(1));
    assert_eq!(scene.user("GET /", "patient").await, 200);
    assert_eq!(scene.user("GET /", "hasty").await, 200);
    assert_eq!(scene.user("GET /shared", "first").await, 200);
    assert_eq!(scene.user("GET /shared", "second").await, 429);
    let retries = scene.limits.statistics().retries;
    assert_eq!((retries.admitted, retries.denied_again), (2, 1));
    assert!((retries.success().unwrap() - 2.0 / 3.0).abs() < 1e-9);
}

/// A caller with many denials does not change the share of ordinary callers.
#[tokio::test]
async fn share_of_ordinary_callers_excludes_heavy_callers() {
    let scene = Scene::new("10/hour");
    for user in 0..99 {
        scene.user("GET /", &format!("user-{user}")).await;
    }
    for _ in 0..11 {
        scene.user("GET /", "busy").await;
    }
    let share = scene.limits.statistics().ordinary_denied.unwrap();
    assert!((share - 1.0 / 110.0).abs() < 1e-9, "{share}");
    for _ in 0..1_000 {
        scene.user("GET /", "busy").await;
    }
    let share = scene.limits.statistics().ordinary_denied.unwrap();
    assert!(
        share.abs() < 1e-9,
        "a caller with a thousand requests is not ordinary: {share}"
    );
}

/// A scene whose store follows a script.
pub(super) fn scripted(policy: Policy) -> (Scene, ScriptedStore) {
    let store = ScriptedStore::default();
    let scene = Scene::with(policy, |builder| builder.store(store.clone()));
    (scene, store)
}

#[tokio::test]
async fn a_store_that_fails_is_seen_and_so_is_its_recovery() {
    let strict = Rule::new("5/hour")
        .name("strict")
        .on_store_failure(OnStoreFailure::Deny);
    let lenient = Rule::new("5/hour")
        .name("lenient")
        .on_store_failure(OnStoreFailure::Allow);
    let policy = Policy::builder()
        .endpoint("GET /strict", strict)
        .endpoint("GET /lenient", lenient)
        .endpoint("GET /local", Rule::new("1/hour").name("local"));
    let (scene, store) = scripted(policy.build().unwrap());
    assert_eq!(scene.user("GET /strict", "alice").await, 200);
    assert_eq!(scene.limits.statistics().store.since, None);

    store.follow(Script::Unavailable);
    let failed_at = scene.clock.now();
    assert_eq!(scene.user("GET /strict", "alice").await, 503);
    scene.clock.advance(Duration::from_secs(5));
    assert_eq!(scene.user("GET /lenient", "alice").await, 200);
    assert_eq!(scene.user("GET /local", "alice").await, 200);
    assert_eq!(scene.user("GET /local", "alice").await, 429);
    let statistics = scene.limits.statistics();
    assert_eq!(statistics.store.since, Some(failed_at));
    let totals = statistics.totals;
    assert_eq!(totals.store_failures, 4);
    assert_eq!((totals.unavailable, totals.uncounted), (1, 1));
    assert_eq!((totals.allowed, totals.denied), (2, 1), "{totals:?}");

    store.follow(Script::Reply);
    scene.user("GET /strict", "alice").await;
    assert_eq!(scene.limits.statistics().store.since, None);
}

#[tokio::test]
async fn layer_without_statistics_collects_none() {
    let scene = Scene::with(
        "1/hour",
        tollgate::RateLimitLayerBuilder::without_statistics,
    );
    for _ in 0..200 {
        scene.user("GET /", "alice").await;
    }
    let statistics = scene.limits.statistics();
    assert_eq!(statistics.totals.denied, 0);
    assert!(statistics.offenders.is_empty() && statistics.alerts.is_empty());
}

/// Threads count each for themselves, and nothing is lost.
#[test]
fn threads_do_not_lose_each_others_counts() {
    let scene = Scene::new("1000/hour");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let scene = &scene;
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .build()
                    .unwrap();
                runtime.block_on(async {
                    for _ in 0..1_100 {
                        scene.user("GET /", &format!("user-{thread}")).await;
                    }
                });
            });
        }
    });
    let statistics = scene.limits.statistics();
    assert_eq!(statistics.totals.allowed, 8_000);
    assert_eq!(statistics.totals.denied, 800);
    assert_eq!(statistics.denied_last_hour, 800);
    assert!(statistics.offenders.iter().all(|one| one.at_least == 100));
    assert_eq!(statistics.policies[0].allowed, 8_000);
}
