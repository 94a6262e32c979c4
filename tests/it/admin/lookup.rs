//! Look-up and reset of a caller.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate::policy::{Policy, Rule, RuleMode, Tiers};

use super::{Served, assert_rejected, limit};
use crate::support::http::{echo, layer, send};
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
        .endpoint(
            "GET /tried",
            Rule::new("1/hour").name("tried").mode(RuleMode::DryRun),
        )
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
             1 hour."
        ])
    );
    assert_eq!(
        *limit(&blocked, "user:login:1h"),
        json!({
            "kind": "endpoint", "rule": "login", "policy": "user:login:1h",
            "counter": "user=alice", "quota": "3/1h", "limit": 3, "used": 3, "remaining": 0,
            "reset_at": "2025-01-01T01:00:00.000Z", "retry_after": 3_600, "blocked": true,
            "blocked_since": "2025-01-01T00:00:00.000Z", "overridden": false, "mode": "enforce",
        })
    );
    assert_eq!(limit(&blocked, "all:instance:1m")["counter"], "all callers");
    assert_eq!(limit(&blocked, "user:tried:1h")["mode"], "dry-run");
    // A look-up charges nothing.
    assert_eq!(served.look_up("alice").await, blocked);
    assert_eq!(served.look_up("bob").await["blocked"], false);
}

/// A look-up uses address, tenant, tier and roles of the caller.
#[tokio::test]
async fn a_look_up_uses_all_attributes_of_the_caller() {
    let served = Served::new(policy()).await;
    let headers = [("x-user", "ada"), ("x-tenant", "acme")];
    served.client.send("GET /", &headers).await;
    let caller = json!({
        "subject": { "tenant": "acme", "user": "ada", "ip": "203.0.113.9" }, "tier": "team",
        "request": "POST /login",
    });
    let found = served.post("lookup", &caller).await.json();
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

    let by_address = json!({ "subject": { "ip": "203.0.113.9" } });
    let found = served.post("lookup", &by_address).await.json();
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
    let ada_of_acme = json!({ "subject": { "user": "ada", "tenant": "acme" } });
    let reset = served.post("reset", &ada_of_acme).await;
    assert_eq!(reset.json(), json!({ "reset": true }));
    let ada = served.post("lookup", &ada_of_acme).await.json();
    for (policy, used) in [
        ("user:login:1h", 0),
        ("user:global:1h", 0),
        ("tenant+user:member:1m", 0),
        // Other callers share these.
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

    // A named rule is reset although callers share its counter.
    let tenant = json!({ "subject": { "tenant": "acme" }, "rule": "tenant" });
    assert_eq!(served.post("reset", &tenant).await.status, 200);
    let ada = served.post("lookup", &ada_of_acme).await.json();
    assert_eq!(limit(&ada, "tenant:tenant:1m")["used"], 0);
    assert_eq!(limit(&ada, "user:login:1h")["used"], 1);

    for (rule, expected) in [
        ("tenants", "a rule of the policy: global"),
        ("tenant", "counts this"),
    ] {
        let wrong = json!({ "subject": { "user": "ada" }, "rule": rule });
        let rejected = served.post("reset", &wrong).await;
        let message = assert_rejected(&rejected, 422, "INVALID_VALUE");
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn invalid_look_ups_are_rejected() {
    let served = Served::new(policy()).await;
    let caller = json!({ "subject": { "user": "ada" }, "tier": "platinum" });
    let rejected = served.post("lookup", &caller).await;
    let message = assert_rejected(&rejected, 422, "INVALID_VALUE");
    assert!(message.contains("free, team"), "{message}");
    let rejected = served.post("lookup", r#"{"subject":{}}"#).await;
    assert_rejected(&rejected, 422, "INVALID_VALUE");
    let rejected = served
        .post("lookup", r#"{"subject":{"ip":"localhost"}}"#)
        .await;
    let message = assert_rejected(&rejected, 422, "INVALID_VALUE");
    assert!(message.contains("203.0.113.9"), "{message}");
    let caller = json!({ "subject": { "user": "ada" }, "request": "login" });
    let rejected = served.post("lookup", &caller).await;
    assert_rejected(&rejected, 422, "INVALID_VALUE");
}

/// A store without a reply may have applied the change. The response states this.
#[tokio::test]
async fn unconfirmed_changes_are_reported_as_possibly_applied() {
    let store = ScriptedStore::default();
    let (builder, clock) = layer(policy());
    let served = Served::of(builder.store(store.clone()).build().unwrap(), clock).await;
    store.follow(Script::Unavailable);
    let alice = json!({ "subject": { "user": "alice" } });
    let rejected = served.post("reset", &alice).await;
    let message = assert_rejected(&rejected, 503, "STORE_UNAVAILABLE");
    assert!(message.contains("it is down"), "{message}");
    assert!(message.contains("may have been applied"), "{message}");
}

/// A look-up by name does not have the tier of the token. It used the default tier: other limits, other
/// waits than the caller's own response.
#[tokio::test]
async fn look_up_shows_limit_and_wait_of_the_callers_own_response() {
    let policy = Policy::builder()
        .tiers(Tiers::new("free").tier("team", 5))
        .everyone("10/hour");
    let served = Served::new(policy).await;
    let alice = [("x-user", "alice"), ("x-tier", "team")];
    let mut last = None;
    for _ in 0..60 {
        served.clock.advance(Duration::from_secs(40));
        last = Some(served.client.send("GET /", &alice).await);
    }
    let denied = last.unwrap();
    assert_eq!(
        (denied.status, denied.number("x-ratelimit-limit")),
        (429, 50)
    );

    let question = json!({ "subject": { "user": "alice" }, "request": "GET /" });
    let found = served.post("lookup", &question).await.json();
    assert_eq!(
        (&found["tier"], &found["tier_assumed"]),
        (&json!("team"), &json!(false))
    );
    assert_eq!(found["explanation"]["tier"]["name"], "team");
    let global = limit(&found, "user:global:1h");
    assert_eq!(global["limit"], 50);
    assert_eq!(global["retry_after"], denied.number("retry-after"));
    let body = &denied.json()["error"]["details"];
    assert_eq!(global["reset_at"], body["reset_at"]);

    // The tier of a caller that was not denied is unknown here, unless its identity names none.
    let bob = served.look_up("bob").await;
    assert_eq!(
        (&bob["tier"], &bob["tier_assumed"]),
        (&json!("free"), &json!(true))
    );
    for _ in 0..11 {
        served.send("GET /", "carol").await;
    }
    let carol = served.look_up("carol").await;
    assert_eq!(
        (&carol["tier"], &carol["tier_assumed"]),
        (&json!("free"), &json!(false))
    );
    // A chosen tier takes precedence.
    let chosen = json!({ "subject": { "user": "alice" }, "tier": "free" });
    let found = served.post("lookup", &chosen).await.json();
    assert_eq!(limit(&found, "user:global:1h")["limit"], 10);
    // The tier may have changed after an hour.
    served.clock.advance(Duration::from_hours(1));
    assert_eq!(served.look_up("alice").await["tier_assumed"], true);
}

#[tokio::test]
async fn look_up_shows_since_when_a_caller_is_blocked() {
    let served = Served::new(policy()).await;
    let since = async || {
        let found = served.look_up("alice").await;
        limit(&found, "user:login:1h")["blocked_since"].clone()
    };
    for _ in 0..3 {
        served.send("POST /login", "alice").await;
    }
    assert_eq!(
        since().await,
        Value::Null,
        "used up, but no request was denied"
    );
    served.clock.advance(Duration::from_mins(4));
    for _ in 0..2 {
        assert_eq!(served.send("POST /login", "alice").await.status, 429);
        assert_eq!(since().await, json!("2025-01-01T00:04:00.000Z"));
        served.clock.advance(Duration::from_mins(3));
    }
    let alice = json!({ "subject": { "user": "alice" } });
    assert_eq!(served.post("reset", &alice).await.status, 200);
    assert_eq!(since().await, Value::Null);
    for _ in 0..4 {
        served.send("POST /login", "alice").await;
    }
    assert_eq!(since().await, json!("2025-01-01T00:10:00.000Z"));
    // A higher limit, which is used up a minute later.
    served.clock.advance(Duration::from_mins(1));
    let new = json!({ "subject": { "user": "alice" }, "rule": "login", "limit": "4/hour" });
    assert_eq!(served.post("overrides", &new).await.status, 200);
    for status in [200, 429] {
        assert_eq!(served.send("POST /login", "alice").await.status, status);
    }
    assert_eq!(since().await, json!("2025-01-01T00:11:00.000Z"));
}

/// They were listed with the counter of callers without an address, which are other callers.
#[tokio::test]
async fn look_up_without_an_ip_lists_no_limits_per_ip() {
    let login = Rule::new("3/hour").name("login").per(["ip"]);
    let policy = Policy::builder()
        .everyone("100/hour")
        .endpoint("POST /login", login);
    let served = Served::new(policy).await;
    let listed = |found: &Value| -> Vec<String> {
        let limits = found["limits"].as_array().unwrap().iter();
        limits
            .map(|limit| limit["policy"].as_str().unwrap().to_owned())
            .collect()
    };
    let alice = served.look_up("alice").await;
    assert_eq!(listed(&alice), ["user:global:1h"]);
    assert_eq!(alice["ip_limits_omitted"], 1);
    let because = alice["because"][0].as_str().unwrap();
    assert!(
        because.contains("unless a limit or an override for its IP"),
        "{because}"
    );
    let with_ip = json!({ "subject": { "user": "alice", "ip": "203.0.113.9" } });
    let found = served.post("lookup", &with_ip).await.json();
    assert_eq!(found["ip_limits_omitted"], 0);
    assert_eq!(listed(&found), ["user:global:1h", "ip:login:1h"]);
}

/// Bug: it cleared the counter of the callers without an address.
#[tokio::test]
async fn reset_without_an_ip_clears_no_counters_per_ip() {
    let login = Rule::new("3/hour").name("login").per(["ip"]);
    let policy = Policy::builder()
        .everyone("100/hour")
        .endpoint("POST /login", login);
    let served = Served::new(policy).await;
    // Without a peer address, as behind a Unix socket.
    let app = echo().layer(served.limits.clone());
    for expected in [200, 200, 200, 429] {
        assert_eq!(send(&app, "POST /login", &[]).await.status, expected);
    }
    let by_name = json!({ "subject": { "user": "alice" }, "rule": "login" });
    let rejected = served.post("reset", &by_name).await;
    let message = assert_rejected(&rejected, 422, "INVALID_VALUE");
    let expected = "a rule that counts this caller; `login` counts per IP: pass `ip`";
    assert!(message.contains(expected), "{message}");
    let all_of_alice = json!({ "subject": { "user": "alice" } });
    assert_eq!(served.post("reset", &all_of_alice).await.status, 200);
    assert_eq!(send(&app, "POST /login", &[]).await.status, 429);

    let local = [("x-user", "alice")];
    for expected in [200, 200, 200, 429] {
        let answer = served.client.send("POST /login", &local).await;
        assert_eq!(answer.status, expected);
    }
    let with_ip = json!({ "subject": { "user": "alice", "ip": "127.0.0.1" }, "rule": "login" });
    assert_eq!(served.post("reset", &with_ip).await.status, 200);
    assert_eq!(served.client.send("POST /login", &local).await.status, 200);
}
