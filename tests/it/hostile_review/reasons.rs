//! A token that one source cannot verify yet is not wrong because another source rejects it.

use axum::Router;
use tollgate::identity::{Chain, Jwt, JwtAlgorithm, JwtKeys, KeySet};

use super::{PEER, builder};
use crate::support::http::{echo, send_from};
use crate::support::tokens::NOW;
use crate::support::tokens::{RSA_1_PRIVATE, SECRET, claims, hs256, rs256, tampered};

/// Two issuers. The keys of the second are not loaded yet.
fn apps() -> [Router; 2] {
    let first = || Jwt::hs256(SECRET).build().unwrap();
    let second = || {
        let keys = KeySet::new(JwtKeys::none());
        let jwt = Jwt::builder().algorithms([JwtAlgorithm::Rs256]);
        jwt.key_set(&keys).build().unwrap()
    };
    [
        Chain::new().then(first()).then(second()),
        Chain::new().then(second()).then(first()),
    ]
    .map(|chain| echo().layer(builder().identify(chain).build().unwrap()))
}

async fn status(app: &Router, token: &str) -> u16 {
    let authorization = format!("Bearer {token}");
    let headers = [("authorization", authorization.as_str())];
    send_from(app, PEER, "GET /", &headers).await.status
}

#[tokio::test]
async fn tokens_whose_keys_are_not_loaded_are_not_charged_by_another_source() {
    for app in apps() {
        for user in 0..100 {
            let token = rs256(RSA_1_PRIVATE, "", &claims(&format!("user-{user}")));
            assert_eq!(status(&app, &token).await, 200, "{user}");
        }
    }
}

#[tokio::test]
async fn expired_tokens_are_not_charged_by_another_source() {
    for app in apps() {
        let claims = format!(r#"{{"sub":"alice","exp":{}}}"#, NOW - 3_600);
        for token in [hs256(&claims), rs256(RSA_1_PRIVATE, "", &claims)] {
            for attempt in 0..100 {
                assert_eq!(status(&app, &token).await, 200, "{attempt}");
            }
        }
    }
}

/// The other way round: a wrong token is charged, however many other tokens are with it.
#[tokio::test]
async fn a_wrong_token_beside_an_expired_one_is_charged() {
    let bearer = Jwt::hs256(SECRET).build().unwrap();
    let cookie = Jwt::hs256(SECRET).cookie("session").build().unwrap();
    let chain = Chain::new().then(bearer).then(cookie);
    let app = echo().layer(builder().identify(chain).build().unwrap());
    let old = hs256(&format!(r#"{{"sub":"alice","exp":{}}}"#, NOW - 3_600));
    let wrong = tampered(&hs256(&claims("alice")));
    for (bearer, cookie) in [(&old, &wrong), (&wrong, &old)] {
        let (bearer, cookie) = (format!("Bearer {bearer}"), format!("session={cookie}"));
        let headers = [("authorization", bearer.as_str()), ("cookie", &cookie)];
        let mut last = 0;
        for _ in 0..61 {
            last = send_from(&app, PEER, "GET /", &headers).await.status;
        }
        assert_eq!(last, 429);
    }
}
