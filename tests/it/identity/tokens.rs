//! Tokens, the good ones and above all the bad ones.

use std::time::Duration;

use jsonwebtoken::{Algorithm, EncodingKey};
use proptest::prelude::*;
use tollgate::Timestamp;
use tollgate::identity::{Identified, Jwt, JwtAlgorithm, JwtBuilder};

use super::{NOW, identify, identify_at, request};
use crate::support::tokens::{
    ED25519, ED25519_PRIVATE, P256, P256_PRIVATE, P384, P384_PRIVATE, RSA_1, RSA_1_PRIVATE,
    RSA_2_PRIVATE, SECRET, base64url, bearer, claims, hs256, rs256, sign,
};

fn jwt() -> Jwt {
    Jwt::hs256(SECRET).build().unwrap()
}

/// The user that a token signed with the secret names; `None` if it is not accepted.
fn user(jwt: JwtBuilder, claims: &str) -> Option<String> {
    let jwt = jwt.build().unwrap();
    match identify(&jwt, &bearer(&hs256(claims))).found {
        Identified::Known(identity) => Some(identity.get("user").unwrap().to_owned()),
        Identified::Invalid(_) => None,
        other => panic!("{other:?}"),
    }
}

fn issuer(jwt: JwtBuilder, claims: &str) -> Option<String> {
    let jwt = jwt.build().unwrap();
    let known = identify(&jwt, &bearer(&hs256(claims))).known();
    known.issuer().map(str::to_owned)
}

fn user_by_default(claims: &str) -> Option<String> {
    user(Jwt::hs256(SECRET), claims)
}

#[test]
fn valid_token_identifies_the_user() {
    let jwt = Jwt::hs256(SECRET)
        .tier("app_metadata.plan")
        .tenant("tenant_id")
        .roles("roles")
        .dimension("group", "claims.group")
        .build()
        .unwrap();
    let claims = format!(
        r#"{{"sub":"alice","exp":{},"app_metadata":{{"plan":"team"}},"tenant_id":"acme",
            "roles":["editor","service",7],"claims":{{"group":"g1"}}}}"#,
        NOW + 60
    );
    let alice = identify(&jwt, &bearer(&hs256(&claims))).known();
    assert_eq!(alice.primary(), Some(("user", "alice")));
    assert_eq!(alice.tier_name(), Some("team"));
    assert_eq!(alice.get("tenant"), Some("acme"));
    assert_eq!(alice.get("group"), Some("g1"));
    assert_eq!(alice.roles().collect::<Vec<_>>(), ["editor", "service"]);
}

#[test]
fn every_algorithm_verifies_its_own() {
    let secret = || EncodingKey::from_secret(SECRET.as_bytes());
    let rsa = || EncodingKey::from_rsa_pem(RSA_1_PRIVATE.as_bytes()).unwrap();
    let p256 = || EncodingKey::from_ec_pem(P256_PRIVATE.as_bytes()).unwrap();
    let p384 = || EncodingKey::from_ec_pem(P384_PRIVATE.as_bytes()).unwrap();
    let ed = || EncodingKey::from_ed_pem(ED25519_PRIVATE.as_bytes()).unwrap();
    for (ours, theirs, key, public) in [
        (JwtAlgorithm::Hs256, Algorithm::HS256, secret(), None),
        (JwtAlgorithm::Hs384, Algorithm::HS384, secret(), None),
        (JwtAlgorithm::Hs512, Algorithm::HS512, secret(), None),
        (JwtAlgorithm::Rs256, Algorithm::RS256, rsa(), Some(RSA_1)),
        (JwtAlgorithm::Rs384, Algorithm::RS384, rsa(), Some(RSA_1)),
        (JwtAlgorithm::Rs512, Algorithm::RS512, rsa(), Some(RSA_1)),
        (JwtAlgorithm::Ps256, Algorithm::PS256, rsa(), Some(RSA_1)),
        (JwtAlgorithm::Ps384, Algorithm::PS384, rsa(), Some(RSA_1)),
        (JwtAlgorithm::Ps512, Algorithm::PS512, rsa(), Some(RSA_1)),
        (JwtAlgorithm::Es256, Algorithm::ES256, p256(), Some(P256)),
        (JwtAlgorithm::Es384, Algorithm::ES384, p384(), Some(P384)),
        (JwtAlgorithm::EdDsa, Algorithm::EdDSA, ed(), Some(ED25519)),
    ] {
        let builder = Jwt::builder().algorithms([ours]);
        let builder = match public {
            Some(pem) => builder.pem(pem),
            None => builder.secret(SECRET),
        };
        let jwt = builder.build().unwrap();
        let token = sign(
            &format!(r#"{{"alg":"{ours}"}}"#),
            &claims("alice"),
            theirs,
            &key,
        );
        let alice = identify(&jwt, &bearer(&token)).known();
        assert_eq!(alice.get("user"), Some("alice"), "{ours}");

        // One bit of the signature, and of the claims.
        let (message, signature) = token.rsplit_once('.').unwrap();
        let swap = |text: &str| {
            let other = if text.starts_with('A') { "B" } else { "A" };
            format!("{other}{}", &text[1..])
        };
        identify(&jwt, &bearer(&format!("{message}.{}", swap(signature)))).is_invalid();
        let (header, _) = message.split_once('.').unwrap();
        let claims = base64url(claims("mallory"));
        identify(&jwt, &bearer(&format!("{header}.{claims}.{signature}"))).is_invalid();
    }
}

#[test]
fn signatures_by_anything_else_are_forged() {
    let other = EncodingKey::from_secret(b"another secret");
    let good = claims("alice");
    let unsigned = |header: &str| format!("{}.{}.", base64url(header), base64url(&good));
    let hs256_header = r#"{"alg":"HS256"}"#;
    for token in [
        sign(hs256_header, &good, Algorithm::HS256, &other),
        format!("{}AA", unsigned(r#"{"alg":"none"}"#)),
        format!("{}AA", unsigned(r#"{"alg":"NONE"}"#)),
        // Signed by an algorithm of the family that was not named.
        {
            let key = EncodingKey::from_secret(SECRET.as_bytes());
            sign(r#"{"alg":"HS512"}"#, &good, Algorithm::HS512, &key)
        },
        // The header names one algorithm, the signature is by another.
        {
            let key = EncodingKey::from_secret(SECRET.as_bytes());
            sign(hs256_header, &good, Algorithm::HS512, &key)
        },
    ] {
        identify(&jwt(), &bearer(&token)).is_invalid();
    }
    for header in [r#"{"alg":"none"}"#, hs256_header] {
        identify(&jwt(), &bearer(&unsigned(header))).is_absent();
    }
}

#[test]
fn a_public_key_is_no_secret() {
    let jwt = Jwt::rs256_pem(RSA_1).build().unwrap();
    let good = rs256(RSA_1_PRIVATE, "", &claims("alice"));
    identify(&jwt, &bearer(&good)).known();
    // An attacker signs with the public key as if it were a secret.
    for secret in [RSA_1.as_bytes(), RSA_1.trim().as_bytes()] {
        let key = EncodingKey::from_secret(secret);
        for header in [r#"{"alg":"HS256"}"#, r#"{"alg":"RS256"}"#] {
            let forged = sign(header, &claims("alice"), Algorithm::HS256, &key);
            identify(&jwt, &bearer(&forged)).is_invalid();
        }
    }
    identify(&jwt, &bearer(&rs256(RSA_2_PRIVATE, "", &claims("alice")))).is_invalid();
    // It cannot even be configured.
    let refused = Jwt::hs256(RSA_1).build().unwrap_err();
    assert_eq!(refused.iter().next().unwrap().field(), "JWT secret");
}

#[test]
fn headers_that_cannot_be_trusted() {
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    let signed = |header: &str| sign(header, &claims("alice"), Algorithm::HS256, &key);
    identify(&jwt(), &bearer(&signed(r#"{"alg":"HS256","x":1}"#))).known();
    for header in [
        "{}",
        "[]",
        "null",
        "\"HS256\"",
        r#"{"alg":null}"#,
        r#"{"alg":256}"#,
        r#"{"alg":["HS256"]}"#,
        r#"{"alg":"HS256""#,
    ] {
        identify(&jwt(), &bearer(&signed(header))).is_absent();
    }
    for header in [
        r#"{"alg":"hs256"}"#,
        r#"{"alg":"HS256","alg":"none"}"#,
        r#"{"alg":"HS256","kid":7}"#,
        r#"{"alg":"HS256","crit":["exp"]}"#,
    ] {
        identify(&jwt(), &bearer(&signed(header))).is_invalid();
    }
}

#[test]
fn texts_around_a_token_are_no_tokens() {
    let good = hs256(&claims("alice"));
    let (head, tail) = good.split_at(good.len() - 1);
    // Another spelling of these bits.
    let other_spelling = {
        let last = tail.as_bytes()[0];
        format!("{head}{}", char::from(last + 1))
    };
    for text in [head, &other_spelling] {
        identify(&jwt(), &bearer(text)).is_invalid();
    }
    let without_signature = good.rsplit_once('.').unwrap().0;
    for text in [
        "...",
        "not a token",
        without_signature,
        &format!("{good}="),
        &format!("{good}.{good}"),
        &format!("{good} {good}"),
        &format!("x{good}"),
        &good.replace('.', ".."),
        &format!("{}.{}.{}", "é", "é", "é"),
    ] {
        identify(&jwt(), &bearer(text)).is_absent();
    }
}

#[test]
fn exp_is_a_number_and_not_past() {
    let with = |exp: &str| user_by_default(&format!(r#"{{"sub":"alice","exp":{exp}}}"#));
    for good in [
        format!("{}", NOW + 1),
        // Within the leeway of 60 seconds, in whole seconds.
        format!("{}", NOW - 60),
        format!("{}.5", NOW - 61),
        format!("{}.5", NOW + 1),
        "1e12".to_owned(),
        "1e300".to_owned(),
        format!("{}", u64::MAX),
    ] {
        assert_eq!(with(&good).as_deref(), Some("alice"), "{good}");
    }
    for wrong in [
        format!("{}", NOW - 61),
        format!("{}.999999", NOW - 62),
        format!("\"{}\"", NOW + 60),
        "null".to_owned(),
        "true".to_owned(),
        "\"never\"".to_owned(),
        format!("[{}]", NOW + 60),
        "{}".to_owned(),
        "0".to_owned(),
        "-1".to_owned(),
        format!("-{}", NOW + 60),
        "-1e300".to_owned(),
        "1e400".to_owned(),
        "NaN".to_owned(),
    ] {
        assert_eq!(with(&wrong), None, "{wrong}");
    }
    assert_eq!(user_by_default(r#"{"sub":"alice"}"#), None);
}

#[test]
fn times_are_checked_on_both_sides_of_each_bound() {
    let (nbf, exp) = (NOW + 100, NOW + 200);
    let token = hs256(&format!(r#"{{"sub":"alice","nbf":{nbf},"exp":{exp}}}"#));
    for leeway in [0, 30, 600] {
        let good_at = |micros: u64| {
            let jwt = Jwt::hs256(SECRET).leeway(Duration::from_secs(leeway));
            let jwt = jwt.build().unwrap();
            let result = identify_at(&jwt, &bearer(&token), Timestamp::from_micros(micros));
            matches!(result.found, Identified::Known(_))
        };
        let (from, until) = ((nbf - leeway) * 1_000_000, (exp + leeway + 1) * 1_000_000);
        assert!(!good_at(from - 1), "{leeway}");
        assert!(good_at(from), "{leeway}");
        assert!(good_at(until - 1), "{leeway}");
        assert!(!good_at(until), "{leeway}");
    }
    for wrong in ["\"0\"", "null", "[]", "1e12"] {
        let claims = format!(r#"{{"sub":"alice","exp":{exp},"nbf":{wrong}}}"#);
        assert_eq!(user_by_default(&claims), None, "{wrong}");
    }
}

#[test]
fn a_user_is_a_text_or_a_whole_number() {
    let longest = "a".repeat(256);
    for (sub, user) in [
        (format!("\"{longest}\""), longest.as_str()),
        ("\"42\"".to_owned(), "42"),
        ("42".to_owned(), "42"),
        ("-7".to_owned(), "-7"),
        ("18446744073709551615".to_owned(), "18446744073709551615"),
        ("\" a \"".to_owned(), " a "),
    ] {
        let claims = format!(r#"{{"sub":{sub},"exp":{}}}"#, NOW + 60);
        assert_eq!(user_by_default(&claims).as_deref(), Some(user), "{sub}");
    }
}

#[test]
fn a_verified_token_without_user_is_unauthenticated() {
    let jwt = || {
        let jwt = Jwt::hs256(SECRET).tier("tier").tenant("tenant");
        jwt.roles("role").build().unwrap()
    };
    let more = format!(
        r#""exp":{},"role":"service_role","tenant":7,"tier":"team","iss":"supabase""#,
        NOW + 60
    );
    let too_long = format!("\"{}\"", "a".repeat(257));
    for sub in [
        "\"\"",
        "\" \"",
        "\"\\t\\u00a0\"",
        "42.0",
        "1e20",
        "null",
        "true",
        "[\"alice\"]",
        "{}",
        &too_long,
    ] {
        let claims = format!(r#"{{"sub":{sub},{more}}}"#);
        let found = identify(&jwt(), &bearer(&hs256(&claims))).unauthenticated();
        assert_eq!(found.get("user"), None, "{sub}");
        assert_eq!(found.get("tenant"), Some("7"));
        assert_eq!(found.roles().collect::<Vec<_>>(), ["service_role"]);
        assert_eq!((found.tier_name(), found.issuer()), (None, None));
    }
    let anon = identify(&jwt(), &bearer(&hs256(&format!("{{{more}}}")))).unauthenticated();
    assert_eq!(anon.get("user"), None);
    // Cached like every token that is accepted.
    let jwt = jwt();
    let request = bearer(&hs256(&format!("{{{more}}}")));
    identify(&jwt, &request).unauthenticated();
    identify(&jwt, &request).unauthenticated();
    assert_eq!(jwt.cached_tokens(), 1);
}

#[test]
fn of_a_claim_that_stands_there_twice_the_last_counts() {
    let claims = format!(
        r#"{{"sub":"alice","exp":1,"sub":"bob","exp":{}}}"#,
        NOW + 60
    );
    assert_eq!(user_by_default(&claims).as_deref(), Some("bob"));
    let claims = format!(r#"{{"sub":"alice","exp":{},"exp":1}}"#, NOW + 60);
    assert_eq!(user_by_default(&claims), None);
}

#[test]
fn bombs_do_not_go_off() {
    let deep = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"sub":"alice","exp":{},"x":{open}{close}}}"#, NOW + 60)
    };
    assert_eq!(user_by_default(&deep(100)).as_deref(), Some("alice"));
    assert_eq!(user_by_default(&deep(2_500)), None);
    identify(&jwt(), &bearer(&hs256(""))).is_absent();
    for claims in ["[]", "null", "\"x\"", "{", "{}x", "{\"sub\":\"\\ud800\"}"] {
        assert_eq!(user_by_default(claims), None, "{claims}");
    }
}

#[test]
fn a_token_over_16_kib_is_too_large() {
    let padded = |length: usize| {
        hs256(&format!(
            r#"{{"sub":"alice","exp":{},"pad":"{}"}}"#,
            NOW + 60,
            "x".repeat(length)
        ))
    };
    let fits = padded(12_150);
    assert!((16_000..=16_384).contains(&fits.len()), "{}", fits.len());
    identify(&jwt(), &bearer(&fits)).known();
    identify(&jwt(), &bearer(&padded(12_300))).is_too_large();
}

#[test]
fn the_bearer_scheme_and_no_other() {
    let token = hs256(&claims("alice"));
    let with = |value: &str| identify(&jwt(), &request(&[("authorization", value)]));
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        with(&format!("{scheme} {token}")).known();
    }
    with(&format!("  Bearer   {token}  ")).known();
    for other in ["", "Basic YTpi", "Bear", "Bearers x", "Token x", &token] {
        with(other).is_absent();
    }
    for opaque in ["Bearer", "Bearer ", "Bearer x", "Bearer a b"] {
        with(opaque).is_absent();
    }
    identify(&jwt(), &request(&[])).is_absent();
}

#[test]
fn cookies() {
    let jwt = Jwt::hs256(SECRET).cookie("session").build().unwrap();
    let token = hs256(&claims("alice"));
    identify(&jwt, &bearer(&token)).is_absent();
    for line in [
        format!("session={token}"),
        format!("a=b; session={token}; c=d"),
        format!("mysession=x;session=\"{token}\""),
        format!("broken; session = {token}"),
    ] {
        identify(&jwt, &request(&[("cookie", &line)])).known();
    }
    let lines = [("cookie", "a=b"), ("cookie", &format!("session={token}"))];
    identify(&jwt, &request(&lines)).known();
    for line in [
        "",
        "session",
        "Session=x",
        "sessions=x",
        "a=session=x",
        "session=",
        "session=\"\"",
        "session=x",
    ] {
        identify(&jwt, &request(&[("cookie", line)])).is_absent();
    }
    let signed_out = [
        ("cookie", "session="),
        ("cookie", &format!("session={token}")),
    ];
    identify(&jwt, &request(&signed_out)).known();
}

#[test]
fn the_same_name_from_two_issuers_is_two_users() {
    let from = |iss: &str| format!(r#"{{"sub":"alice","iss":{iss},"exp":{}}}"#, NOW + 60);
    let (one, two) = (from("\"https://a.dev\""), from("\"https://b.dev\""));

    // Exactly one issuer: the bare name.
    let only_a = || {
        Jwt::hs256(SECRET)
            .issuer("https://a.dev")
            .issuer("https://a.dev")
    };
    assert_eq!(user(only_a(), &one).as_deref(), Some("alice"));
    assert_eq!(user(only_a(), &two), None);
    assert_eq!(user(only_a(), &claims("alice")), None);
    assert_eq!(user(only_a(), &from("[\"https://a.dev\"]")), None);

    assert_eq!(issuer(only_a(), &one), None);

    // Several issuers: the name is qualified by its issuer.
    let both = || only_a().issuer("https://b.dev");
    for (claims, iss) in [(&one, "https://a.dev"), (&two, "https://b.dev")] {
        assert_eq!(user(both(), claims).as_deref(), Some("alice"));
        assert_eq!(issuer(both(), claims).as_deref(), Some(iss));
        // No issuer configured: the issuer of the token.
        assert_eq!(user_by_default(claims).as_deref(), Some("alice"));
        assert_eq!(issuer(Jwt::hs256(SECRET), claims).as_deref(), Some(iss));
    }
    assert_eq!(user(both(), &from("\"https://c.dev\"")), None);
    assert_eq!(user_by_default(&claims("alice")).as_deref(), Some("alice"));
    assert_eq!(issuer(Jwt::hs256(SECRET), &claims("alice")), None);
    for unclear in ["\"\"", "7", "null", "[]"] {
        assert_eq!(user_by_default(&from(unclear)), None, "{unclear}");
    }
}

#[test]
fn audiences() {
    let with = |aud: &str| {
        let jwt = Jwt::hs256(SECRET).audience("api").audience("admin");
        let claims = format!(r#"{{"sub":"alice","exp":{},"aud":{aud}}}"#, NOW + 60);
        user(jwt, &claims).is_some()
    };
    for good in ["\"api\"", "\"admin\"", "[\"x\",\"api\"]"] {
        assert!(with(good), "{good}");
    }
    for wrong in [
        "\"x\"",
        "[]",
        "[\"x\"]",
        "null",
        "7",
        "[7]",
        "{\"api\":1}",
        "\"API\"",
    ] {
        assert!(!with(wrong), "{wrong}");
    }
    assert_eq!(
        user(Jwt::hs256(SECRET).audience("api"), &claims("alice")),
        None
    );
}

#[test]
fn claims_are_found_by_path() {
    let identity = |more: &str| {
        let jwt = Jwt::hs256(SECRET)
            .user("user.id")
            .tier("https://example.com/plan")
            .tenant("org.id")
            .roles("access.roles")
            .build()
            .unwrap();
        let claims = format!(r#"{{"user":{{"id":"alice"}},"exp":{}{more}}}"#, NOW + 60);
        identify(&jwt, &bearer(&hs256(&claims)))
    };
    let plain = identity("").known();
    assert_eq!(plain.primary(), Some(("user", "alice")));
    assert_eq!((plain.tier_name(), plain.get("tenant")), (None, None));

    let full = identity(
        r#","https://example.com/plan":"team","org":{"id":"acme"},"access":{"roles":"admin"}"#,
    );
    let full = full.known();
    assert_eq!(
        (full.tier_name(), full.get("tenant")),
        (Some("team"), Some("acme"))
    );
    assert_eq!(full.roles().collect::<Vec<_>>(), ["admin"]);

    // A claim with just this name, dots and all, comes first.
    let dotted = identity(r#","org.id":"umbrella","org":{"id":"acme"}"#).known();
    assert_eq!(dotted.get("tenant"), Some("umbrella"));

    // A tier that makes no sense is none; a tenant that makes none is a lie.
    for tier in ["7", "\"\"", "[]", "null"] {
        let found = identity(&format!(r#","https://example.com/plan":{tier}"#)).known();
        assert_eq!(found.tier_name(), None);
    }
    let numbered = identity(r#","org":{"id":7}"#).known();
    assert_eq!(numbered.get("tenant"), Some("7"));
    for tenant in ["7.5", "\"\"", "[]", "{}"] {
        identity(&format!(r#","org":{{"id":{tenant}}}"#)).is_invalid();
    }
    assert_eq!(
        identity(r#","org":{"id":null}"#).known().get("tenant"),
        None
    );
    assert_eq!(identity(r#","org":"acme""#).known().get("tenant"), None);
    for roles in ["7", "null", "{}", "[7,null,\"\"]"] {
        let found = identity(&format!(r#","access":{{"roles":{roles}}}"#)).known();
        assert_eq!(found.roles().count(), 0, "{roles}");
    }
}

#[test]
fn nothing_secret_is_shown() {
    let jwt = Jwt::hs256(SECRET);
    let shown = format!("{jwt:?}");
    let jwt = jwt.build().unwrap();
    identify(&jwt, &bearer(&hs256(&claims("alice")))).known();
    let shown = format!("{shown}{jwt:?}");
    for secret in ["shared", "alice", "eyJ"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

proptest! {
    #[test]
    fn no_text_is_a_good_token_by_chance(
        token in prop_oneof![
            "[A-Za-z0-9_.-]{0,200}",
            "\\PC{0,60}".prop_map(|text| text),
        ],
        // Parts of a real one, cut and joined anew.
        from in 0_usize..200,
        to in 0_usize..200,
    ) {
        let jwt = jwt();
        let good = hs256(&claims("alice"));
        let (from, to) = (from.min(good.len()), to.min(good.len()));
        for text in [&token, &format!("{}{token}{}", &good[..from], &good[to..])] {
            if *text == good || http::HeaderValue::from_str(&format!("Bearer {text}")).is_err() {
                continue;
            }
            let found = identify(&jwt, &bearer(text)).found;
            prop_assert!(!matches!(found, Identified::Known(_)) || text.trim() == good);
        }
    }
}
