//! Every token that is not accepted has a reason.

use jsonwebtoken::{Algorithm, EncodingKey};
use tollgate::Timestamp;
use tollgate::identity::{InvalidReason, Jwt, JwtAlgorithm, JwtKeys, KeySet};

use super::{NOW, identify, identify_at};
use crate::support::tokens::{
    RSA_1, RSA_1_PRIVATE, RSA_2_PRIVATE, SECRET, base64url, bearer, claims, hs256, rs256, rsa_jwk,
    sign,
};

#[test]
fn reasons_of_tokens() {
    use InvalidReason as R;

    let plain = || Jwt::hs256(SECRET);
    let good = claims("alice");
    let signed = |header: &str| {
        let key = EncodingKey::from_secret(SECRET.as_bytes());
        sign(header, &good, Algorithm::HS256, &key)
    };
    let (exp, later) = (NOW + 60, NOW + 3_600);
    for (jwt, token, reason) in
        [
            (plain().issuer("https://id.dev"), hs256(&good), R::Issuer),
            (plain().audience("shop"), hs256(&good), R::Audience),
            (Jwt::hs256("another secret"), hs256(&good), R::Signature),
            (plain(), hs256(r#"{"sub":"alice"}"#), R::Malformed),
            (plain(), hs256(r#"{"sub":"alice","exp":"1"}"#), R::Malformed),
            (plain(), hs256("[]"), R::Malformed),
            (plain(), hs256(r#"{"sub":"alice","exp":1}"#), R::Expired),
            (
                plain(),
                hs256(&format!(r#"{{"sub":"a","exp":{later},"nbf":{later}}}"#)),
                R::NotYetValid,
            ),
            (plain(), signed(r#"{"alg":"none"}"#), R::Algorithm),
            (plain(), signed(r#"{"alg":"HS512"}"#), R::Algorithm),
            (
                plain(),
                signed(r#"{"alg":"HS256","crit":[]}"#),
                R::Malformed,
            ),
            (plain(), signed(r#"{"alg":"HS256","kid":7}"#), R::Malformed),
            (
                plain().tenant("tenant"),
                hs256(&format!(r#"{{"sub":"a","exp":{exp},"tenant":{{}}}}"#)),
                R::Claims,
            ),
            (
                Jwt::rs256_pem(RSA_1),
                rs256(RSA_2_PRIVATE, "", &good),
                R::Signature,
            ),
            (
                Jwt::builder().algorithms([JwtAlgorithm::Rs256]).jwks(
                    crate::support::tokens::jwks(&[rsa_jwk(RSA_1_PRIVATE, r#","kid":"one""#)]),
                ),
                rs256(RSA_1_PRIVATE, "two", &good),
                R::UnknownKey,
            ),
            (
                Jwt::builder()
                    .algorithms([JwtAlgorithm::Hs256])
                    .key_set(&KeySet::new(JwtKeys::none())),
                hs256(&good),
                R::KeysUnavailable,
            ),
        ]
    {
        identify(&jwt.build().unwrap(), &bearer(&token)).is_invalid_for(reason);
    }
}

#[test]
fn only_wrong_tokens_are_charged() {
    use InvalidReason as R;

    for reason in [R::Expired, R::NotYetValid, R::KeysUnavailable, R::Claims] {
        assert!(!reason.is_charged(), "{reason:?}");
    }
    for reason in [
        R::Signature,
        R::Algorithm,
        R::UnknownKey,
        R::Issuer,
        R::Audience,
        R::Malformed,
        R::ApiKey,
        R::Custom,
    ] {
        assert!(reason.is_charged(), "{reason:?}");
    }
}

#[test]
fn values_that_are_not_a_jws_are_no_credential() {
    let jwt = Jwt::hs256(SECRET).build().unwrap();
    let (header, claims) = (base64url(r#"{"alg":"HS256"}"#), base64url(claims("alice")));
    for value in [
        String::new(),
        "opaque".to_owned(),
        "sb_publishable_1234.5678".to_owned(),
        "a.b.c".to_owned(),
        "YQ.YQ.YQ".to_owned(),
        "..".to_owned(),
        format!("{header}.{claims}."),
        format!("{header}.{claims}"),
        format!("{header}..YQ"),
        format!("{header}.{claims}.YQ.YQ"),
        format!("{header}.{claims}.YQ=="),
        format!("{header}.{claims}.a+b/"),
        format!("{}.{claims}.YQ", base64url("{}")),
        format!("{}.{claims}.YQ", base64url("[]")),
        format!("{}.{claims}.YQ", base64url(r#"{"alg":256}"#)),
    ] {
        identify(&jwt, &bearer(&value)).is_absent();
    }
    identify(&jwt, &bearer(&format!("{header}.{claims}.YQ"))).is_invalid();
}

#[test]
fn a_cached_token_that_expires_has_a_reason() {
    let jwt = Jwt::hs256(SECRET).build().unwrap();
    let token = bearer(&hs256(&format!(r#"{{"sub":"alice","exp":{}}}"#, NOW + 60)));
    identify(&jwt, &token).known();
    identify_at(&jwt, &token, Timestamp::from_secs(NOW + 3_600))
        .is_invalid_for(InvalidReason::Expired);
}
