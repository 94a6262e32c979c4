//! Paths that ordinary clients send are neither rejected nor uncounted.

use axum::Router;
use tollgate::headers::HeaderSet;
use tollgate::policy::{Policy, Rule};
use tollgate::{ManualClock, RateLimitLayer};
use tower::Layer;

use crate::support::http::{echo, send};

fn apps() -> [Router; 2] {
    let policy = Policy::builder()
        .everyone("100000/hour")
        .endpoint("/{bucket}/{*key}", Rule::new("10000/hour").name("objects"))
        .endpoint("GET /v1/items/{id}", Rule::new("10000/hour").name("item"))
        .endpoint(
            "GET /v4/projects/{id}/files/{path}/raw",
            Rule::new("10000/hour").name("raw"),
        )
        .exempt_route("GET /health");
    let builder = RateLimitLayer::builder(policy).clock(ManualClock::new());
    let layer = builder.headers(HeaderSet::Ietf).build().unwrap();
    let around = Router::new().fallback_service(layer.layer(echo()));
    [echo().layer(layer), around]
}

#[tokio::test]
async fn paths_of_ordinary_clients_are_counted() {
    let long_key = format!("/bucket/{}", vec!["part"; 200].join("%2F"));
    let deep = format!("/bucket{}", "/directory".repeat(100));
    let spaces = format!("/bucket/{}", "%20".repeat(500));
    let utf8 = format!("/bucket/{}", "%E3%81%82".repeat(300));
    for (path, rule) in [
        ("/bucket/photos%2F2024%2Fmy%20cat.jpg", "objects"),
        ("/bucket/a..b/..c/d../...", "objects"),
        ("/bucket/v1.2.3/file.tar.gz", "objects"),
        ("/bucket/key+with=odd;chars,~!$&'()*:@", "objects"),
        ("/bucket/folder/", "objects"),
        ("/bucket/100%", "objects"),
        ("/bucket/%zz", "objects"),
        ("/bucket/C%3A%5CUsers", "objects"),
        ("/.well-known/acme-challenge/x-Y_z", "objects"),
        ("/v1/items/alice%40example.com", "item"),
        ("/v1/items/urn:uuid:1-2.3", "item"),
        ("/v1/items/..%2e", "item"),
        ("/v1/items/1/", "item"),
        (
            "/v4/projects/group%2Fsub%2Fproject/files/src%2Fa%2Fb.rs/raw",
            "raw",
        ),
        (&long_key, "objects"),
        (&deep, "objects"),
        (&spaces, "objects"),
        (&utf8, "objects"),
    ] {
        for app in apps() {
            let answer = send(&app, &format!("GET {path}"), &[]).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            let charged = answer.charged();
            let expected = format!("ip:{rule}:1h");
            assert!(charged.contains(&expected), "{path}: {charged:?}");
            assert!(charged.contains(&"ip:global:1h".to_owned()), "{path}");
        }
    }
}
