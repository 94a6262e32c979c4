//! Wrong credentials never affect valid ones.

use axum::Router;
use tollgate::identity::{ApiKey, Jwt, OnInvalidCredentials};
use tollgate::policy::Policy;
use tollgate::{Identity, ManualClock, RateLimitLayer, RateLimitLayerBuilder};

use super::{Answer, echo, send, send_from};
use crate::support::tokens::NOW;
use crate::support::tokens::{RSA_1, RSA_1_PRIVATE, SECRET, claims, hs256, rs256, tampered};

const MANY: &str = "1000000/hour";
const PEER: &str = "203.0.113.9:4711";

fn builder() -> RateLimitLayerBuilder {
    RateLimitLayer::builder(MANY)
        .identify(Jwt::hs256(SECRET).build().unwrap())
        .clock(ManualClock::new())
}

fn app() -> Router {
    echo().layer(builder().build().unwrap())
}

fn valid(user: &str) -> String {
    format!("Bearer {}", hs256(&claims(user)))
}

fn forged(index: usize) -> String {
    let token = hs256(&claims(&format!("mallory-{index}")));
    format!("Bearer {}", tampered(&token))
}

fn expired(seconds: u64) -> String {
    let claims = format!(r#"{{"sub":"alice","exp":{}}}"#, NOW - seconds);
    format!("Bearer {}", hs256(&claims))
}

async fn with(app: &Router, authorization: &str) -> Answer {
    send_from(app, PEER, "GET /", &[("authorization", authorization)]).await
}

fn policy_of(answer: &Answer) -> &str {
    answer.header("x-ratelimit-policy").unwrap()
}

#[tokio::test]
async fn after_61_invalid_tokens_an_uncached_valid_one_is_accepted() {
    let app = app();
    for index in 0..61 {
        let answer = with(&app, &forged(index)).await;
        let expected = if index < 60 { 200 } else { 429 };
        assert_eq!(answer.status, expected, "{index}");
    }
    for user in 0..100 {
        let answer = with(&app, &valid(&format!("user-{user}"))).await;
        assert_eq!((answer.status, policy_of(&answer)), (200, "user:global:1h"));
    }
    // A request without a credential is not affected either.
    assert_eq!(send_from(&app, PEER, "GET /", &[]).await.status, 200);
    let denied = with(&app, &forged(99)).await;
    assert_eq!(
        (denied.status, policy_of(&denied)),
        (429, "ip:invalid-credentials:1m")
    );
    assert!(denied.number("retry-after") > 0);
    // Another client has its own limit.
    let other = [("authorization", &*forged(99))];
    let answer = send_from(&app, "198.51.100.1:1", "GET /", &other).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn callers_without_an_address_are_never_denied_for_wrong_tokens() {
    let app = app();
    for index in 0..200 {
        let answer = send(&app, "GET /", &[("authorization", &forged(index))]).await;
        assert_eq!((answer.status, policy_of(&answer)), (200, "ip:global:1h"));
    }
    let answer = send(&app, "GET /", &[("authorization", &valid("alice"))]).await;
    assert_eq!((answer.status, policy_of(&answer)), (200, "user:global:1h"));
}

#[tokio::test]
async fn an_uncached_valid_api_key_is_accepted_after_wrong_ones() {
    let verify = |key: &str| Some(Identity::new("api-key", key.strip_prefix("valid-")?));
    for source in [
        ApiKey::header("x-api-key", verify).unwrap(),
        ApiKey::known("x-api-key", ["valid-1"]).unwrap(),
    ] {
        let layer = RateLimitLayer::builder(MANY)
            .identify(source)
            .clock(ManualClock::new());
        let app = echo().layer(layer.build().unwrap());
        for index in 0..70 {
            let key = format!("bad-{index}");
            let answer = send_from(&app, PEER, "GET /", &[("x-api-key", &key)]).await;
            assert_eq!(answer.status, if index < 60 { 200 } else { 429 });
        }
        let answer = send_from(&app, PEER, "GET /", &[("x-api-key", "valid-1")]).await;
        assert_eq!(
            (answer.status, policy_of(&answer)),
            (200, "api-key:global:1h")
        );
    }
}

#[tokio::test]
async fn expired_tokens_are_neither_charged_nor_denied() {
    let early = {
        let (nbf, exp) = (NOW + 3_600, NOW + 7_200);
        let claims = format!(r#"{{"sub":"alice","nbf":{nbf},"exp":{exp}}}"#);
        format!("Bearer {}", hs256(&claims))
    };
    for (reject, status) in [(false, 200), (true, 401)] {
        let layer = builder().failed_auth_quota("3/minute");
        let layer = if reject {
            layer.on_invalid_credentials(OnInvalidCredentials::Reject)
        } else {
            layer
        };
        let app = echo().layer(layer.build().unwrap());
        for _ in 0..50 {
            assert_eq!(with(&app, &expired(61)).await.status, status);
            assert_eq!(with(&app, &early).await.status, status);
        }
        // None of them was charged.
        for index in 0..4 {
            let expected = if index < 3 { status } else { 429 };
            assert_eq!(with(&app, &forged(index)).await.status, expected);
        }
        assert_eq!(with(&app, &expired(61)).await.status, status);
        assert_eq!(with(&app, &early).await.status, status);
    }
}

#[tokio::test]
async fn a_token_that_expired_within_the_leeway_is_valid() {
    let app = app();
    for (seconds, policy) in [
        (30, "user:global:1h"),
        (60, "user:global:1h"),
        (61, "ip:global:1h"),
    ] {
        let answer = with(&app, &expired(seconds)).await;
        assert_eq!((answer.status, policy_of(&answer)), (200, policy));
    }
}

#[tokio::test]
async fn a_token_that_the_second_source_accepts_is_not_charged() {
    let layer = RateLimitLayer::builder(MANY)
        .identify(Jwt::hs256(SECRET).build().unwrap())
        .identify(Jwt::rs256_pem(RSA_1).build().unwrap())
        .clock(ManualClock::new());
    let app = echo().layer(layer.build().unwrap());
    for user in 0..150 {
        let token = rs256(RSA_1_PRIVATE, "", &claims(&format!("user-{user}")));
        let answer = with(&app, &format!("Bearer {token}")).await;
        assert_eq!((answer.status, policy_of(&answer)), (200, "user:global:1h"));
    }
    // Two sources reject the token, and it is charged once.
    for index in 0..61 {
        let expected = if index < 60 { 200 } else { 429 };
        assert_eq!(with(&app, &forged(index)).await.status, expected, "{index}");
    }
}

#[tokio::test]
async fn a_valid_key_beside_a_wrong_token_is_not_charged() {
    let verify = |key: &str| (key == "valid").then(|| Identity::new("api-key", "one"));
    for source in [
        ApiKey::header("x-api-key", verify).unwrap(),
        ApiKey::known("x-api-key", ["valid"]).unwrap(),
    ] {
        let layer = builder().identify(source).failed_auth_quota("2/minute");
        let app = echo().layer(layer.build().unwrap());
        let wrong = forged(0);
        let token = ("authorization", wrong.as_str());
        for _ in 0..20 {
            let both = [token, ("x-api-key", "valid")];
            let answer = send_from(&app, PEER, "GET /", &both).await;
            assert_eq!(
                (answer.status, policy_of(&answer)),
                (200, "api-key:global:1h")
            );
        }
        // Two wrong credentials in one request are charged once.
        for status in [200, 200, 429] {
            let both = [token, ("x-api-key", "bad")];
            let answer = send_from(&app, PEER, "GET /", &both).await;
            assert_eq!(answer.status, status);
        }
        let both = [token, ("x-api-key", "valid")];
        assert_eq!(send_from(&app, PEER, "GET /", &both).await.status, 200);
    }
}

#[tokio::test]
async fn the_quota_of_wrong_tokens_recovers() {
    let clock = ManualClock::new();
    let layer = builder().clock(clock.clone()).failed_auth_quota("2/minute");
    let app = echo().layer(layer.build().unwrap());
    for status in [200, 200, 429] {
        assert_eq!(with(&app, &forged(0)).await.status, status);
    }
    let wait = with(&app, &forged(0)).await.number("retry-after");
    clock.advance(std::time::Duration::from_secs(wait));
    assert_eq!(with(&app, &forged(0)).await.status, 200);
}

#[tokio::test]
async fn wrong_tokens_get_401_if_so_configured() {
    let policy = Policy::builder()
        .everyone("5/hour")
        .exempt_route("GET /health");
    let layer = RateLimitLayer::builder(policy)
        .identify(Jwt::hs256(SECRET).build().unwrap())
        .on_invalid_credentials(OnInvalidCredentials::Reject);
    let app = echo().layer(layer.build().unwrap());
    let wrong = forged(0);
    let rejected = with(&app, &wrong).await;
    assert_eq!(rejected.status, 401);
    assert_eq!(rejected.json()["error"]["code"], "INVALID_CREDENTIALS");
    assert_eq!(send_from(&app, PEER, "GET /", &[]).await.status, 200);
    // An opaque bearer value is not a credential of this source.
    assert_eq!(with(&app, "Bearer opaque").await.status, 200);
    let probe = send(&app, "GET /health", &[("authorization", &wrong)]).await;
    assert_eq!(probe.status, 200, "exempt routes never get a 401");
}
