//! Headers and bodies of allowed and denied responses.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::Response;
use tollgate::config::Config;
use tollgate::headers::HeaderSet;
use tollgate::policy::{Policy, Rule, Tiers};
use tollgate::response::{JsonEnvelope, ProblemJson};
use tollgate::{Decision, ManualClock, RateLimitLayer};

use super::{echo, layer, send};

#[tokio::test]
async fn allowed_responses_carry_the_usage_of_the_quota() {
    let (builder, _) = layer(Policy::builder().authenticated("5/hour"));
    let app = echo().layer(builder.build().unwrap());
    let alice = [("x-user", "alice")];

    let first = send(&app, "GET /", &alice).await;
    assert_eq!((first.status, first.body.as_str()), (200, "ran"));
    assert_eq!(first.header("x-ratelimit-limit"), Some("5"));
    assert_eq!(first.header("x-ratelimit-remaining"), Some("4"));
    assert_eq!(first.header("x-ratelimit-reset"), Some("1735693200"));
    assert_eq!(first.header("x-ratelimit-policy"), Some("user:global:1h"));
    assert_eq!(first.header("x-ratelimit-warning"), None);
    assert_eq!(first.header("retry-after"), None);

    for warned in [false, false, true, true] {
        let answer = send(&app, "GET /", &alice).await;
        assert_eq!(answer.header("x-ratelimit-warning").is_some(), warned);
    }
}

#[tokio::test]
async fn values_of_a_denial_are_consistent() {
    let (builder, clock) = layer(
        Policy::builder().authenticated(
            Rule::new("3/hour")
                .message("{used} of {limit} in the past {window}; again in {retry_in}.")
                .suggestion("Upgrade your plan."),
        ),
    );
    let app = echo().layer(builder.headers(HeaderSet::Both).build().unwrap());
    let alice = [("x-user", "alice"), ("x-request-id", "abc-1")];
    clock.advance(Duration::from_micros(1_234_567_891));
    for _ in 0..3 {
        assert_eq!(send(&app, "GET /", &alice).await.status, 200);
    }

    let denied = send(&app, "GET /", &alice).await;
    assert_eq!(denied.status, 429);
    let now = tollgate::Clock::now(&clock).as_micros();
    let wait = denied.number("retry-after");
    let reset = denied.number("x-ratelimit-reset");
    assert!(wait > 0);
    assert!(
        reset * 1_000_000 >= now && (reset - wait) * 1_000_000 <= now,
        "{reset} - {wait} differs from now"
    );
    assert_eq!(denied.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(denied.header("cache-control"), Some("no-store"));
    assert_eq!(denied.header("x-request-id"), Some("abc-1"));
    assert_eq!(
        denied.header("ratelimit").unwrap(),
        format!("\"user:global:1h\";r=0;t={wait}")
    );

    let error = &denied.json()["error"];
    assert_eq!(error["code"], "RATE_LIMIT_EXCEEDED");
    assert_eq!(error["request_id"], "abc-1");
    let details = &error["details"];
    assert_eq!(details["limit"], 3);
    assert_eq!(details["remaining"], 0);
    assert_eq!(details["retry_after"], wait);
    assert_eq!(details["policy"], "user:global:1h");
    assert_eq!(details["suggestion"], "Upgrade your plan.");
    let reset_at: jiff::Timestamp = details["reset_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(u64::try_from(reset_at.as_second()).unwrap(), reset);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .starts_with("3 of 3 in the past hour; again in ")
    );
    assert!(!denied.body.contains("alice"), "the body shows the caller");

    let decision: &Decision = denied.extensions.get().unwrap();
    assert!(decision.is_denied());
    assert_eq!(denied.extensions.len(), 1, "extensions of the request");
    assert_eq!(
        decision
            .retry_after()
            .unwrap()
            .as_micros()
            .div_ceil(1_000_000),
        u128::from(wait)
    );

    // A retry after `Retry-After` is allowed. One microsecond before the reset, it is not.
    let instant = Duration::from_micros(1);
    clock.advance(decision.retry_after().unwrap().saturating_sub(instant));
    assert_eq!(send(&app, "GET /", &alice).await.status, 429);
    clock.advance(instant);
    assert_eq!(send(&app, "GET /", &alice).await.status, 200);
}

#[tokio::test]
async fn the_tightest_quota_is_reported() {
    let policy = Policy::builder()
        .authenticated("100/hour")
        .endpoint(
            "GET /items/{id}",
            Rule::new("10/minute").limit("3/hour").name("items"),
        )
        .rule("tenant", Rule::new("50/day").per(["tenant"]));
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.headers(HeaderSet::Both).build().unwrap());
    let caller = [("x-user", "alice"), ("x-tenant", "acme")];

    let items = send(&app, "GET /items/7", &caller).await;
    assert_eq!(items.header("x-ratelimit-policy"), Some("user:items:1h"));
    let listed = items.header("ratelimit-policy").unwrap();
    assert_eq!(
        listed,
        "\"user:items:1m\";q=10;w=60, \"user:items:1h\";q=3;w=3600, \"user:global:1h\";q=100;w=3600, \
         \"tenant:tenant:1d\";q=50;w=86400"
    );
    let other = send(&app, "GET /", &caller).await;
    assert_eq!(other.header("x-ratelimit-policy"), Some("tenant:tenant:1d"));

    // Without a tenant, that rule does not count.
    let alone = send(&app, "GET /", &[("x-user", "bob")]).await;
    assert_eq!(alone.header("x-ratelimit-policy"), Some("user:global:1h"));
    assert_eq!(alone.header("x-ratelimit-remaining"), Some("99"));
}

#[tokio::test]
async fn tiers_multiply_and_explicit_limits_take_precedence() {
    let policy = Policy::builder()
        .tiers(
            Tiers::new("free")
                .tier("team", 5)
                .tier("big", 10)
                .assign("user", "vip", "big"),
        )
        .authenticated("100/hour")
        .anonymous("10/hour")
        .endpoint(
            "GET /mcp",
            Rule::new("20/hour").name("mcp").tier("team", ["33/hour"]),
        )
        .endpoint(
            "POST /login",
            Rule::new("7/hour").name("login").scale(false),
        );
    let (builder, _) = layer(policy);
    let app = echo().layer(builder.build().unwrap());
    let cases: [(&str, &str, &str, u64); 11] = [
        ("a", "", "GET /", 100),
        ("a", "team", "GET /", 500),
        ("a", "big", "GET /", 1_000),
        ("a", "no such tier", "GET /", 100),
        ("b", "", "GET /mcp", 20),
        ("b", "team", "GET /mcp", 33),
        ("b", "big", "GET /mcp", 200),
        ("c", "big", "POST /login", 7),
        ("vip", "", "GET /", 1_000),
        ("vip", "team", "GET /", 1_000),
        ("", "team", "GET /", 10),
    ];
    for (user, tier, line, limit) in cases {
        let mut headers = Vec::new();
        if !user.is_empty() {
            headers.push(("x-user", user));
        }
        if !tier.is_empty() {
            headers.push(("x-tier", tier));
        }
        let answer = send(&app, line, &headers).await;
        assert_eq!(
            answer.number("x-ratelimit-limit"),
            limit,
            "{user} {tier} {line}"
        );
    }
    // A change of tier keeps the usage.
    let team = send(&app, "GET /", &[("x-user", "a"), ("x-tier", "team")]).await;
    assert_eq!(team.number("x-ratelimit-remaining"), 500 - 5);
}

#[tokio::test]
async fn stacked_layers_leave_one_set_of_headers() {
    let (inner, _) = layer(Policy::builder().authenticated("3/hour"));
    let (outer, _) = layer(Policy::builder().authenticated("5/minute"));
    let app = echo()
        .layer(inner.build().unwrap())
        .layer(outer.build().unwrap());
    let alice = [("x-user", "alice")];
    let both = send(&app, "GET /", &alice).await;
    assert_eq!(both.header("x-ratelimit-limit"), Some("3"));
    assert_eq!(both.header("x-ratelimit-policy"), Some("user:global:1h"));
    for status in [200, 200, 429] {
        let answer = send(&app, "GET /", &alice).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("x-ratelimit-policy"), Some("user:global:1h"));
    }
    // The outer layer has counted all five requests.
    assert_eq!(
        send(&app, "GET /", &alice)
            .await
            .header("x-ratelimit-policy"),
        Some("user:global:1h")
    );
    let last = send(&app, "GET /", &alice).await;
    assert_eq!(last.header("x-ratelimit-policy"), Some("user:global:1m"));
    assert_eq!(last.status, 429);
}

#[tokio::test]
async fn denials_in_other_formats() {
    let problem = RateLimitLayer::builder("blocked").render(ProblemJson);
    let app = echo().layer(problem.build().unwrap());
    let answer = send(&app, "GET /", &[]).await;
    assert_eq!(answer.status, 429);
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(answer.json()["status"], 429);

    let webhook =
        RateLimitLayer::builder("blocked").render_with(|_| Response::new(r#"{"ok":true}"#));
    let app = echo().layer(webhook.build().unwrap());
    let answer = send(&app, "POST /", &[]).await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (200, r#"{"ok":true}"#)
    );

    let app = echo().layer(RateLimitLayer::new("blocked").unwrap());
    let answer = send(&app, "POST /", &[("content-type", "application/grpc")]).await;
    assert_eq!(
        (answer.status, answer.header("grpc-status")),
        (200, Some("8"))
    );
}

#[tokio::test]
async fn header_style_none_adds_no_headers() {
    let (builder, _) = layer("1/hour");
    let app = echo().layer(builder.headers(HeaderSet::None).build().unwrap());
    let allowed = send(&app, "GET /", &[]).await;
    assert!(
        allowed
            .headers
            .keys()
            .all(|name| !name.as_str().contains("ratelimit"))
    );
    let denied = send(&app, "GET /", &[]).await;
    assert_eq!(denied.status, 429);
    assert!(
        denied
            .headers
            .keys()
            .all(|name| !name.as_str().contains("ratelimit"))
    );
    assert!(denied.number("retry-after") > 0);
}

#[tokio::test]
async fn jitter_lengthens_retry_after_and_keeps_reset() {
    let (builder, _) = layer(Policy::builder().authenticated("1/hour"));
    let jitter = Duration::from_mins(10);
    let app = echo().layer(builder.retry_after_jitter(jitter).build().unwrap());
    let alice = [("x-user", "alice")];
    assert_eq!(send(&app, "GET /", &alice).await.status, 200);

    let mut waits = BTreeSet::new();
    for _ in 0..40 {
        let denied = send(&app, "GET /", &alice).await;
        let wait = denied.number("retry-after");
        assert!((3_600..=4_200).contains(&wait), "{wait}");
        assert_eq!(denied.json()["error"]["details"]["retry_after"], wait);
        assert_eq!(denied.header("x-ratelimit-reset"), Some("1735693200"));
        waits.insert(wait);
    }
    // 40 equal waits out of 601 have a probability below 10^-100.
    assert!(waits.len() > 1, "{waits:?}");
}

#[tokio::test]
async fn renderer_and_jitter_can_be_set_in_the_file() {
    let text = "[defaults]\nrender = 'problem+json'\nretry_after_jitter = '10 minutes'\n\
                [global]\nauthenticated = '1/hour'\nanonymous = '1/hour'\n";
    let limits = Config::from_toml(text).unwrap().into_layer();
    let app = echo().layer(limits.clock(ManualClock::new()).build().unwrap());
    assert_eq!(send(&app, "GET /", &[]).await.status, 200);
    let mut longest = 0;
    for _ in 0..40 {
        let denied = send(&app, "GET /", &[]).await;
        assert_eq!(
            denied.header("content-type"),
            Some("application/problem+json")
        );
        longest = longest.max(denied.number("retry-after"));
    }
    assert!((3_601..=4_200).contains(&longest), "{longest}");

    let code = Config::from_toml(text).unwrap().into_layer();
    let code = code
        .render(JsonEnvelope)
        .retry_after_jitter(Duration::ZERO)
        .clock(ManualClock::new());
    let app = echo().layer(code.build().unwrap());
    assert_eq!(send(&app, "GET /", &[]).await.status, 200);
    let denied = send(&app, "GET /", &[]).await;
    assert_eq!(denied.header("content-type"), Some("application/json"));
    assert_eq!(denied.number("retry-after"), 3_600);
}
