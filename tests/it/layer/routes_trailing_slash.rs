//! Rules whose routes end in a slash.

use axum::Router;
use axum::routing::any;
use tollgate::policy::{Policy, PolicyBuilder, Rule};
use tower::Layer;

use super::routes::named_handler;
use super::routes_readings::{charged, limits, rule};

#[tokio::test]
async fn a_matched_pattern_takes_precedence_over_a_route_that_ends_in_a_slash() {
    let policy = Policy::builder()
        .endpoint("/page", rule("page"))
        .endpoint("/page/", rule("page-slash"))
        .endpoint("/items/{id}", rule("item"))
        .endpoint("/items/top", rule("top"));
    let router = Router::new()
        .route("/page", any(named_handler("page")))
        .route("/items/{item_id}", any(named_handler("item")));
    let app = router.layer(limits(policy));
    for (path, ran) in [
        ("/page", "page"),
        ("/items/1", "item"),
        ("/items/%74op", "item"),
    ] {
        let answer = charged(&app, &format!("GET {path}"), ran).await;
        let expected = [format!("ip:{ran}:1h"), "ip:global:1h".to_owned()];
        assert_eq!(answer.charged(), expected, "{path}");
    }
}

/// axum matches the root path of a mount with and without the slash. The rule may name either.
#[tokio::test]
async fn a_matched_pattern_is_charged_to_the_rule_with_the_other_slash() {
    let inner = || Router::new().route("/", any(named_handler("start")));
    for pattern in ["/m", "/m/"] {
        let policy = Policy::builder()
            .endpoint(pattern, rule("start").global(false))
            .endpoint("/other/", rule("other"));
        let app = Router::new()
            .nest_service("/m", inner())
            .layer(limits(policy));
        for path in ["/m", "/m/"] {
            let answer = charged(&app, &format!("GET {path}"), "start").await;
            assert_eq!(answer.charged(), ["ip:start:1h"], "{pattern}: {path}");
        }
    }
}

/// Returns a policy with five quotas for each of two routes.
fn five_each(first: &str, second: &str) -> PolicyBuilder {
    let five = |name: &str| {
        let rule = Rule::new("100/second")
            .limit("200/minute")
            .limit("300/hour");
        rule.limit("400/day")
            .limit("500/week")
            .name(name.to_owned())
    };
    Policy::builder()
        .endpoint(first, five("first").global(false))
        .endpoint(second, five("second").global(false))
}

#[test]
fn a_plain_path_that_more_than_8_quotas_count_is_a_policy_error() {
    for (first, second) in [
        ("/page", "/page/"),
        ("/login", "/{page}/"),
        ("GET /page", "/page/"),
        ("/a/{id}", "/a/{name}/"),
    ] {
        let error = five_each(first, second).build().unwrap_err().to_string();
        let number = "number of quotas: found `10`, expected at most 8";
        assert!(error.contains(number), "{first}, {second}: {error}");
    }
    five_each("/page", "/other/").build().unwrap();
    five_each("/page/a", "/page/{id}/b/").build().unwrap();
}

/// The error above ensures that a plain path is never rejected.
#[tokio::test]
async fn a_plain_path_is_charged_with_and_without_the_slash_around_the_router() {
    let policy = Policy::builder()
        .endpoint("/page", rule("page"))
        .endpoint("/page/", rule("page-slash"));
    let router = Router::new().route("/page", any(named_handler("page")));
    let app = Router::new().fallback_service(limits(policy).layer(router));
    let answer = charged(&app, "GET /page", "page").await;
    let expected = ["ip:page:1h", "ip:page-slash:1h", "ip:global:1h"];
    assert_eq!(answer.charged(), expected);
}

#[tokio::test]
async fn a_matched_pattern_with_percent_encoding_is_charged() {
    let policy = Policy::builder()
        .endpoint("/a%20b/{id}", rule("own"))
        .endpoint("/{p}/{id}", rule("other"));
    let router = Router::new().route("/a%20b/{id}", any(named_handler("own")));
    let app = router.layer(limits(policy));
    let answer = charged(&app, "GET /a%20b/1", "own").await;
    assert_eq!(answer.charged(), ["ip:own:1h", "ip:global:1h"]);
}
