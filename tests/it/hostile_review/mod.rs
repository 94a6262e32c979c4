//! Requests of hostile callers, and of valid callers with unusual but ordinary requests.

mod cookies;
mod exemptions;
mod keys_without_user;
mod ordinary_paths;
mod reasons;
mod rewritten;
mod verifications;
mod wire_forms;

use axum::Router;
use tollgate::identity::Jwt;
use tollgate::policy::Policy;
use tollgate::{ManualClock, RateLimitLayer, RateLimitLayerBuilder};

use crate::support::http::{Answer, echo};
use crate::support::tokens::{SECRET, claims, hs256};

const PEER: &str = "203.0.113.9:4711";

/// A layer on a clock that stands still, with different quotas for users and client IPs.
fn builder() -> RateLimitLayerBuilder {
    let policy = Policy::builder()
        .authenticated("1000/hour")
        .anonymous("100000/hour");
    RateLimitLayer::builder(policy).clock(ManualClock::new())
}

fn app(jwt: Jwt) -> Router {
    echo().layer(builder().identify(jwt).build().unwrap())
}

fn bearer_app() -> Router {
    app(Jwt::hs256(SECRET).build().unwrap())
}

fn cookie_app() -> Router {
    app(Jwt::hs256(SECRET).cookie("session").build().unwrap())
}

fn token(user: &str) -> String {
    hs256(&claims(user))
}

#[track_caller]
fn is_user(answer: &Answer) {
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.header("x-ratelimit-policy"), Some("user:global:1h"));
}

#[track_caller]
fn is_unauthenticated(answer: &Answer) {
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:global:1h"));
}
