//! Dry runs and maintenance.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tollgate::policy::{Count, Policy, Rule, RuleMode};
use tollgate::{Charge, Identity};

use super::{Answer, echo, layer, request, send};
use crate::support::log::Log;

#[tokio::test]
async fn a_dry_run_counts_and_logs_but_neither_denies_nor_adds_headers() {
    let (log, _listening) = Log::listen();
    let policy = Policy::builder().everyone("100/hour").endpoint(
        "GET /a",
        Rule::new("2/hour").name("strict").mode(RuleMode::DryRun),
    );
    let (builder, clock) = layer(policy);
    let layer = builder.headers(tollgate::headers::HeaderSet::Both).build();
    let layer = layer.unwrap();
    let app = echo().layer(layer.clone());
    for used in 1..=4_u64 {
        let answer = send(&app, "GET /a", &[]).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:global:1h"));
        assert_eq!(answer.number("x-ratelimit-remaining"), 100 - used);
        assert!(
            !answer
                .header("ratelimit-policy")
                .unwrap()
                .contains("strict")
        );
    }
    let events = log.about("rate_limit_dry_run");
    assert_eq!(
        events.len(),
        1,
        "one event for the third request; the fourth is sampled out: {events:?}"
    );
    let would_deny = || layer.statistics().totals.would_deny;
    assert_eq!(would_deny(), 2, "the third and the fourth request");
    for part in [
        "policy=\"ip:strict:1h\"",
        "limit=2",
        "used=2",
        "endpoint=\"/a\"",
    ] {
        assert!(events[0].contains(part), "no {part} in {}", events[0]);
    }
    assert!(log.about("rate_limit_exceeded").is_empty());

    clock.advance(Duration::from_hours(2));
    send(&app, "GET /a", &[]).await;
    assert_eq!(would_deny(), 2, "the quota is not used up");
}

#[tokio::test]
async fn dry_runs_are_independent_of_each_other() {
    let (log, _listening) = Log::listen();
    let policy = Policy::builder()
        .rule("one", Rule::new("1/hour").mode(RuleMode::DryRun))
        .rule("three", Rule::new("3/hour").mode(RuleMode::DryRun));
    let (builder, _) = layer(policy);
    let layer = builder.build().unwrap();
    let app = echo().layer(layer.clone());
    for _ in 0..5 {
        let answer = send(&app, "GET /", &[]).await;
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.header("x-ratelimit-limit"),
            None,
            "no rule is enforced"
        );
    }
    let statistics = layer.statistics();
    let would_deny = |name: &str| {
        let mut policies = statistics.policies.iter();
        let found = policies.find(|policy| *policy.name == *name);
        found.map(|policy| policy.would_deny)
    };
    assert_eq!(would_deny("ip:one:1h"), Some(4));
    assert_eq!(would_deny("ip:three:1h"), Some(2));
    assert_eq!(log.about("rate_limit_dry_run").len(), 2, "one event each");
}

#[tokio::test]
async fn a_denied_request_is_not_counted_by_a_dry_run() {
    let (log, _listening) = Log::listen();
    let policy = Policy::builder()
        .everyone("2/hour")
        .rule("three", Rule::new("3/day").mode(RuleMode::DryRun));
    let (builder, clock) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    for _ in 0..50 {
        send(&app, "GET /", &[]).await;
    }
    clock.advance(Duration::from_hours(2));
    assert_eq!(
        send(&app, "GET /", &[]).await.status,
        200,
        "the third request"
    );
    assert!(log.about("rate_limit_dry_run").is_empty());
    send(&app, "GET /", &[]).await;
    assert_eq!(log.about("rate_limit_dry_run").len(), 1);
}

#[tokio::test]
async fn a_dry_run_quota_does_not_replace_the_category() {
    let policy = Policy::builder()
        .category("secrets", Rule::new("2/hour"))
        .endpoint(
            "GET /a",
            Rule::in_category("secrets")
                .limit("1000/hour")
                .name("a")
                .mode(RuleMode::DryRun),
        );
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    let statuses = [200, 200, 429];
    for status in statuses {
        let answer = send(&app, "GET /a", &[]).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:secrets:1h"));
    }
}

#[tokio::test]
async fn a_dry_run_can_count_by_outcome() {
    let (log, _listening) = Log::listen();
    let failed = Rule::new("2/hour")
        .count(Count::failure())
        .mode(RuleMode::DryRun);
    let policy = Policy::builder().endpoint("POST /login", failed.name("login"));
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    for _ in 0..10 {
        send(&app, "POST /login", &[]).await;
    }
    assert!(
        log.about("rate_limit_dry_run").is_empty(),
        "no request has failed"
    );
    for _ in 0..3 {
        send(&app, "POST /login", &[("x-answer", "401")]).await;
    }
    assert_eq!(
        log.about("rate_limit_dry_run").len(),
        1,
        "the third failure"
    );
}

#[tokio::test]
async fn handlers_can_charge_a_dry_run() {
    let (log, _listening) = Log::listen();
    let policy = Policy::builder()
        .everyone("100/hour")
        .rule("tokens", Rule::new("1000/hour").mode(RuleMode::DryRun));
    let (builder, _) = layer(policy);
    let handler = |charge: Charge| async move {
        charge.charge_rule("tokens", 999).await.unwrap();
    };
    let layer = builder.insert_extensions().build().unwrap();
    let app = Router::new().route("/", get(handler)).layer(layer);
    for _ in 0..2 {
        assert_eq!(send(&app, "GET /", &[]).await.status, 200);
    }
    assert_eq!(log.about("ip:tokens:1h").len(), 1);
}

#[tokio::test]
async fn maintenance_ends_by_itself() {
    let (log, _listening) = Log::listen();
    let (_, clock) = layer("1/hour");
    let now = tollgate::Clock::now(&clock);
    let until = now.saturating_add(Duration::from_mins(1));
    let policy = Policy::builder().everyone("1/hour").disabled_until(until);
    let (builder, clock) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    for _ in 0..3 {
        let answer = send(&app, "GET /", &[]).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-ratelimit-limit"), None);
    }
    let audited = log.about("tollgate::audit");
    assert_eq!(audited.len(), 1, "sampled: {audited:?}");
    assert!(audited[0].contains("why=\"maintenance\""), "{audited:?}");

    clock.advance(Duration::from_micros(59_999_999));
    assert_eq!(
        send(&app, "GET /", &[]).await.header("x-ratelimit-limit"),
        None
    );
    clock.advance(Duration::from_micros(1));
    assert_eq!(
        send(&app, "GET /", &[])
            .await
            .number("x-ratelimit-remaining"),
        0
    );
    assert_eq!(send(&app, "GET /", &[]).await.status, 429);
}

#[tokio::test]
async fn exemptions_by_role_leave_an_audit_event() {
    let (log, _listening) = Log::listen();
    let policy = Policy::builder()
        .everyone("1/hour")
        .exempt_role("service")
        .exempt_subject("user", "ada")
        .exempt_route("GET /health");
    let layer = tollgate::RateLimitLayer::builder(policy).identify_with(|head| {
        let user = Identity::user(head.header("x-user")?);
        Some(user.role(head.header("x-role").unwrap_or("none")))
    });
    let app = echo().layer(layer.build().unwrap());
    let robot = [("x-user", "robot"), ("x-role", "service")];
    for (line, headers) in [
        ("GET /health", &[][..]),
        ("GET /", &robot),
        ("GET /", &[("x-user", "ada")]),
    ] {
        let response = tower::ServiceExt::oneshot(app.clone(), request(line, headers));
        assert_eq!(Answer::read(response.await.unwrap()).await.status, 200);
    }
    let audited = log.about("tollgate::audit");
    let why = |line: &String| line.split("why=").nth(1).map(str::to_owned);
    let why: Vec<_> = audited.iter().filter_map(why).collect();
    assert_eq!(why.len(), 2, "{audited:?}");
    assert!(
        why[0].starts_with("\"role\"") && why[1].starts_with("\"subject\""),
        "{why:?}"
    );
}

/// Bug: `count` of a dry-run endpoint was applied to its enforced category as well.
#[tokio::test]
async fn settings_of_a_dry_run_do_not_apply_to_enforced_rules() {
    let dry_run = Rule::in_category("items").limit("10/hour");
    let dry_run = dry_run
        .count(Count::failure())
        .message("{limit} is too many");
    let policy = Policy::builder()
        .category("items", Rule::new("2/hour"))
        .endpoint("GET /a", dry_run.mode(RuleMode::DryRun));
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    for left in [1, 0] {
        let answer = send(&app, "GET /a", &[]).await;
        assert_eq!(answer.number("x-ratelimit-remaining"), left);
    }
    let answer = send(&app, "GET /a", &[]).await;
    assert_eq!(answer.status, 429);
    let message = answer.json()["error"]["message"].to_string();
    assert!(!message.contains("too many"), "{message}");
}

/// A dry run of an endpoint's quota does not disable the enforced global rule.
#[tokio::test]
async fn a_dry_run_does_not_disable_the_global_rule() {
    let own = Rule::new("1000/hour").name("a").global(false);
    let policy = Policy::builder()
        .everyone("2/hour")
        .endpoint("GET /a", own.mode(RuleMode::DryRun));
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    for status in [200, 200, 429] {
        let answer = send(&app, "GET /a", &[]).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:global:1h"));
    }
}

#[test]
fn more_than_24_quotas_with_dry_runs_are_a_policy_error() {
    let with_dry_runs = |dry_runs: usize| {
        let policy = Policy::builder().everyone("1/s");
        (0..dry_runs).fold(policy, |policy, index| {
            policy.rule(
                format!("r{index}"),
                Rule::new("5/hour").mode(RuleMode::DryRun),
            )
        })
    };
    let problems = with_dry_runs(24).build().unwrap_err().to_string();
    let expected = "at most 24 quotas for one request, all rules and dry runs together";
    assert!(problems.contains(expected), "{problems}");
    with_dry_runs(23).build().unwrap();
}
