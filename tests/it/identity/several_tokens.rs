//! Requests with several tokens: the application may read another one than the limiter.

use tollgate::identity::{ApiKey, Chain, InvalidReason, Jwt};

use super::{NOW, identify, request};
use crate::support::tokens::{SECRET, claims, hs256, tampered};

fn bearer_source() -> Jwt {
    Jwt::hs256(SECRET).build().unwrap()
}

fn cookie_source() -> Jwt {
    Jwt::hs256(SECRET).cookie("session").build().unwrap()
}

fn token(user: &str) -> String {
    hs256(&claims(user))
}

/// Another token of the same user.
fn refreshed(user: &str) -> String {
    hs256(&format!(r#"{{"sub":"{user}","exp":{}}}"#, NOW + 7_200))
}

fn expired(user: &str) -> String {
    hs256(&format!(r#"{{"sub":"{user}","exp":{}}}"#, NOW - 7_200))
}

fn forged(user: &str) -> String {
    tampered(&token(user))
}

fn cookies(values: &[&str]) -> http::Request<()> {
    let lines: Vec<String> = values.iter().map(|it| format!("session={it}")).collect();
    request(&[("cookie", &lines.join("; "))])
}

#[test]
fn authorization_lines_must_not_differ() {
    let good = format!("Bearer {}", token("alice"));
    let twice = [("authorization", good.as_str()); 3];
    identify(&bearer_source(), &request(&twice)).known();
    let joined = format!("{good}, {good}");
    for other in [
        format!("Bearer {}", token("bob")),
        format!("Bearer {}", refreshed("alice")),
        "Basic YTpi".to_owned(),
        String::new(),
    ] {
        for pair in [[&good, &other], [&other, &good]] {
            let lines = pair.map(|line| ("authorization", line.as_str()));
            identify(&bearer_source(), &request(&lines)).is_ambiguous();
            // A source of cookies does not read the header.
            identify(&cookie_source(), &request(&lines)).is_absent();
        }
    }
    identify(&bearer_source(), &request(&[("authorization", &joined)])).is_ambiguous();
    let basic = [("authorization", "Basic YTpi"); 2];
    identify(&bearer_source(), &request(&basic)).is_absent();
}

#[test]
fn cookies_of_one_user_may_differ() {
    let (one, two) = (token("alice"), refreshed("alice"));
    let (old, wrong) = (expired("alice"), forged("alice"));
    for values in [
        &[&one, &two][..],
        &[&one, &one],
        &[&old, &one],
        &[&one, &old],
        &[&wrong, &old, &one, &two],
    ] {
        let values: Vec<&str> = values.iter().map(|value| value.as_str()).collect();
        let known = identify(&cookie_source(), &cookies(&values)).known();
        assert_eq!(known.get("user"), Some("alice"), "{values:?}");
    }
    let lines = [
        ("cookie", format!("session={wrong}")),
        ("cookie", format!("a=b; session=\"{one}\"")),
    ];
    let lines = lines.each_ref().map(|(name, line)| (*name, line.as_str()));
    identify(&cookie_source(), &request(&lines)).known();
}

#[test]
fn cookies_of_different_users_are_ambiguous() {
    let (alice, bob) = (token("alice"), token("bob"));
    identify(&cookie_source(), &cookies(&[&alice, &bob])).is_ambiguous();
    identify(&cookie_source(), &cookies(&[&forged("bob"), &alice])).known();
}

#[test]
fn more_than_four_tokens_are_ambiguous() {
    let wrong: Vec<String> = (0..4).map(|index| forged(&format!("{index}"))).collect();
    let mut values: Vec<&str> = wrong.iter().map(String::as_str).collect();
    identify(&cookie_source(), &cookies(&values)).is_invalid_for(InvalidReason::Signature);
    // A value that is there again is not another one.
    values.extend([wrong[0].as_str(); 10]);
    identify(&cookie_source(), &cookies(&values)).is_invalid();
    // Neither is one that is not a token.
    values.extend(["", "opaque", "a.b.c"]);
    identify(&cookie_source(), &cookies(&values)).is_invalid();
    let good = token("alice");
    values.push(&good);
    identify(&cookie_source(), &cookies(&values)).is_ambiguous();
}

#[test]
fn no_valid_cookie_is_one_invalid_credential() {
    let (old, wrong) = (expired("alice"), forged("alice"));
    identify(&cookie_source(), &cookies(&[&old, &wrong])).is_invalid_for(InvalidReason::Signature);
    identify(&cookie_source(), &cookies(&[&old, &old])).is_invalid_for(InvalidReason::Expired);
}

#[test]
fn a_token_over_the_size_limit_is_not_verified() {
    let token = token("alice");
    let jwt = |bytes| {
        let jwt = Jwt::hs256(SECRET).max_token_bytes(bytes).cookie("session");
        jwt.build().unwrap()
    };
    identify(&jwt(token.len()), &cookies(&[&token])).known();
    identify(&jwt(token.len() - 1), &cookies(&[&token])).is_too_large();
    // Also beside a valid one, and if it is not a token at all.
    let long = "x".repeat(token.len() + 1);
    identify(&jwt(token.len()), &cookies(&[&token, &long])).is_too_large();
}

#[test]
fn tokens_of_a_rejected_request_are_not_verified() {
    let jwt = Jwt::hs256(SECRET).max_token_bytes(400).cookie("session");
    let jwt = jwt.build().unwrap();
    let of_exp = |exp| hs256(&format!(r#"{{"sub":"alice","exp":{}}}"#, NOW + exp));
    let tokens: Vec<String> = (60..65).map(of_exp).collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    identify(&jwt, &cookies(&tokens)).is_ambiguous();
    assert_eq!(jwt.cached_tokens(), 0);
    let long = "x".repeat(401);
    identify(&jwt, &cookies(&[tokens[0], &long])).is_too_large();
    assert_eq!(jwt.cached_tokens(), 0);
    identify(&jwt, &cookies(&tokens[..4])).known();
    assert_eq!(jwt.cached_tokens(), 4);
}

/// A request with a bearer token and a cookie.
fn both(bearer: &str, cookie: &str) -> http::Request<()> {
    request(&[
        ("authorization", &format!("Bearer {bearer}")),
        ("cookie", &format!("session={cookie}")),
    ])
}

#[test]
fn bearer_token_and_cookie_must_be_of_one_user() {
    let chains = [
        Chain::new().then(bearer_source()).then(cookie_source()),
        Chain::new().then(cookie_source()).then(bearer_source()),
        // Also if one of them is in a chain of its own.
        Chain::new()
            .then(Chain::new().then(bearer_source()))
            .then(Chain::new().then(()).then(cookie_source())),
    ];
    for chain in &chains {
        let of = |bearer: &str, cookie: &str| identify(chain, &both(bearer, cookie));
        of(&token("alice"), &token("alice")).known();
        of(&token("alice"), &refreshed("alice")).known();
        of(&token("alice"), &token("bob")).is_ambiguous();
        for wrong in [forged("bob"), expired("bob"), "opaque".to_owned()] {
            let known = of(&token("alice"), &wrong).known();
            assert_eq!(known.get("user"), Some("alice"));
            let known = of(&wrong, &token("alice")).known();
            assert_eq!(known.get("user"), Some("alice"));
        }
        of(&forged("alice"), &expired("bob")).is_invalid_for(InvalidReason::Signature);
        // Five tokens in all.
        let wrong: Vec<String> = (0..4).map(|index| forged(&format!("{index}"))).collect();
        of(&token("alice"), &wrong[..3].join("; session=")).known();
        of(&token("alice"), &wrong.join("; session=")).is_ambiguous();
    }
}

#[test]
fn a_token_without_user_beside_a_token_with_one() {
    let anon = hs256(&format!(r#"{{"role":"anon","exp":{}}}"#, NOW + 60));
    let chain = Chain::new().then(bearer_source()).then(cookie_source());
    for request in [both(&anon, &token("alice")), both(&token("alice"), &anon)] {
        let known = identify(&chain, &request).known();
        assert_eq!(known.get("user"), Some("alice"));
    }
    identify(&chain, &both(&anon, &anon)).unauthenticated();
    for (refused, reason) in [
        (forged("alice"), InvalidReason::Signature),
        (expired("alice"), InvalidReason::Expired),
    ] {
        for request in [both(&anon, &refused), both(&refused, &anon)] {
            let identity = identify(&chain, &request).partly_invalid_for(reason);
            assert_eq!(identity.primary(), None);
        }
        identify(&cookie_source(), &cookies(&[&anon, &refused])).partly_invalid_for(reason);
    }
}

/// The order of sources decides between a token and another kind of credential.
#[test]
fn an_api_key_beside_a_token_is_not_ambiguous() {
    let key = || ApiKey::known("x-api-key", ["good"]).unwrap();
    let request = request(&[
        ("authorization", &format!("Bearer {}", token("alice"))),
        ("x-api-key", "good"),
    ]);
    let token_first = Chain::new().then(bearer_source()).then(key());
    assert_eq!(
        identify(&token_first, &request).known().get("user"),
        Some("alice")
    );
    let key_first = Chain::new()
        .then(Chain::new().then(key()))
        .then(bearer_source());
    let known = identify(&key_first, &request).known();
    assert_eq!(known.primary().unwrap().0, "api-key");
}
