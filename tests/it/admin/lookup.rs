//! Look-up and reset of a caller.

use serde_json::json;
use tollgate::policy::{Policy, Rule, Tiers};

use super::{Served, assert_refused, limit};
use crate::support::http::layer;
use crate::support::scripted_store::{Script, ScriptedStore};

fn policy() -> tollgate::policy::PolicyBuilder {
    Policy::builder()
        .tiers(Tiers::new("free").tier("team", 5))
        .authenticated("100/hour")
        .anonymous("10/hour")
        .endpoint(
            "POST /login",
            Rule::new("3/hour").name("login").scale(false),
        )
        .endpoint("GET /tried", Rule::new("1/hour").name("tried").dry_run())
        .rule("tenant", Rule::new("50/minute").per(["tenant"]))
        .rule("member", Rule::new("20/minute").per(["tenant", "user"]))
        .rule("instance", Rule::new("5000/minute").per([]))
        .exempt_role("service")
}

#[tokio::test]
async fn a_look_up_explains_why_a_caller_is_blocked() {
    let served = Served::new(policy()).await;
    let free = served.look_up("alice").await;
    assert_eq!(
        (&free["blocked"], &free["known_by"]),
        (&json!(false), &json!("user"))
    );
    assert_eq!(
        free["because"],
        json!(["No limit is used up: the next request is admitted."])
    );

    for expected in [200, 200, 200, 429] {
        assert_eq!(served.send("POST /login", "alice").await.status, expected);
    }
    let blocked = served.look_up("alice").await;
    assert_eq!(blocked["blocked"], true);
    assert_eq!(
        blocked["because"],
        json!([
            "user:login:1h is used up: 3 of 3 in the past hour. The next request is admitted in \
             1 hour and 20 minutes."
        ])
    );
    assert_eq!(
        *limit(&blocked, "user:login:1h"),
        json!({
            "kind": "endpoint", "rule": "login", "policy": "user:login:1h",
            "counter": "user=alice", "quota": "3/1h", "limit": 3, "used": 3, "remaining": 0,
            "reset_at": "2025-01-01T01:20:00.000Z", "retry_after": 4_800, "blocked": true,
            "overridden": false, "mode": "enforce",
        })
    );
    assert_eq!(limit(&blocked, "all:instance:1m")["counter"], "all callers");
    assert_eq!(limit(&blocked, "user:tried:1h")["mode"], "dry-run");
    // To look charges nothing.
    assert_eq!(served.look_up("alice").await, blocked);
    assert_eq!(served.look_up("bob").await["blocked"], false);
}

/// All facts about the caller count: address, tenant, tier.
#[tokio::test]
async fn everything_that_is_known_counts() {
    let served = Served::new(policy()).await;
    let headers = [("x-user", "ada"), ("x-tenant", "acme")];
    served.client.send("GET /", &headers).await;
    let whom = json!({
        "subject": { "tenant": "acme", "user": "ada", "ip": "203.0.113.9" }, "tier": "team",
        "request": "POST /login",
    });
    let found = served.post("lookup", &whom).await.json();
    assert_eq!(
        (&found["known_by"], &found["tier"]),
        (&json!("user"), &json!("team"))
    );
    assert_eq!(limit(&found, "user:global:1h")["limit"], 500);
    assert_eq!(limit(&found, "tenant:tenant:1m")["used"], 1);
    let member = limit(&found, "tenant+user:member:1m");
    assert_eq!(
        (&member["used"], &member["counter"]),
        (&json!(1), &json!("tenant=acme, user=ada"))
    );
    let explanation = &found["explanation"];
    assert_eq!(explanation["endpoint"], "POST /login");
    assert_eq!(explanation["counted_by"][0]["policy"], "user:login:1h");
    assert!(explanation["text"].as_str().unwrap().contains("login"));

    let somewhere = json!({ "subject": { "ip": "203.0.113.9" } });
    let found = served.post("lookup", &somewhere).await.json();
    assert_eq!(
        (&found["known_by"], &found["tier"]),
        (&json!("ip"), &json!("free"))
    );
    assert_eq!(limit(&found, "ip:global:1h")["limit"], 10);

    let service = json!({ "subject": { "user": "jobs" }, "roles": ["service"] });
    let found = served.post("lookup", &service).await.json();
    assert_eq!(
        (&found["exempt"], &found["blocked"]),
        (&json!("role"), &json!(false))
    );
}

#[tokio::test]
async fn a_reset_clears_the_counters_of_one_caller_only() {
    let served = Served::new(policy()).await;
    let acme = |user| [("x-user", user), ("x-tenant", "acme")];
    for user in ["ada", "bob"] {
        for _ in 0..3 {
            served.client.send("POST /login", &acme(user)).await;
        }
    }
    let whole = json!({ "subject": { "user": "ada", "tenant": "acme" } });
    let reset = served.post("reset", &whole).await;
    assert_eq!(reset.json(), json!({ "reset": true }));
    let ada = served.post("lookup", &whole).await.json();
    for (policy, used) in [
        ("user:login:1h", 0),
        ("user:global:1h", 0),
        ("tenant+user:member:1m", 0),
        // These are not hers alone.
        ("tenant:tenant:1m", 6),
        ("all:instance:1m", 6),
    ] {
        assert_eq!(limit(&ada, policy)["used"], used, "{policy}");
    }
    assert_eq!(served.look_up("bob").await["blocked"], true);
    assert_eq!(
        served.client.send("POST /login", &acme("ada")).await.status,
        200
    );

    // By name, also what is shared.
    let tenant = json!({ "subject": { "tenant": "acme" }, "rule": "tenant" });
    assert_eq!(served.post("reset", &tenant).await.status, 200);
    let ada = served.post("lookup", &whole).await.json();
    assert_eq!(limit(&ada, "tenant:tenant:1m")["used"], 0);
    assert_eq!(limit(&ada, "user:login:1h")["used"], 1);

    for (rule, expected) in [
        ("tenants", "a rule of the policy: global"),
        ("tenant", "counts this"),
    ] {
        let wrong = json!({ "subject": { "user": "ada" }, "rule": rule });
        let refused = served.post("reset", &wrong).await;
        let message = assert_refused(&refused, 422, "INVALID_VALUE");
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn a_tier_that_there_is_not_is_refused() {
    let served = Served::new(policy()).await;
    let whom = json!({ "subject": { "user": "ada" }, "tier": "platinum" });
    let refused = served.post("lookup", &whom).await;
    let message = assert_refused(&refused, 422, "INVALID_VALUE");
    assert!(message.contains("free, team"), "{message}");
    let refused = served.post("lookup", r#"{"subject":{}}"#).await;
    assert_refused(&refused, 422, "INVALID_VALUE");
    let refused = served
        .post("lookup", r#"{"subject":{"ip":"localhost"}}"#)
        .await;
    let message = assert_refused(&refused, 422, "INVALID_VALUE");
    assert!(message.contains("203.0.113.9"), "{message}");
    let whom = json!({ "subject": { "user": "ada" }, "request": "login" });
    let refused = served.post("lookup", &whom).await;
    assert_refused(&refused, 422, "INVALID_VALUE");
}

/// A store that does not answer may have applied the change, so that the response promises nothing.
#[tokio::test]
async fn what_a_store_does_not_confirm_may_have_been_done() {
    let store = ScriptedStore::default();
    let (builder, clock) = layer(policy());
    let served = Served::of(builder.store(store.clone()).build().unwrap(), clock).await;
    store.follow(Script::Unavailable);
    let alice = json!({ "subject": { "user": "alice" } });
    let refused = served.post("reset", &alice).await;
    let message = assert_refused(&refused, 503, "STORE_UNAVAILABLE");
    assert!(message.contains("it is down"), "{message}");
    assert!(message.contains("may have been done"), "{message}");
}
