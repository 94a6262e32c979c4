//! One row per endpoint and tier: limit, name and whose counter, as the tables say.

use std::collections::HashMap;

use super::rows::{Per, ROWS, TIERS};
use super::{Caller, Gateway, told};

/// Everybody here asks for the first time.
#[tokio::test]
async fn every_endpoint_counts_as_its_row_says_in_every_tier() {
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
            assert_eq!(told(&answer), (&*policy, limit, limit - 1), "{place}");
            if row.status() == 200 {
                let endpoint = row.endpoint.replace(":id", "{id}");
                assert_eq!(answer.json()["endpoint"], *endpoint, "{place}");
            }
        }
    }
}

/// Whoever has no token is known by address, has what the free tier has, and a hundred requests
/// altogether.
#[tokio::test]
async fn the_anonymous_count_by_address() {
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
        assert_eq!(told(&answer), expected, "{}", row.endpoint);
    }
}

/// Rows with a number of their own have a counter of their own; the three that read secrets
/// share one; and whatever is asked for, the global limit knows.
#[tokio::test]
async fn counters_are_shared_where_the_tables_say_so_and_nowhere_else() {
    let gateway = Gateway::start().await;
    let caller = Caller::anonymous(1).and_user("alice", "team");
    let (mut used, mut asked) = (HashMap::new(), 0);
    for id in ["42", "a%20b"] {
        for row in &ROWS {
            asked += 1;
            let of_rule: &mut u64 = used.entry(row.rule).or_default();
            *of_rule = if row.rule == "global" {
                asked
            } else {
                *of_rule + 1
            };
            let answer = gateway.send(&row.line(id), &caller).await;
            let [_, limit, _] = row.limits;
            let (_, told_limit, remaining) = told(&answer);
            let place = format!("{} with {id}", row.endpoint);
            assert_eq!(
                (told_limit, remaining),
                (limit, limit - *of_rule),
                "{place}"
            );
        }
    }
}

/// The example of the document: a free user reads a secret, and both limits count.
#[tokio::test]
async fn the_tighter_of_two_limits_is_enforced_and_both_are_charged() {
    let gateway = Gateway::start().await;
    let caller = Caller::user("alice", "free");
    let first = gateway.send("GET /v1/secrets/42", &caller).await;
    assert_eq!(told(&first), ("user:secrets:1h", 500, 499));
    let all = gateway.send("GET /v1/projects", &caller).await;
    assert_eq!(told(&all), ("user:global:1h", 1000, 998));

    let denied = gateway.exhaust("GET /v1/secrets/42", &caller, 499).await;
    assert_eq!(told(&denied), ("user:secrets:1h", 500, 0));
    // What was denied is charged to neither.
    let all = gateway.send("GET /v1/projects", &caller).await;
    assert_eq!(told(&all), ("user:global:1h", 1000, 1000 - 502));
    // And the other ways to read a secret are the same counter.
    for line in ["GET /v1/secrets", "GET /v1/projects/7/secrets"] {
        assert_eq!(gateway.send(line, &caller).await.status, 429, "{line}");
    }
    let writes = gateway.send("POST /v1/secrets", &caller).await;
    assert_eq!(told(&writes), ("user:secrets-create:1h", 100, 99));
}

/// What has no row, but is below one that has: its category counts it, so that a new endpoint
/// is limited before anybody has given it a number.
#[tokio::test]
async fn what_has_no_row_counts_on_its_category() {
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
                told(&answer),
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
    assert_eq!(told(&head), ("user:secrets:1h", 500, 499));
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
    assert_eq!(told(&after), ("ip:global:1h", 100, left));
}
