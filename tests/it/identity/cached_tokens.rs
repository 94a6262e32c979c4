//! The cache of verified tokens: bounded, never past `exp`, never past a change of keys.

use std::sync::Arc;
use std::time::Duration;

use tollgate::Timestamp;
use tollgate::identity::{Identified, Jwt, JwtAlgorithm, JwtKeys, KeySet};

use super::{NOW, identify, identify_at};
use crate::support::tokens::{
    RSA_1, RSA_1_PRIVATE, RSA_2, RSA_2_PRIVATE, SECRET, bearer, claims, hs256, jwks, rs256, rsa_jwk,
};

#[test]
fn a_token_is_verified_once() {
    let jwt = Jwt::hs256(SECRET).build().unwrap();
    let request = bearer(&hs256(&claims("alice")));
    let first = identify(&jwt, &request).known();
    for _ in 0..3 {
        assert!(Arc::ptr_eq(&identify(&jwt, &request).known(), &first));
    }
    assert_eq!(jwt.cached_tokens(), 1);
}

#[test]
fn a_token_with_the_same_end_is_another() {
    let jwt = Jwt::hs256(SECRET).build().unwrap();
    let good = hs256(&claims("alice"));
    identify(&jwt, &bearer(&good)).known();
    let (_, signature) = good.rsplit_once('.').unwrap();
    let other = hs256(&claims("mallory"));
    let (message, _) = other.rsplit_once('.').unwrap();
    identify(&jwt, &bearer(&format!("{message}.{signature}"))).is_invalid();
}

#[test]
fn cached_tokens_expire() {
    let jwt = Jwt::hs256(SECRET).leeway(Duration::ZERO).build().unwrap();
    let exp = NOW + 60;
    let claims = format!(r#"{{"sub":"alice","nbf":{NOW},"exp":{exp}}}"#);
    let request = bearer(&hs256(&claims));
    let at = |micros: u64| identify_at(&jwt, &request, Timestamp::from_micros(micros));
    let first = at(NOW * 1_000_000).known();
    // Times are compared in whole seconds.
    let end = (exp + 1) * 1_000_000;
    assert!(Arc::ptr_eq(&at(end - 1).known(), &first));
    at(end).is_invalid();
    assert_eq!(jwt.cached_tokens(), 0);
    at(end + 1).is_invalid();
    // A clock that goes back makes it good again, and too early again.
    at(NOW * 1_000_000).known();
    at(NOW * 1_000_000 - 1).is_invalid();
}

#[test]
fn wrong_tokens_are_not_cached() {
    let jwt = Jwt::hs256(SECRET).cache_capacity(4).build().unwrap();
    let good = bearer(&hs256(&claims("alice")));
    let first = identify(&jwt, &good).known();
    let other = Jwt::hs256("another secret").build().unwrap();
    for index in 0..1_000 {
        let token = hs256(&claims(&format!("mallory-{index}")));
        // Good elsewhere, wrong here, and the other way round.
        identify(&other, &bearer(&token)).is_invalid();
        identify(&jwt, &bearer(&token[..token.len() - 4])).is_invalid();
    }
    assert_eq!((jwt.cached_tokens(), other.cached_tokens()), (1, 0));
    assert!(Arc::ptr_eq(&identify(&jwt, &good).known(), &first));
}

#[test]
fn cache_is_bounded() {
    let jwt = Jwt::hs256(SECRET).cache_capacity(100).build().unwrap();
    for index in 0..1_000 {
        let token = hs256(&claims(&format!("user-{index}")));
        identify(&jwt, &bearer(&token)).known();
    }
    assert!(
        (50..=100).contains(&jwt.cached_tokens()),
        "{}",
        jwt.cached_tokens()
    );
}

#[test]
fn a_change_of_keys_applies_at_once() {
    let keys = KeySet::new(JwtKeys::pem(RSA_1).unwrap());
    let jwt = Jwt::builder()
        .algorithms([JwtAlgorithm::Rs256])
        .key_set(&keys)
        .build()
        .unwrap();
    let (old, new) = (
        bearer(&rs256(RSA_1_PRIVATE, "", &claims("alice"))),
        bearer(&rs256(RSA_2_PRIVATE, "", &claims("alice"))),
    );
    identify(&jwt, &old).known();
    identify(&jwt, &new).is_invalid();

    keys.clone().replace(JwtKeys::pem(RSA_2).unwrap());
    identify(&jwt, &old).is_invalid();
    identify(&jwt, &new).known();

    // Both for a while: the old one has to show its signature again.
    keys.replace(
        JwtKeys::pem(RSA_1)
            .unwrap()
            .and(JwtKeys::pem(RSA_2).unwrap()),
    );
    for request in [&old, &new] {
        let verified = identify(&jwt, request).known();
        assert!(Arc::ptr_eq(&identify(&jwt, request).known(), &verified));
    }
    keys.replace(JwtKeys::none());
    identify(&jwt, &old).is_invalid();
}

#[test]
fn a_key_set_may_be_filled_later() {
    let keys = KeySet::new(JwtKeys::none());
    let jwt = Jwt::builder()
        .algorithms([JwtAlgorithm::Rs256])
        .key_set(&keys)
        .build()
        .unwrap();
    let request = bearer(&rs256(RSA_1_PRIVATE, "", &claims("alice")));
    identify(&jwt, &request).is_invalid();
    keys.replace(JwtKeys::jwks(jwks(&[rsa_jwk(RSA_1_PRIVATE, "")])).unwrap());
    identify(&jwt, &request).known();
    // A key of another kind is of no use, and does no harm.
    keys.replace(JwtKeys::secret(SECRET).unwrap());
    identify(&jwt, &request).is_invalid();
    identify(&jwt, &bearer(&hs256(&claims("alice")))).is_invalid();
}

#[test]
fn keys_are_chosen_by_name() {
    let set = jwks(&[
        rsa_jwk(RSA_1_PRIVATE, r#","kid":"one","alg":"RS256","use":"sig""#),
        rsa_jwk(RSA_2_PRIVATE, r#","kid":"two""#),
    ]);
    let jwt = Jwt::builder()
        .algorithms([JwtAlgorithm::Rs256])
        .jwks(set)
        .build()
        .unwrap();
    let is_good = |private: &str, kid: &str| {
        let token = rs256(private, kid, &claims("alice"));
        match identify(&jwt, &bearer(&token)).found {
            Identified::Known(_) => true,
            Identified::Invalid(_) => false,
            other => panic!("{other:?}"),
        }
    };
    assert!(is_good(RSA_1_PRIVATE, "one"));
    assert!(is_good(RSA_2_PRIVATE, "two"));
    assert!(is_good(RSA_1_PRIVATE, ""));
    assert!(is_good(RSA_2_PRIVATE, ""));
    // The name of another key, and of none.
    assert!(!is_good(RSA_1_PRIVATE, "two"));
    assert!(!is_good(RSA_2_PRIVATE, "one"));
    assert!(!is_good(RSA_1_PRIVATE, "three"));

    // A key without a name is held against tokens that name one.
    let jwt = Jwt::rs256_pem(RSA_1).build().unwrap();
    identify(
        &jwt,
        &bearer(&rs256(RSA_1_PRIVATE, "whatever", &claims("alice"))),
    )
    .known();
}

#[test]
fn only_so_many_keys_are_tried() {
    let wrong = JwtKeys::pem(RSA_2).unwrap();
    let right = JwtKeys::pem(RSA_1).unwrap();
    let with = |before: usize| {
        let keys = (0..before).fold(JwtKeys::none(), |keys, _| keys.and(wrong.clone()));
        let keys = KeySet::new(keys.and(right.clone()));
        let jwt = Jwt::builder()
            .algorithms([JwtAlgorithm::Rs256])
            .key_set(&keys);
        identify(
            &jwt.build().unwrap(),
            &bearer(&rs256(RSA_1_PRIVATE, "", &claims("alice"))),
        )
    };
    with(7).known();
    with(8).is_invalid();
}
