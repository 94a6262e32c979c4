//! The cost of a request with many tokens.

use std::time::{Duration, Instant};

use axum::Router;
use tollgate::identity::{Jwt, JwtAlgorithm};

use super::app;
use crate::support::http::send;
use crate::support::tokens::{P384, P384_PRIVATE, claims, sign, tampered};

async fn took(app: &Router, cookies: &str) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let started = Instant::now();
        let answer = send(app, "GET /", &[("cookie", cookies)]).await;
        best = best.min(started.elapsed());
        assert_eq!(answer.status, 200);
    }
    best
}

/// A value that is there again is not another token, so it is not verified again.
#[tokio::test]
async fn a_repeated_wrong_cookie_is_verified_once() {
    let jwt = Jwt::builder()
        .algorithms([JwtAlgorithm::Es384])
        .pem(P384)
        .cookie("session");
    let app = app(jwt.build().unwrap());
    let key = jsonwebtoken::EncodingKey::from_ec_pem(P384_PRIVATE.as_bytes()).unwrap();
    let by = jsonwebtoken::Algorithm::ES384;
    let wrong = tampered(&sign(r#"{"alg":"ES384"}"#, &claims("alice"), by, &key));
    let cookie = format!("session={wrong}");
    let once = took(&app, &cookie).await;
    let often = took(&app, &vec![cookie; 300].join("; ")).await;
    // 300 verifications take about 300 times as long.
    assert!(often < once * 60, "once {once:?}, 300 times {often:?}");
}
