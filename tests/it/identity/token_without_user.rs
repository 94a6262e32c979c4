//! A verified token without a user, such as a public key, beside a credential that is refused.

use axum::Router;
use tollgate::identity::{Jwt, JwtAlgorithm, JwtKeys, KeySet, OnInvalidCredentials};
use tollgate::policy::{Policy, Rule};
use tollgate::{ManualClock, RateLimitLayer, RateLimitLayerBuilder};

use super::NOW;
use crate::support::http::{Answer, echo, send_from};
use crate::support::tokens::{SECRET, claims, hs256, tampered};

fn builder() -> RateLimitLayerBuilder {
    let policy = Policy::builder()
        .everyone("1000/hour")
        .endpoint("/team", Rule::new("1/hour").per(["tenant"]))
        .exempt_role("service_role");
    let source = || Jwt::hs256(SECRET).roles("role").tenant("tenant");
    RateLimitLayer::builder(policy)
        .clock(ManualClock::new())
        .identify(source().build().unwrap())
        .identify(source().cookie("session").build().unwrap())
}

/// A token without a user. Some are public: they are part of the web page.
fn without_user(claims: &str) -> String {
    hs256(&format!(r#"{{{claims},"exp":{}}}"#, NOW + 600))
}

fn expired() -> String {
    hs256(&format!(r#"{{"sub":"alice","exp":{}}}"#, NOW - 7_200))
}

async fn send(app: &Router, path: &str, bearer: &str, cookie: &str) -> Answer {
    let bearer = format!("Bearer {bearer}");
    let cookie = format!("session={cookie}");
    let headers = [("authorization", &*bearer), ("cookie", &*cookie)];
    send_from(app, "203.0.113.9:1", &format!("GET {path}"), &headers).await
}

#[tokio::test]
async fn refused_tokens_get_401_beside_a_public_key() {
    let limits = builder().on_invalid_credentials(OnInvalidCredentials::Reject);
    let app = echo().layer(limits.build().unwrap());
    let anon = without_user(r#""role":"anon""#);
    let forged = tampered(&hs256(&claims("alice")));
    for refused in [&forged, &expired()] {
        assert_eq!(send(&app, "/", &anon, refused).await.status, 401);
        assert_eq!(send(&app, "/", refused, &anon).await.status, 401);
        let two = format!("{anon}; session={refused}");
        assert_eq!(send(&app, "/", "", &two).await.status, 401);
    }
    assert_eq!(send(&app, "/", &anon, "").await.status, 200);
    assert_eq!(send(&app, "/", &anon, "opaque").await.status, 200);
    let alice = hs256(&claims("alice"));
    assert_eq!(send(&app, "/", &anon, &alice).await.status, 200);
}

#[tokio::test]
async fn wrong_tokens_are_charged_beside_a_public_key() {
    let app = echo().layer(builder().failed_auth_quota("2/hour").build().unwrap());
    let anon = without_user(r#""role":"anon""#);
    let forged = tampered(&hs256(&claims("alice")));
    for _ in 0..5 {
        assert_eq!(send(&app, "/", &anon, &expired()).await.status, 200);
    }
    for status in [200, 200, 429] {
        assert_eq!(send(&app, "/", &anon, &forged).await.status, status);
    }
    assert_eq!(send(&app, "/", &anon, "").await.status, 200);
}

/// Otherwise a caller would evade the limit of its tenant with a cookie that is not accepted.
#[tokio::test]
async fn tenant_and_roles_of_a_token_apply_beside_a_refused_one() {
    let app = echo().layer(builder().build().unwrap());
    let machine = without_user(r#""tenant":"acme""#);
    let forged = tampered(&hs256(&claims("alice")));
    assert_eq!(send(&app, "/team", &machine, "").await.status, 200);
    for refused in [&forged, &expired()] {
        assert_eq!(send(&app, "/team", &machine, refused).await.status, 429);
    }
    let service = without_user(r#""role":"service_role""#);
    let exempt = send(&app, "/", &service, &expired()).await;
    assert_eq!(exempt.header("x-ratelimit-limit"), None);
}

#[tokio::test]
async fn tokens_get_503_while_there_are_no_keys() {
    let keys = KeySet::new(JwtKeys::none());
    let jwt = || {
        let jwt = Jwt::builder().algorithms([JwtAlgorithm::Hs256]);
        jwt.key_set(&keys).build().unwrap()
    };
    let builder = || {
        let limits = RateLimitLayer::builder("1000/hour").clock(ManualClock::new());
        limits.identify(jwt())
    };
    let rejecting = echo().layer(
        builder()
            .on_invalid_credentials(OnInvalidCredentials::Reject)
            .build()
            .unwrap(),
    );
    let lenient = echo().layer(builder().build().unwrap());
    let alice = hs256(&claims("alice"));
    let unavailable = send(&rejecting, "/", &alice, "").await;
    assert_eq!(unavailable.status, 503);
    assert_eq!(
        unavailable.json()["error"]["code"],
        "RATE_LIMIT_UNAVAILABLE"
    );
    assert!(unavailable.number("retry-after") >= 1);
    assert_eq!(send(&lenient, "/", &alice, "").await.status, 200);
    keys.replace(JwtKeys::secret(SECRET).unwrap());
    assert_eq!(send(&rejecting, "/", &alice, "").await.status, 200);
    let forged = tampered(&alice);
    assert_eq!(send(&rejecting, "/", &forged, "").await.status, 401);
}
