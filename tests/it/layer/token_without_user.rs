//! Verified tokens without a user: the `anon` and `service_role` keys of Supabase.

use axum::Router;
use tollgate::identity::Jwt;
use tollgate::policy::{ExplainRequest, Policy, PolicyBuilder, Rule, Tiers};
use tollgate::tier::TierResolver;
use tollgate::{Identity, ManualClock, RateLimitLayer, RateLimitLayerBuilder};

use super::{Answer, echo, send_from};
use crate::support::tokens::NOW;
use crate::support::tokens::{SECRET, claims, hs256, tampered};

const PEER: &str = "203.0.113.9:4711";

fn builder(policy: PolicyBuilder) -> RateLimitLayerBuilder {
    let jwt = Jwt::hs256(SECRET)
        .roles("role")
        .tenant("tenant")
        .tier("tier");
    RateLimitLayer::builder(policy)
        .identify(jwt.build().unwrap())
        .clock(ManualClock::new())
}

fn app(policy: PolicyBuilder) -> Router {
    echo().layer(builder(policy).build().unwrap())
}

/// Returns a token without a user, with further claims.
fn key(role: &str, more: &str) -> String {
    let exp = NOW + 3_600;
    let claims = format!(r#"{{"iss":"supabase","role":"{role}","exp":{exp}{more}}}"#);
    format!("Bearer {}", hs256(&claims))
}

async fn with(app: &Router, peer: &str, line: &str, authorization: &str) -> Answer {
    send_from(app, peer, line, &[("authorization", authorization)]).await
}

fn counted(answer: &Answer) -> (&str, u64) {
    let policy = answer.header("x-ratelimit-policy").unwrap();
    (policy, answer.number("x-ratelimit-remaining"))
}

#[tokio::test]
async fn an_anon_key_is_not_charged_as_a_wrong_token() {
    let app = app(Policy::builder()
        .authenticated("1000/hour")
        .anonymous("200/hour")
        .endpoint("POST /login", Rule::new("10/hour").name("login")));
    let anon = key("anon", "");
    for view in 0..100 {
        let answer = with(&app, PEER, "GET /", &anon).await;
        assert_eq!(counted(&answer), ("ip:global:1h", 199 - view));
    }
    let login = with(&app, PEER, "POST /login", &anon).await;
    assert_eq!((login.status, counted(&login)), (200, ("ip:login:1h", 9)));
    // A publishable key is not a token.
    let publishable = "Bearer sb_publishable_ACJWlzQHlZjBrEguHvfOxg_3BJgxAaH";
    for view in 0..70 {
        let answer = with(&app, PEER, "GET /", publishable).await;
        assert_eq!(counted(&answer), ("ip:global:1h", 98 - view));
    }
    // Another address has its own counter.
    let answer = with(&app, "198.51.100.7:1", "GET /", &anon).await;
    assert_eq!(counted(&answer), ("ip:global:1h", 199));
    // A signed-in user has a counter of its own.
    let user = format!("Bearer {}", hs256(&claims("alice")));
    let answer = with(&app, PEER, "GET /", &user).await;
    assert_eq!(counted(&answer), ("user:global:1h", 999));
}

#[tokio::test]
async fn a_service_role_key_can_be_exempt_by_its_role() {
    let app = app(Policy::builder()
        .everyone("2/hour")
        .exempt_role("service_role"));
    for _ in 0..10 {
        let answer = with(&app, PEER, "GET /", &key("service_role", "")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-ratelimit-limit"), None);
    }
    for status in [200, 200, 429] {
        let answer = with(&app, PEER, "GET /", &key("anon", "")).await;
        assert_eq!(answer.status, status);
    }
    // The role of a forged token is ignored.
    let forged = tampered(&key("service_role", ""));
    assert_eq!(with(&app, PEER, "GET /", &forged).await.status, 429);
}

#[tokio::test]
async fn a_rule_per_tenant_counts_the_key_for_its_tenant() {
    let app = app(Policy::builder()
        .anonymous("1000/hour")
        .authenticated("1000/hour")
        .rule("tenant", Rule::new("10/hour").per(["tenant"])));
    let key = |tenant: &str| key("anon", &format!(r#","tenant":"{tenant}""#));
    let first = with(&app, PEER, "GET /", &key("acme")).await;
    assert_eq!(counted(&first), ("tenant:tenant:1h", 9));
    let other_address = with(&app, "198.51.100.7:1", "GET /", &key("acme")).await;
    assert_eq!(counted(&other_address), ("tenant:tenant:1h", 8));
    let other_tenant = with(&app, PEER, "GET /", &key("umbrella")).await;
    assert_eq!(counted(&other_tenant), ("tenant:tenant:1h", 9));
    // The key shares the counter with the users of the tenant.
    let exp = NOW + 60;
    let user = hs256(&format!(r#"{{"sub":"alice","tenant":"acme","exp":{exp}}}"#));
    let user = with(&app, PEER, "GET /", &format!("Bearer {user}")).await;
    assert_eq!(counted(&user), ("tenant:tenant:1h", 7));
}

#[tokio::test]
async fn the_tier_of_the_token_is_not_used() {
    let tiers = || {
        Tiers::new("free")
            .tier("team", 5)
            .assign("tenant", "acme", "team")
    };
    let policy = || {
        Policy::builder()
            .tiers(tiers())
            .everyone("100/hour")
            .endpoint("GET /items", Rule::new("10/hour").name("items"))
    };
    let app = app(policy());
    let service = key("service_role", r#","tier":"team","tenant":"acme""#);
    let answer = with(&app, PEER, "GET /items", &service).await;
    assert_eq!(counted(&answer), ("ip:items:1h", 9));
    // No tier is looked up for the token.
    let resolver =
        TierResolver::new(|_: Identity| async { Ok::<_, std::io::Error>(Some("team".to_owned())) });
    let layer = builder(policy()).tier_resolver(resolver).build().unwrap();
    let app = echo().layer(layer);
    let answer = with(&app, PEER, "GET /items", &key("anon", "")).await;
    assert_eq!(counted(&answer), ("ip:items:1h", 9));
}

#[test]
fn explain_agrees_with_the_layer() {
    let policy = Policy::builder()
        .authenticated("1000/hour")
        .anonymous("100/hour")
        .rule("tenant", Rule::new("10/hour").per(["tenant"]))
        .exempt_role("service_role")
        .build()
        .unwrap();
    let explain = |identity: Identity| {
        let explain_request = ExplainRequest::new("GET /").unwrap().ip([203, 0, 113, 9]);
        policy.explain(&explain_request.identity(identity))
    };
    let anon = explain(Identity::unauthenticated().tenant("acme").tier("team"));
    let counters: Vec<_> = anon.counted_by.iter().map(|by| &*by.counter).collect();
    assert_eq!(counters, ["ip=203.0.113.9", "tenant=acme"]);
    let service = explain(Identity::unauthenticated().role("service_role"));
    assert!(service.exemption.is_some());
}
