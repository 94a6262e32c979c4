//! Exempt routes of a handler that also serves a path with a rule of its own.

use axum::Router;
use axum::routing::get;
use tollgate::headers::HeaderSet;
use tollgate::policy::{Policy, Rule};
use tollgate::{ManualClock, RateLimitLayer};
use tower::Layer;

use crate::support::http::send;

fn apps() -> [Router; 2] {
    let policy = Policy::builder()
        .everyone("1000/hour")
        .exempt_route("GET /files/{name}")
        .endpoint("GET /files/secret", Rule::new("50/hour").name("secret"));
    let builder = RateLimitLayer::builder(policy).clock(ManualClock::new());
    let layer = builder.headers(HeaderSet::Ietf).build().unwrap();
    let router = || Router::new().route("/files/{name}", get(async || "file"));
    let around = Router::new().fallback_service(layer.layer(router()));
    [router().layer(layer), around]
}

#[tokio::test]
async fn another_spelling_of_a_path_with_a_rule_is_not_exempt() {
    for app in apps() {
        for path in ["/files/secret", "/files/%73ecret", "/files/secre%74"] {
            let answer = send(&app, &format!("GET {path}"), &[]).await;
            assert_eq!(answer.status, 200);
            let charged = answer.charged();
            assert_eq!(charged, ["ip:secret:1h", "ip:global:1h"], "{path}");
        }
    }
}

#[tokio::test]
async fn other_encoded_paths_of_the_handler_stay_exempt() {
    for app in apps() {
        for path in ["/files/a", "/files/a%20b.png", "/files/%C3%A9t%C3%A9"] {
            let answer = send(&app, &format!("GET {path}"), &[]).await;
            assert_eq!((answer.status, answer.charged()), (200, vec![]), "{path}");
        }
    }
    // Inside of the router, the handler is known.
    let [inside, _] = apps();
    for path in ["/files/a%2Fb", "/files/%2e%2e"] {
        let answer = send(&inside, &format!("GET {path}"), &[]).await;
        assert_eq!((answer.status, answer.charged()), (200, vec![]), "{path}");
    }
}
