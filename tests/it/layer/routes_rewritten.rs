//! Paths that middleware between the router and the layer has changed.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Uri};
use axum::routing::{any, get};
use tollgate::policy::Policy;
use tower::Layer;
use tower::util::MapRequestLayer;

use super::routes::named_handler;
use super::routes_readings::{charged, limits, rule};

/// Removes the first segment of the path.
fn strip(mut request: Request<Body>) -> Request<Body> {
    let path = request.uri().path();
    let rest = path[1..].find('/').map_or("/", |at| &path[at + 1..]);
    *request.uri_mut() = rest.parse().unwrap();
    request
}

#[tokio::test]
async fn a_path_that_was_rewritten_inside_of_a_route_is_charged() {
    let policy = Policy::builder()
        .endpoint("/old", rule("old"))
        .endpoint("/new", rule("new"));
    let rewrite = MapRequestLayer::new(|mut request: Request<Body>| {
        *request.uri_mut() = Uri::from_static("/new");
        request
    });
    let inner = Router::new().route("/new", get(named_handler("new")));
    let app = Router::new().route_service("/old", rewrite.layer(limits(policy).layer(inner)));
    let answer = charged(&app, "GET /old", "new").await;
    assert_eq!(answer.charged(), ["ip:old:1h", "ip:new:1h", "ip:global:1h"]);
}

#[tokio::test]
async fn a_path_that_was_rewritten_to_its_end_is_charged() {
    for exempts_api in [false, true] {
        let policy = Policy::builder().endpoint("/login", rule("login"));
        let policy = if exempts_api {
            policy.exempt_route("/api/{*rest}")
        } else {
            policy.endpoint("/api/{*rest}", rule("api"))
        };
        let inner = Router::new().route("/login", any(named_handler("login")));
        let stripped = MapRequestLayer::new(strip).layer(limits(policy).layer(inner));
        let app = Router::new().route_service("/api/{*rest}", stripped);
        charged(&app, "GET /api/login", "login").await;
    }
}

/// The mount strips `/m`, and the middleware inside strips `/api`.
#[tokio::test]
async fn a_path_that_was_rewritten_to_its_end_inside_of_a_mount_is_charged() {
    let policy = Policy::builder()
        .endpoint("/m/{*rest}", rule("mount"))
        .endpoint("/login", rule("login"))
        .endpoint("/", rule("root"));
    let inner = Router::new()
        .route("/login", any(named_handler("login")))
        .route("/", any(named_handler("root")));
    let stripped = MapRequestLayer::new(strip).layer(limits(policy).layer(inner));
    let app = Router::new().nest_service("/m", stripped);
    charged(&app, "GET /m/api/login", "login").await;
    charged(&app, "GET /m/api", "root").await;
}

/// A mount strips its prefix as well. Rules inside of it name the full path.
#[tokio::test]
async fn the_rest_of_a_path_inside_of_a_mount_is_not_a_reading() {
    let policy = || {
        Policy::builder()
            .endpoint("/login", rule("other"))
            .endpoint("/", rule("root"))
            .endpoint("/{tenant}/m/login", rule("login"))
            .endpoint("/{tenant}/m/n/login", rule("login-of-n"))
    };
    let inner = || {
        let login = || Router::new().route("/login", any(named_handler("login")));
        let nested = Router::new().route("/login", any(named_handler("login-of-n")));
        login().nest_service("/n", limits(policy()).layer(nested))
    };
    let around = limits(policy()).layer(Router::new().route("/login", any(named_handler("login"))));
    for (app, lines) in [
        (
            Router::new().nest_service("/{tenant}/m", around),
            &[("/t/m/login", "login"), ("//m/login", "login")][..],
        ),
        (
            Router::new().nest_service("/{tenant}/m/", inner()),
            &[("/t/m/n/login", "login-of-n")],
        ),
        (
            Router::new().nest("/{tenant}/m", inner()),
            &[("/t/m/n/login", "login-of-n")],
        ),
    ] {
        for (path, ran) in lines {
            let answer = charged(&app, &format!("GET {path}"), ran).await;
            let expected = [format!("ip:{ran}:1h"), "ip:global:1h".to_owned()];
            assert_eq!(answer.charged(), expected, "{path}");
        }
    }
}
