//! Forged requests: none charges the counter of another caller, and none shares one.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use jsonwebtoken::{Algorithm, EncodingKey};
use tollgate::identity::{ClientIp, ForwardedHeader, Jwt, OnInvalidCredentials, PeerAddr};
use tollgate::policy::{Policy, Rule, Tiers};
use tollgate::{ManualClock, RateLimitLayer};
use tower::ServiceExt;

use super::{Answer, echo, request, send};
use crate::support::tokens::NOW;
use crate::support::tokens::{
    RSA_1, RSA_1_PRIVATE, RSA_2_PRIVATE, SECRET, base64url, claims, hs256, rs256, sign, tampered,
};

const MANY: &str = "1000000/hour";

fn app(jwt: Jwt) -> (Router, ManualClock) {
    let clock = ManualClock::new();
    let policy = Policy::builder().authenticated(MANY).anonymous("500/hour");
    let layer = RateLimitLayer::builder(policy)
        .identify(jwt)
        .failed_auth_quota(MANY)
        .clock(clock.clone());
    (echo().layer(layer.build().unwrap()), clock)
}

/// Sends a request. Returns the policy that counted it, and what remains.
async fn counted(app: &Router, token: &str) -> (String, u64) {
    let answer = send(
        app,
        "GET /",
        &[("authorization", &format!("Bearer {token}"))],
    )
    .await;
    (
        answer.header("x-ratelimit-policy").unwrap().to_owned(),
        answer.number("x-ratelimit-remaining"),
    )
}

#[tokio::test]
async fn a_forged_token_charges_no_other_users_counter() {
    let jwt = Jwt::builder()
        .algorithms([tollgate::identity::JwtAlgorithm::Rs256])
        .pem(RSA_1)
        .build()
        .unwrap();
    let (app, clock) = app(jwt);
    let valid = rs256(RSA_1_PRIVATE, "", &claims("victim"));
    assert_eq!(
        counted(&app, &valid).await,
        ("user:global:1h".to_owned(), 999_999)
    );

    let with_public_key_as_secret = {
        let key = EncodingKey::from_secret(RSA_1.as_bytes());
        sign(
            r#"{"alg":"HS256"}"#,
            &claims("victim"),
            Algorithm::HS256,
            &key,
        )
    };
    let [head, body, signature] = valid.split('.').collect::<Vec<_>>().try_into().unwrap();
    let mut flipped = signature.to_owned();
    flipped.replace_range(
        9..10,
        if signature.as_bytes()[9] == b'A' {
            "B"
        } else {
            "A"
        },
    );
    let claim = |text: String| rs256(RSA_1_PRIVATE, "", &text);
    let forged = [
        format!("{}.{body}.", base64url(r#"{"alg":"none"}"#)),
        format!("{}.{body}.{signature}", base64url(r#"{"alg":"none"}"#)),
        format!("{}.{body}.{signature}", base64url(r#"{"alg":"HS256"}"#)),
        format!("{head}.{body}.{flipped}"),
        format!("{head}.{body}."),
        format!("{head}.{body}"),
        format!(
            "{head}.{}.{signature}",
            base64url(claims("victim").replace("victim", "victim "))
        ),
        rs256(RSA_2_PRIVATE, "", &claims("victim")),
        with_public_key_as_secret,
        claim(format!(r#"{{"sub":"victim","exp":{}}}"#, NOW - 3_600)),
        claim(format!(r#"{{"sub":"victim","exp":"{}"}}"#, NOW + 3_600)),
        claim(r#"{"sub":"victim"}"#.to_owned()),
        claim(format!(r#"{{"sub":["victim"],"exp":{}}}"#, NOW + 3_600)),
        claim(format!(r#"{{"sub":"","exp":{}}}"#, NOW + 3_600)),
        claim(format!(
            r#"{{"sub":"victim","exp":{},"nbf":{}}}"#,
            NOW + 3_600,
            NOW + 1_800
        )),
        "garbage".to_owned(),
        "..".to_owned(),
        String::new(),
    ];
    let mut left = 500;
    for token in &forged {
        left -= 1;
        assert_eq!(
            counted(&app, token).await,
            ("ip:global:1h".to_owned(), left),
            "{token}"
        );
    }
    assert_eq!(
        counted(&app, &valid).await,
        ("user:global:1h".to_owned(), 999_998),
        "another caller has charged the counter of the victim"
    );

    // The token is cached, but not longer than it is valid.
    clock.advance(Duration::from_secs(3_600 + 61));
    assert_eq!(counted(&app, &valid).await.0, "ip:global:1h");
}

/// Returns a token of `alice` from an issuer.
fn alice_of(issuer: &str) -> String {
    hs256(&format!(
        r#"{{"sub":"alice","tenant":"acme","iss":"{issuer}","exp":{}}}"#,
        NOW + 60
    ))
}

#[tokio::test]
async fn equal_names_of_two_issuers_are_two_users() {
    let per_user = Rule::new("100/hour").per(["user"]);
    let per_both = Rule::new("100/hour").per(["tenant", "user"]);
    for policy in [
        Policy::builder().authenticated("100/hour"),
        Policy::builder().rule("one", per_user),
        Policy::builder().rule("two", per_both),
    ] {
        let layer = RateLimitLayer::builder(policy)
            .identify(Jwt::hs256(SECRET).tenant("tenant").build().unwrap())
            .clock(ManualClock::new());
        let app = echo().layer(layer.build().unwrap());
        assert_eq!(counted(&app, &alice_of("https://a.example")).await.1, 99);
        assert_eq!(counted(&app, &alice_of("https://b.example")).await.1, 99);
        assert_eq!(counted(&app, &alice_of("https://a.example")).await.1, 98);
        // No issuer, and a name in the form of a qualified one.
        for posing in ["alice", "17:https://a.example:alice", "@https://a.example"] {
            let claims = claims(posing).replace('{', r#"{"tenant":"acme","#);
            assert_eq!(counted(&app, &hs256(&claims)).await.1, 99, "{posing}");
        }
    }
}

#[tokio::test]
async fn subjects_of_a_policy_are_bare_user_names() {
    let tiers = Tiers::new("free")
        .tier("team", 5)
        .assign("user", "alice", "team");
    let policy = Policy::builder().authenticated("100/hour").tiers(tiers);
    let (app_of, token) = (
        |policy| {
            let layer = RateLimitLayer::builder(policy)
                .identify(Jwt::hs256(SECRET).build().unwrap())
                .clock(ManualClock::new());
            echo().layer(layer.build().unwrap())
        },
        alice_of("https://a.example"),
    );
    assert_eq!(counted(&app_of(policy), &token).await.1, 499);

    let exempt = Policy::builder()
        .authenticated("100/hour")
        .exempt_subject("user", "alice");
    let bearer = format!("Bearer {token}");
    let answer = send(&app_of(exempt), "GET /", &[("authorization", &bearer)]).await;
    assert_eq!(answer.header("x-ratelimit-remaining"), None);
}

/// Sends a request from `peer` with these headers. Returns what remains.
async fn from(app: &Router, peer: &str, headers: &[(&str, &str)]) -> u64 {
    let mut request: Request<Body> = request("GET /", headers);
    request
        .extensions_mut()
        .insert(PeerAddr(peer.parse().unwrap()));
    let response = app.clone().oneshot(request).await.unwrap();
    Answer::read(response).await.number("x-ratelimit-remaining")
}

#[tokio::test]
async fn forwarding_headers_of_untrusted_peers_are_ignored() {
    let policy = Policy::builder().anonymous("100/hour");
    let layer = RateLimitLayer::builder(policy)
        .trusted_proxies(["10.0.0.0/8"])
        .clock(ManualClock::new())
        .build()
        .unwrap();
    let app = echo().layer(layer);
    // The victim sends through the proxy.
    assert_eq!(
        from(&app, "10.0.0.1:1", &[("x-forwarded-for", "203.0.113.9")]).await,
        99
    );
    // Headers of untrusted peers are ignored.
    assert_eq!(
        from(
            &app,
            "198.51.100.1:1",
            &[("x-forwarded-for", "203.0.113.9")]
        )
        .await,
        99
    );
    assert_eq!(
        from(&app, "198.51.100.1:2", &[("x-real-ip", "203.0.113.9")]).await,
        98
    );
    assert_eq!(
        from(&app, "198.51.100.1:3", &[("forwarded", "for=203.0.113.9")]).await,
        97
    );
    // Of a trusted proxy's header, only the address that the proxy added is used.
    let rotated = [
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-for", "1.2.3.4, 198.51.100.1"),
    ];
    assert_eq!(from(&app, "10.0.0.1:1", &rotated).await, 96);
    assert_eq!(
        from(
            &app,
            "10.0.0.1:1",
            &[("x-forwarded-for", "203.0.113.9, garbage, 198.51.100.1:443")]
        )
        .await,
        95
    );
    // The IPv4-mapped form counts as the same address.
    assert_eq!(from(&app, "[::ffff:198.51.100.1]:9", &[]).await, 94);
    // The counter of the victim was charged only by the victim.
    assert_eq!(
        from(&app, "10.0.0.1:7", &[("x-forwarded-for", "203.0.113.9")]).await,
        98
    );
    // An IPv6 /64 counts as one client.
    assert_eq!(from(&app, "[2001:db8::1]:1", &[]).await, 99);
    assert_eq!(from(&app, "[2001:db8::ffff:1]:1", &[]).await, 98);
    assert_eq!(from(&app, "[2001:db8:0:1::1]:1", &[]).await, 99);
}

#[tokio::test]
async fn a_client_with_an_unknown_address_is_not_exempt_by_its_proxy() {
    let policy = Policy::builder()
        .anonymous("100/hour")
        // The IPv4-mapped form is in the same network.
        .exempt_network("::ffff:10.0.0.0/104");
    let layer = RateLimitLayer::builder(policy)
        .trusted_proxies(["10.0.0.0/8"])
        .clock(ManualClock::new())
        .build()
        .unwrap();
    let app = echo().layer(layer);
    let hidden = [("x-forwarded-for", "unknown")];
    assert_eq!(from(&app, "10.0.0.1:1", &hidden).await, 99);
    assert_eq!(from(&app, "10.0.0.1:1", &[]).await, 98);
    let hidden = [("x-forwarded-for", "6.6.6.6, unknown, 10.0.0.1")];
    assert_eq!(from(&app, "10.0.0.2:1", &hidden).await, 97);
    // A client whose forwarded address is in the network is exempt.
    let inside = request("GET /", &[("x-forwarded-for", "10.0.0.9")]);
    let (mut parts, body) = inside.into_parts();
    parts
        .extensions
        .insert(PeerAddr("10.0.0.1:1".parse().unwrap()));
    let response = app.oneshot(Request::from_parts(parts, body)).await.unwrap();
    assert!(response.headers().get("x-ratelimit-remaining").is_none());
}

#[tokio::test]
async fn a_user_named_like_an_address_has_its_own_counter() {
    let policy = Policy::builder()
        .authenticated("100/hour")
        .anonymous("100/hour")
        .rule("tenant", Rule::new("100/hour").per(["tenant"]));
    let client_ip = ClientIp::builder()
        .trust_all_proxies_insecure()
        .header(ForwardedHeader::XRealIp);
    let (builder, _) = super::layer(policy);
    let app = echo().layer(
        builder
            .client_ip(client_ip.build().unwrap())
            .build()
            .unwrap(),
    );
    let left = |headers: Vec<(&'static str, &'static str)>| {
        let app = app.clone();
        async move {
            send(&app, "GET /", &headers)
                .await
                .number("x-ratelimit-remaining")
        }
    };
    assert_eq!(left(vec![("x-real-ip", "1.2.3.4")]).await, 99);
    assert_eq!(left(vec![("x-user", "1.2.3.4")]).await, 99);
    assert_eq!(left(vec![("x-user", "a:b"), ("x-tenant", "c")]).await, 99);
    assert_eq!(left(vec![("x-user", "a"), ("x-tenant", "b:c")]).await, 99);
    assert_eq!(left(vec![("x-user", "other"), ("x-tenant", "c")]).await, 98);
}

#[tokio::test]
async fn identity_is_not_read_for_exempt_networks() {
    let policy = Policy::builder()
        .everyone("5/hour")
        .exempt_network("192.0.2.0/24");
    let layer = RateLimitLayer::builder(policy)
        .identify(Jwt::hs256(SECRET).build().unwrap())
        .on_invalid_credentials(OnInvalidCredentials::Reject)
        .build()
        .unwrap();
    let app = echo().layer(layer);
    for (peer, status) in [("192.0.2.7:1", 200), ("198.51.100.1:1", 401)] {
        let wrong = format!("Bearer {}", tampered(&hs256(&claims("alice"))));
        let mut request: Request<Body> = request("GET /", &[("authorization", &wrong)]);
        request
            .extensions_mut()
            .insert(PeerAddr(peer.parse().unwrap()));
        let response = app.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), status, "{peer}");
    }
}
