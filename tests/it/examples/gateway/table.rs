//! One row per endpoint and tier: limit, policy name and subject of the counter.

use std::collections::HashMap;

use super::rows::{Per, ROWS, TIERS};
use super::{Caller, Gateway, usage_of};

/// Every request comes from a new caller.
#[tokio::test]
async fn every_endpoint_counts_as_in_its_row_in_every_tier() {
    let gateway = Gateway::start().await;
    let mut number = 0;
    for row in &ROWS {
        for (tier, limit) in TIERS.into_iter().zip(row.limits) {
            number += 1;
            let user = format!("user-{number}");
            let caller = Caller::anonymous(number).and_user(&user, tier);
            let answer = gateway.send(&row.line("42"), &caller).await;
            let who = match row.per {
                Per::Ip => "ip",
                Per::User => "user",
            };
            let policy = format!("{who}:{}:1h", row.rule);
            let place = format!("{} as {tier}", row.endpoint);
            assert_eq!(answer.status, row.status(), "{place}");
            assert_eq!(usage_of(&answer), (&*policy, limit, limit - 1), "{place}");
            if row.status() == 200 {
                let endpoint = row.endpoint.replace(":id", "{id}");
                assert_eq!(answer.json()["endpoint"], *endpoint, "{place}");
            }
        }
    }
}

/// Unauthenticated callers count per IP, with the limits of the free tier and 100 requests in all.
#[tokio::test]
async fn unauthenticated_callers_count_per_ip() {
    let gateway = Gateway::start().await;
    for (number, row) in ROWS.iter().enumerate() {
        let caller = Caller::anonymous(number + 1);
        let answer = gateway.send(&row.line("42"), &caller).await;
        let [free, ..] = row.limits;
        let (rule, limit) = if free > 100 {
            ("global", 100)
        } else {
            (row.rule, free)
        };
        let policy = format!("ip:{rule}:1h");
        let expected = (&*policy, limit, limit - 1);
        assert_eq!(usage_of(&answer), expected, "{}", row.endpoint);
    }
}

/// Rows with their own limit have their own counter, the three endpoints that read secrets share one,
/// and the global rule counts every request.
#[tokio::test]
async fn only_endpoints_of_one_category_share_a_counter() {
    let gateway = Gateway::start().await;
    let caller = Caller::anonymous(1).and_user("alice", "team");
    let (mut used, mut sent) = (HashMap::new(), 0);
    for id in ["42", "a%20b"] {
        for row in &ROWS {
            sent += 1;
            let of_rule: &mut u64 = used.entry(row.rule).or_default();
            *of_rule = if row.rule == "global" {
                sent
            } else {
                *of_rule + 1
            };
            let answer = gateway.send(&row.line(id), &caller).await;
            let [_, limit, _] = row.limits;
            let (_, shown_limit, remaining) = usage_of(&answer);
            let place = format!("{} with {id}", row.endpoint);
            assert_eq!(
                (shown_limit, remaining),
                (limit, limit - *of_rule),
                "{place}"
            );
        }
    }
}

/// A free user reads a secret: both limits count.
#[tokio::test]
async fn the_tighter_of_two_limits_is_enforced_and_both_are_charged() {
    let gateway = Gateway::start().await;
    let caller = Caller::user("alice", "free");
    let first = gateway.send("GET /v1/secrets/42", &caller).await;
    assert_eq!(usage_of(&first), ("user:secrets:1h", 500, 499));
    let all = gateway.send("GET /v1/projects", &caller).await;
    assert_eq!(usage_of(&all), ("user:global:1h", 1000, 998));

    let denied = gateway.exhaust("GET /v1/secrets/42", &caller, 499).await;
    assert_eq!(usage_of(&denied), ("user:secrets:1h", 500, 0));
    // A denied request is charged to neither.
    let all = gateway.send("GET /v1/projects", &caller).await;
    assert_eq!(usage_of(&all), ("user:global:1h", 1000, 1000 - 502));
    // The other endpoints that read secrets use the same counter.
    for line in ["GET /v1/secrets", "GET /v1/projects/7/secrets"] {
        assert_eq!(gateway.send(line, &caller).await.status, 429, "{line}");
    }
    let writes = gateway.send("POST /v1/secrets", &caller).await;
    assert_eq!(usage_of(&writes), ("user:secrets-create:1h", 100, 99));
}

/// A path below a listed one counts on its category, so that a new endpoint is limited before it has
/// a limit of its own.
#[tokio::test]
async fn an_unlisted_path_counts_on_its_category() {
    const CATEGORIES: [(&str, &str, [u64; 3]); 9] = [
        ("GET /v1/api-service-info/stripe", "ip:public:1h", [100; 3]),
        ("POST /auth/v1/magic-link", "user:auth:1h", [60; 3]),
        ("GET /auth/v1/user", "user:auth:1h", [60; 3]),
        (
            "GET /v1/secrets/42/versions",
            "user:secrets:1h",
            [500, 2500, 5000],
        ),
        ("POST /v1/mcp/tools", "user:mcp:1h", [200, 1000, 10_000]),
        (
            "POST /v1/mcp/secrets/lis",
            "user:mcp:1h",
            [200, 1000, 10_000],
        ),
        ("POST /v1/ai/images", "user:ai:1h", [100, 500, 1000]),
        (
            "GET /v1/compliance/reports",
            "user:audit:1h",
            [100, 500, 1000],
        ),
        (
            "GET /v1/projects/42/more",
            "user:global:1h",
            [1000, 5000, 10_000],
        ),
    ];
    let gateway = Gateway::start().await;
    let mut number = 0;
    for (line, policy, limits) in CATEGORIES {
        for (tier, limit) in TIERS.into_iter().zip(limits) {
            number += 1;
            let caller = Caller::anonymous(number).and_user(&format!("user-{number}"), tier);
            let answer = gateway.send(line, &caller).await;
            assert!([404, 405].contains(&answer.status), "{line}");
            assert_eq!(
                usage_of(&answer),
                (policy, limit, limit - 1),
                "{line} as {tier}"
            );
        }
    }
}

/// `HEAD` runs the handlers of `GET`. A preflight counts on its own quota; the gateway does not answer
/// it, so the global rule is charged as well.
#[tokio::test]
async fn heads_count_and_preflights_have_a_quota_of_their_own() {
    let gateway = Gateway::start().await;
    let caller = Caller::user("alice", "free");
    let head = gateway.send("HEAD /v1/secrets/42", &caller).await;
    assert_eq!(usage_of(&head), ("user:secrets:1h", 500, 499));
    for row in &ROWS {
        let (_, path) = row.endpoint.split_once(' ').unwrap();
        let mut browser = Caller::anonymous(1);
        browser.headers.extend([
            ("origin", "https://app.example".to_owned()),
            ("access-control-request-method", "POST".to_owned()),
        ]);
        let answer = gateway.send(&format!("OPTIONS {path}"), &browser).await;
        assert_eq!(
            answer.header("x-ratelimit-policy"),
            Some("ip:preflight:1m"),
            "{path}"
        );
    }
    let after = gateway.send("GET /nowhere", &Caller::anonymous(1)).await;
    let left = 100 - ROWS.len() as u64 - 1;
    assert_eq!(usage_of(&after), ("ip:global:1h", 100, left));
}
