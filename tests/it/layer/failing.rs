//! Failing stores, panicking closures, wrong settings.

use axum::Router;
use axum::http::Response;
use axum::routing::get;
use tollgate::identity::{ApiKey, OnInvalidCredentials};
use tollgate::policy::{Count, OnStoreFailure, Policy, Rule, Tiers};
use tollgate::{Charge, Decision, Identity, ManualClock, MemoryStore, RateLimitLayer};

use super::{echo, send, send_from};
use crate::support::scripted_store::{Script, ScriptedStore};

#[tokio::test]
async fn a_failing_store_causes_no_500_and_no_429() {
    let login = Rule::new("10/hour").on_store_failure(OnStoreFailure::Deny);
    let policy = Policy::builder()
        .everyone("5/hour")
        .on_store_failure(OnStoreFailure::Allow)
        .endpoint("POST /login", login);
    let layer = RateLimitLayer::builder(policy)
        .store(ScriptedStore::new(Script::Unavailable))
        .build()
        .unwrap();
    let app = echo().layer(layer);

    let open = send(&app, "GET /", &[]).await;
    assert_eq!((open.status, open.body.as_str()), (200, "ran"));
    assert_eq!(
        open.header("x-ratelimit-limit"),
        None,
        "headers without a usage"
    );

    let closed = send(&app, "POST /login", &[]).await;
    assert_eq!(closed.status, 503);
    assert_eq!(closed.json()["error"]["code"], "RATE_LIMIT_UNAVAILABLE");
    assert!(closed.number("retry-after") >= 1);
}

#[tokio::test]
async fn while_the_store_fails_limits_hold_in_memory() {
    let policy = Policy::builder()
        .everyone("5/hour")
        .endpoint(
            "POST /login",
            Rule::new("2/hour").name("login").count(Count::failure()),
        )
        .endpoint(
            "POST /mail",
            Rule::new("1/hour")
                .on_store_failure(OnStoreFailure::Allow)
                .global(false),
        );
    let layer = RateLimitLayer::builder(policy)
        .store(ScriptedStore::new(Script::Unavailable))
        .build()
        .unwrap();
    let app = echo().layer(layer);

    // A refund is sent to the store that was charged: the local one.
    for _ in 0..3 {
        let login = send(&app, "POST /login", &[]).await;
        assert_eq!(
            (login.status, login.number("x-ratelimit-remaining")),
            (200, 2)
        );
        assert_eq!(login.header("x-ratelimit-policy"), Some("ip:login:1h"));
    }
    for _ in 0..2 {
        assert_eq!(send(&app, "GET /", &[]).await.status, 200);
    }
    let denied = send(&app, "GET /", &[]).await;
    assert_eq!(denied.status, 429);
    assert_eq!(denied.header("x-ratelimit-policy"), Some("ip:global:1h"));
    for _ in 0..5 {
        assert_eq!(
            send(&app, "POST /mail", &[]).await.status,
            200,
            "not allowed as configured"
        );
    }
}

/// Ten thousand failures per second do not cause ten thousand log lines.
#[tokio::test]
async fn a_failing_store_is_logged_once_a_second() {
    let (log, _listening) = crate::support::log::Log::listen();
    let clock = ManualClock::new();
    let layer = RateLimitLayer::builder("1000/hour")
        .store(ScriptedStore::new(Script::Unavailable))
        .clock(clock.clone())
        .build()
        .unwrap();
    let app = echo().layer(layer);
    for _ in 0..50 {
        send(&app, "GET /", &[]).await;
    }
    assert_eq!(log.about("rate_limit_store_failed").len(), 1);
    clock.advance(std::time::Duration::from_secs(1));
    send(&app, "GET /", &[]).await;
    let events = log.about("rate_limit_store_failed");
    assert_eq!(events.len(), 2);
    assert!(events[1].contains("suppressed=49"), "{events:?}");
}

#[tokio::test]
async fn extractors_work_while_the_store_fails() {
    let rule = Rule::new("5/hour").on_store_failure(OnStoreFailure::Allow);
    let layer = RateLimitLayer::builder(rule)
        .store(ScriptedStore::new(Script::Unavailable))
        .insert_extensions();
    let handler = |decision: Decision, charge: Charge| async move {
        charge.charge(3).await.unwrap();
        charge.charge_rule("tokens", 3).await.unwrap();
        decision.binding().is_none().to_string()
    };
    let app = Router::new()
        .route("/", get(handler))
        .layer(layer.build().unwrap());
    let answer = send(&app, "GET /", &[]).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "true"));
}

#[tokio::test]
async fn a_panicking_closure_fails_no_request() {
    std::panic::set_hook(Box::new(|_| ()));
    let policy = Policy::builder()
        .everyone(Rule::new("2/hour").cost_with(|_| panic!("cost")))
        .exempt_when(|_| panic!("exempt"));
    let layer = RateLimitLayer::builder(policy)
        .identify_with(|_| -> Option<Identity> { panic!("who") })
        .render_with(|_| -> Response<&'static str> { panic!("render") })
        .build()
        .unwrap();
    let app = echo().layer(layer);
    for status in [200, 200, 429, 429] {
        let answer = send(&app, "GET /", &[]).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:global:1h"));
    }
}

#[test]
fn networks_that_cover_all_addresses_are_rejected() {
    for world in ["0.0.0.0/0", "::/0", "::ffff:0.0.0.0/96"] {
        let policy = Policy::builder().everyone("5/hour").exempt_network(world);
        let message = policy.build().unwrap_err().to_string();
        assert!(message.contains(world), "{message}");
        assert!(message.contains("exempt_when"), "{message}");
        let layer = RateLimitLayer::builder("5/hour").trusted_proxies([world]);
        let message = layer.build().unwrap_err().to_string();
        assert!(message.contains("trust_all_proxies_insecure"), "{message}");
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let policy = Policy::builder()
        .anonymous("0/hour")
        .category("reads", "5/hour")
        .endpoint("get /a", "5/hour")
        .endpoint("GET /a/:id", "5/hour")
        .endpoint("GET /b/{id}", "5/hour")
        .endpoint("GET /b/{name}", "6/hour")
        .endpoint("GET /c", Rule::in_category("reeds"))
        .endpoint(
            "GET /d",
            Rule::new("5/hour").name("d").tier("gold", ["6/hour"]),
        )
        .endpoint(
            "GET /e",
            Rule::new("5/hour").name("e").message("{retri_in}"),
        )
        .rule("reads", "7/hour")
        .rule("many", Rule::new("1/s").per(["a", "b", "c", "d", "e"]))
        .exempt_network("10.0.0.0/64");
    let problems = RateLimitLayer::builder(policy)
        .trusted_proxies(["garbage"])
        .failed_auth_quota("sometimes")
        .build()
        .unwrap_err();
    let message = problems.to_string();
    for expected in [
        "0/hour",
        "get /a",
        "`{id}` instead of `:id`",
        "GET /b/{id}",
        "reeds",
        "gold",
        "many",
        "10.0.0.0/64",
        "garbage",
        "sometimes",
        "a rule called `reads` already",
    ] {
        assert!(
            message.contains(expected),
            "{expected} is missing in\n{message}"
        );
    }
}

#[test]
fn settings_without_effect_are_rejected() {
    let policy = Policy::builder()
        .tiers(Tiers::new("free").tier("team", 2))
        .authenticated(Rule::new("5/hour").global(false))
        .category("a", Rule::new("5/hour").name("other"))
        .endpoint("GET /a", Rule::in_category("a").scale(false))
        .endpoint("GET /b", Rule::in_category("a").stack(true))
        .endpoint(
            "GET /c",
            Rule::new("5/hour")
                .tier("team", ["6/hour"])
                .tier("team", ["7/hour"]),
        )
        .rule("r", Rule::in_category("a").limit("5/hour"));
    let problems = policy.build().unwrap_err();
    let message = problems.to_string();
    for expected in [
        "global: global",
        "a: name",
        "GET /a: scale",
        "GET /b: stack",
        "each tier only once",
        "r: category",
    ] {
        assert!(
            message.contains(expected),
            "{expected} is missing in\n{message}"
        );
    }
}

#[test]
fn messages_are_checked_when_built() {
    let policy = Policy::builder().everyone(Rule::new("5/hour").message("in {retri_in}"));
    let problems = RateLimitLayer::new(policy).unwrap_err();
    assert!(problems.to_string().contains("retri_in"), "{problems}");
}

#[test]
fn too_many_quotas_for_one_request_are_rejected() {
    let mut policy = Policy::builder().everyone("1/s");
    for index in 0..8 {
        policy = policy.rule(format!("r{index}"), Rule::new("5/hour").per([]));
    }
    let problems = policy.build().unwrap_err();
    assert!(problems.to_string().contains("at most 8"), "{problems}");
}

#[tokio::test]
async fn clones_and_routes_share_their_counters() {
    let layer = RateLimitLayer::builder("3/hour")
        .store(MemoryStore::new())
        .build()
        .unwrap();
    let one = echo().layer(layer.clone());
    let other = echo().layer(layer);
    assert_eq!(
        send(&one, "GET /", &[])
            .await
            .number("x-ratelimit-remaining"),
        2
    );
    assert_eq!(
        send(&other, "PUT /b", &[])
            .await
            .number("x-ratelimit-remaining"),
        1
    );
    assert_eq!(
        send(&one, "GET /no/such", &[])
            .await
            .number("x-ratelimit-remaining"),
        0
    );
    assert_eq!(send(&other, "GET /", &[]).await.status, 429);
}

#[tokio::test]
async fn a_request_that_makes_a_source_panic_is_charged() {
    let verify = |key: &str| -> Option<Identity> { panic!("a panic on purpose: {}", key.len()) };
    let app = |reject: bool| {
        let layer = RateLimitLayer::builder("100/hour")
            .identify(ApiKey::header("x-api-key", verify).unwrap())
            .failed_auth_quota("2/minute")
            .clock(ManualClock::new());
        let layer = if reject {
            layer.on_invalid_credentials(OnInvalidCredentials::Reject)
        } else {
            layer
        };
        echo().layer(layer.build().unwrap())
    };
    for (reject, status) in [(false, 200), (true, 401)] {
        let app = app(reject);
        for expected in [status, status, 429] {
            let headers = [("x-api-key", "any")];
            let answer = send_from(&app, "203.0.113.9:1", "GET /", &headers).await;
            assert_eq!(answer.status, expected);
        }
        assert_eq!(send(&app, "GET /", &[]).await.status, 200);
    }
}

#[test]
fn too_many_tiers_are_rejected() {
    let tiers = (0..100_000).fold(Tiers::new("free"), |tiers, number| {
        tiers.tier(format!("tier-{number}"), 2)
    });
    let policy = Policy::builder().everyone("5/hour").tiers(tiers);
    let problems = policy.build().unwrap_err().to_string();
    assert!(problems.contains("at most 256 tiers"), "{problems}");
}
