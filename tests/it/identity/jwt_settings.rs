//! Settings of tokens that are refused when they are made.

use std::time::Duration;

use tollgate::identity::{Jwt, JwtAlgorithm, JwtBuilder, JwtKeys, KeySet};

use crate::support::tokens::{
    ED25519, P256, P384, RSA_1, RSA_1_PRIVATE, RSA_TOO_SMALL, SECRET, jwks, rsa_jwk,
};

fn refused(jwt: JwtBuilder) -> String {
    let errors = jwt.build().unwrap_err();
    errors.iter().next().unwrap().field().to_owned()
}

#[test]
fn algorithms_need_a_key_made_for_them() {
    use JwtAlgorithm as A;

    let all = [
        A::Hs256,
        A::Hs384,
        A::Hs512,
        A::Rs256,
        A::Rs384,
        A::Rs512,
        A::Ps256,
        A::Ps384,
        A::Ps512,
        A::Es256,
        A::Es384,
        A::EdDsa,
    ];
    let fitting: [(JwtKeys, &[A]); 5] = [
        (JwtKeys::secret(SECRET).unwrap(), &all[..3]),
        (JwtKeys::pem(RSA_1).unwrap(), &all[3..9]),
        (JwtKeys::pem(P256).unwrap(), &all[9..10]),
        (JwtKeys::pem(P384).unwrap(), &all[10..11]),
        (JwtKeys::pem(ED25519).unwrap(), &all[11..]),
    ];
    for (keys, fits) in fitting {
        for algorithm in all {
            let keys = KeySet::new(keys.clone());
            let jwt = Jwt::builder()
                .algorithms([algorithm])
                .key_set(&keys)
                .build();
            assert_eq!(jwt.is_ok(), fits.contains(&algorithm), "{algorithm}");
        }
    }
    let mixed = Jwt::builder().algorithms([A::Rs256, A::Hs256]).pem(RSA_1);
    let errors = mixed.build().unwrap_err();
    assert_eq!(errors.iter().next().unwrap().value(), "HS256");
}

#[test]
fn keys_that_cannot_be_used() {
    let cut = &RSA_1[..RSA_1.len() / 2];
    for pem in ["", "not a key", SECRET, RSA_TOO_SMALL, RSA_1_PRIVATE, cut] {
        let refused = JwtKeys::pem(pem).unwrap_err();
        assert_eq!(refused.field(), "JWT public key");
        assert!(!refused.to_string().contains("MII"), "{refused}");
    }
    assert_eq!(JwtKeys::secret("").unwrap_err().field(), "JWT secret");
    assert_eq!(JwtKeys::secret(RSA_1).unwrap_err().field(), "JWT secret");
    let encryption = rsa_jwk(RSA_1_PRIVATE, r#","use":"enc""#);
    for set in [
        String::new(),
        "[]".to_owned(),
        "{}".to_owned(),
        r#"{"keys":{}}"#.to_owned(),
        jwks(&[]),
        jwks(std::slice::from_ref(&encryption)),
        jwks(&[r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#.to_owned()]),
        jwks(&[r#"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#.to_owned()]),
        jwks(&[r#"{"kty":"OKP","crv":"X25519","x":"AA"}"#.to_owned()]),
        jwks(&[r#"{"kty":"oct","k":""}"#.to_owned()]),
    ] {
        assert_eq!(JwtKeys::jwks(&set).unwrap_err().field(), "JWK set", "{set}");
    }
    // One that is not understood does not spoil the others.
    let set = [
        encryption,
        r#"{"kty":"new"}"#.to_owned(),
        rsa_jwk(RSA_1_PRIVATE, ""),
    ];
    assert_eq!(JwtKeys::jwks(jwks(&set)).unwrap().len(), 1);
    // A key for another algorithm is not for this one.
    let pss = rsa_jwk(RSA_1_PRIVATE, r#","alg":"PS256""#);
    let jwt = Jwt::builder()
        .algorithms([JwtAlgorithm::Rs256])
        .jwks(jwks(&[pss]));
    assert_eq!(refused(jwt), "JWT algorithms");
}

#[test]
fn settings_that_make_no_sense() {
    let good = || Jwt::hs256(SECRET);
    assert_eq!(refused(Jwt::builder()), "JWT keys");
    assert_eq!(refused(Jwt::builder().secret(SECRET)), "JWT algorithms");
    assert_eq!(refused(good().algorithms([])), "JWT algorithms");
    let both = KeySet::new(JwtKeys::secret(SECRET).unwrap());
    assert_eq!(refused(good().key_set(&both)), "JWT keys");
    assert_eq!(refused(good().pem("not a key")), "JWT public key");
    assert_eq!(
        refused(good().leeway(Duration::from_secs(601))),
        "JWT leeway"
    );
    assert_eq!(refused(good().cache_capacity(0)), "JWT cache_capacity");
    assert_eq!(refused(good().max_token_bytes(0)), "max_token_bytes");
    let over_a_mib = good().max_token_bytes((1 << 20) + 1);
    assert_eq!(refused(over_a_mib), "max_token_bytes");
    assert_eq!(refused(good().user("")), "JWT claim");
    assert_eq!(refused(good().tier("")), "JWT claim");
    assert_eq!(refused(good().dimension("user", "x")), "JWT dimension");
    assert_eq!(refused(good().dimension("", "x")), "JWT dimension");
    assert_eq!(refused(good().issuer("")), "JWT issuer");
    assert_eq!(refused(good().cookie("a=b")), "JWT cookie");
    assert!("none".parse::<JwtAlgorithm>().is_err());
    assert!("hs256".parse::<JwtAlgorithm>().is_err());
}
