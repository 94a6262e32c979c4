//! Somebody sets an issuer, tries a token without one, is anonymous, and has no idea why: the log
//! says it.

use tollgate::Timestamp;
use tollgate::identity::{Jwt, JwtBuilder};

use super::forge::{SECRET, bearer, hs256};
use super::{NOW, ask, ask_at, request};
use crate::log::Log;

/// What is told of a request, which has to be exactly one thing.
fn told(jwt: JwtBuilder, request: &http::Request<()>) -> String {
    let jwt = jwt.build().unwrap();
    let (log, _listening) = Log::listen();
    ask(&jwt, request).is_invalid();
    let lines = log.about("rate_limit_token_refused");
    let [line] = lines.as_slice() else {
        panic!("told {lines:?}");
    };
    assert!(line.contains("DEBUG tollgate: "), "{line}");
    line.split_once("why=").unwrap().1.to_owned()
}

#[test]
fn the_log_says_why_a_token_is_not_believed() {
    let plain = || Jwt::hs256(SECRET);
    let good = format!(r#"{{"sub":"alice","exp":{}}}"#, NOW + 60);
    let with = |claims: &str| bearer(&hs256(claims));
    let cases = [
        (
            plain().issuer("https://id.example.com"),
            with(&good),
            "`iss`",
        ),
        (plain().audience("shop"), with(&good), "`aud`"),
        (
            Jwt::hs256("another secret"),
            with(&good),
            "none of the keys",
        ),
        (plain(), with(r#"{"sub":"alice"}"#), "`exp` is missing"),
        (plain(), with(r#"{"sub":"alice","exp":1}"#), "expired"),
        (
            plain(),
            with(&format!(
                r#"{{"sub":"alice","exp":{0},"nbf":{0}}}"#,
                NOW + 3600
            )),
            "not valid yet",
        ),
        (
            plain(),
            with(&format!(r#"{{"sub":7,"exp":{}}}"#, NOW + 60)),
            "says who it is",
        ),
        (plain(), bearer("not-a-token"), "three parts"),
        (plain(), bearer("YQ.YQ.YQ"), "three parts"),
        (plain(), bearer(&"a".repeat(9000)), "8 KiB"),
        (
            plain(),
            request(&[("authorization", "Bearer a"), ("authorization", "Bearer b")]),
            "exactly one",
        ),
    ];
    for (jwt, request, expected) in cases {
        let why = told(jwt, &request);
        assert!(why.contains(expected), "{why} instead of {expected}");
        assert!(!why.contains("alice"), "{why}");
    }
}

/// Also one that has been believed, and is remembered.
#[test]
fn a_token_that_expires_meanwhile_is_told_of() {
    let jwt = Jwt::hs256(SECRET).build().unwrap();
    let token = bearer(&hs256(&format!(r#"{{"sub":"alice","exp":{}}}"#, NOW + 60)));
    let (log, _listening) = Log::listen();
    ask(&jwt, &token).known();
    assert_eq!(log.text(), "");
    ask_at(&jwt, &token, Timestamp::from_secs(NOW + 3600)).is_invalid();
    assert!(log.text().contains("expired"), "{}", log.text());
}
