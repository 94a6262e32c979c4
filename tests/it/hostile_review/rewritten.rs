//! Paths that something else than a mount has shortened.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Uri};
use axum::routing::any;
use tollgate::RateLimitLayer;
use tollgate::headers::HeaderSet;
use tollgate::policy::{Policy, Rule};
use tower::Layer;
use tower::util::MapRequestLayer;

use crate::support::http::{Answer, send};

fn strip(mut request: Request<Body>) -> Request<Body> {
    if let Some(rest) = request.uri().path().strip_prefix("/public") {
        let uri: Uri = rest.parse().unwrap();
        *request.uri_mut() = uri;
    }
    request
}

fn rename(mut request: Request<Body>) -> Request<Body> {
    if request.uri().path() == "/old" {
        *request.uri_mut() = Uri::from_static("/v1/login");
    }
    request
}

fn limits(policy: tollgate::policy::PolicyBuilder) -> RateLimitLayer {
    let policy = policy.everyone("1000/hour");
    let builder = RateLimitLayer::builder(policy).clock(tollgate::ManualClock::new());
    builder.headers(HeaderSet::Ietf).build().unwrap()
}

fn app(limits: &RateLimitLayer) -> Router {
    let inner = Router::new().route("/v1/login", any(async || "login"));
    let limited = limits.layer(inner);
    let stripped = MapRequestLayer::new(strip).layer(limited);
    Router::new().route_service("/public/{*rest}", stripped)
}

#[track_caller]
fn counts_login(answer: &Answer) {
    assert_eq!((answer.status, &*answer.body), (200, "login"));
    let charged = answer.charged();
    assert!(charged.contains(&"ip:login:1h".to_owned()), "{charged:?}");
}

#[tokio::test]
async fn a_stripped_prefix_does_not_evade_the_rule_of_the_handler() {
    let policy = Policy::builder()
        .endpoint("/v1/login", Rule::new("5/hour").name("login"))
        .endpoint("/public/{*rest}", Rule::new("100/hour").name("public"));
    let app = app(&limits(policy));
    counts_login(&send(&app, "POST /public/v1/login", &[]).await);
}

#[tokio::test]
async fn a_stripped_prefix_does_not_exempt_the_handler() {
    let policy = Policy::builder()
        .endpoint("/v1/login", Rule::new("5/hour").name("login"))
        .exempt_route("/public/{*rest}");
    let app = app(&limits(policy));
    counts_login(&send(&app, "POST /public/v1/login", &[]).await);
}

/// A mount strips its prefix as well, and rules name the whole path there.
#[tokio::test]
async fn a_layer_inside_of_a_mount_does_not_read_the_rest_as_a_path() {
    let policy = || {
        Policy::builder()
            .endpoint("/v1/login", Rule::new("5/hour").name("login"))
            .exempt_route("/public/{*rest}")
    };
    let inner = || Router::new().route("/v1/login", any(async || "login"));
    let mounted = limits(policy()).layer(inner());
    for app in [
        Router::new().nest_service("/public", mounted),
        Router::new().nest("/public", inner().layer(limits(policy()))),
        Router::new()
            .nest("/public", inner())
            .layer(limits(policy())),
    ] {
        let answer = send(&app, "POST /public/v1/login", &[]).await;
        assert_eq!((answer.status, answer.charged()), (200, vec![]));
    }
}

#[tokio::test]
async fn a_path_that_is_rewritten_inside_of_a_mount_is_read_behind_the_mount() {
    let policy = || {
        let login = Rule::new("5/hour").name("login");
        Policy::builder().endpoint("/t/{tenant}/v1/login", login)
    };
    let inner = || Router::new().route("/v1/login", any(async || "login"));
    let renaming = MapRequestLayer::new(rename);
    let around = renaming.layer(limits(policy()).layer(inner()));
    let inside = renaming.layer(inner().layer(limits(policy())));
    for app in [
        Router::new().nest_service("/t/{tenant}", around),
        Router::new().nest_service("/t/{tenant}", inside),
    ] {
        counts_login(&send(&app, "POST /t/1/old", &[]).await);
    }
}
