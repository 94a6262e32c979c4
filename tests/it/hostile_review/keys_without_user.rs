//! Keys of Supabase with a source that accepts one issuer and one audience.

use axum::Router;
use tollgate::identity::Jwt;

use super::{PEER, app};
use crate::support::http::send_from;
use crate::support::tokens::NOW;
use crate::support::tokens::{SECRET, hs256, tampered};

const ISSUER: &str = "https://ref.supabase.co/auth/v1";

fn apps() -> [Router; 3] {
    let jwt = || Jwt::hs256(SECRET).roles("role");
    [
        jwt().issuer(ISSUER),
        jwt().audience("authenticated"),
        jwt().issuer(ISSUER).audience("authenticated"),
    ]
    .map(|jwt| app(jwt.build().unwrap()))
}

fn key(more: &str) -> String {
    let exp = NOW + 3_600;
    hs256(&format!(
        r#"{{"iss":"supabase","role":"anon","exp":{exp}{more}}}"#
    ))
}

async fn status(app: &Router, token: &str) -> u16 {
    let authorization = format!("Bearer {token}");
    let headers = [("authorization", authorization.as_str())];
    send_from(app, PEER, "GET /", &headers).await.status
}

#[tokio::test]
async fn an_anon_key_of_another_issuer_is_not_charged() {
    for app in apps() {
        for view in 0..100 {
            assert_eq!(status(&app, &key("")).await, 200, "{view}");
        }
    }
}

#[tokio::test]
async fn forged_keys_and_users_of_another_issuer_are_charged() {
    for token in [tampered(&key("")), key(r#","sub":"mallory""#)] {
        for app in apps() {
            for attempt in 0..61 {
                let expected = if attempt < 60 { 200 } else { 429 };
                assert_eq!(status(&app, &token).await, expected, "{attempt}");
            }
        }
    }
}
