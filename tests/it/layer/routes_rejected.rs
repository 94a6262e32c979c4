//! Paths that are rejected with 400 or 414, and exempt paths.

use axum::Router;
use axum::routing::any;
use tollgate::policy::{Policy, PolicyBuilder, Rule};
use tollgate::response::ProblemJson;
use tower::Layer;

use super::routes::named_handler;
use super::send;

fn policy() -> PolicyBuilder {
    Policy::builder()
        .everyone("1000/hour")
        .endpoint("POST /v1/login", Rule::new("5/hour").name("login"))
        .exempt_route("/public/{*rest}")
}

fn outside(policy: PolicyBuilder) -> Router {
    let (builder, _) = super::layer(policy);
    let inner = Router::new().fallback(named_handler("any"));
    Router::new().fallback_service(builder.build().unwrap().layer(inner))
}

const DOTS: [&str; 12] = [
    "/public/../v1/login",
    "/public/%2e%2e/v1/login",
    "/public/%2E%2E/v1/login",
    "/public/.%2e/v1/login",
    "/public/..%2Fv1/login",
    "/public/..%2fv1%2flogin",
    "/public%2F..%2Fv1%2Flogin",
    "/public/x/../../v1/login",
    "/public/./a.png",
    "/public/a/.",
    "/..",
    "/public/..\\v1/login",
];

#[tokio::test]
async fn dot_segments_are_rejected_before_anything_is_counted() {
    let app = outside(policy());
    for path in DOTS {
        let answer = send(&app, &format!("POST {path}"), &[("x-request-id", "r1")]).await;
        assert_eq!(answer.status, 400, "{path}");
        assert_eq!(answer.header("x-ran"), None, "{path}");
        assert_eq!(answer.header("x-ratelimit-policy"), None, "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let body = answer.json();
        assert_eq!(body["error"]["code"], "INVALID_PATH", "{path}");
        assert_eq!(body["error"]["request_id"], "r1");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("The request path has a "), "{message}");
    }
    let next = send(&app, "POST /v1/login", &[]).await;
    assert_eq!(next.number("x-ratelimit-remaining"), 4);
}

#[tokio::test]
async fn an_exempt_wildcard_does_not_exempt_other_routes() {
    let app = outside(policy());
    for (path, is_exempt) in [
        ("/public/a.png", true),
        ("/public/a%20b.png", true),
        ("/public/%61/b", true),
        ("/public//a.png", true),
        ("/public/a%2Fb.png", true),
        ("/public/a/", true),
        ("/public/a...b/.hidden", true),
        ("/public", false),
        ("/public/", false),
        ("/%70ublic/a.png", false),
        ("//public/a.png", false),
        ("/public%2Fa.png", false),
        ("/other", false),
    ] {
        let answer = send(&app, &format!("GET {path}"), &[]).await;
        assert_eq!(answer.status, 200, "{path}");
        let counted = answer.header("x-ratelimit-policy").is_some();
        assert_eq!(counted, !is_exempt, "{path}");
    }
}

#[tokio::test]
async fn a_rule_inside_of_an_exempt_wildcard_is_charged_by_every_reading() {
    let policy = || policy().endpoint("/public/export", Rule::new("5/hour").name("export"));
    let app = outside(policy());
    for path in [
        "/public/export",
        "/public/%65xport",
        "/public//export",
        "/public/export/",
        "/public%2Fexport",
    ] {
        let answer = send(&app, &format!("GET {path}"), &[]).await;
        let counted = answer.header("x-ratelimit-policy");
        assert_eq!(counted, Some("ip:export:1h"), "{path}");
    }
}

#[tokio::test]
async fn unusual_paths_are_charged_by_their_matched_pattern_without_wildcard() {
    let policy = Policy::builder()
        .everyone("1000/hour")
        .endpoint("/users/{id}", Rule::new("100/hour").name("user"))
        .endpoint("/files/{*rest}", Rule::new("100/hour").name("files"));
    let (builder, _) = super::layer(policy);
    let app = Router::new()
        .route("/users/{id}", any(named_handler("user")))
        .route("/files/{*rest}", any(named_handler("files")))
        .layer(builder.build().unwrap());
    for path in [
        "/users/..",
        "/users/%2e",
        "/users/a\\b",
        "/users/a%2F..%2Fb",
    ] {
        let answer = send(&app, &format!("GET {path}"), &[]).await;
        assert_eq!(answer.header("x-ran"), Some("user"), "{path}");
        assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:user:1h"));
    }
    for path in ["/files/..", "/files/%2e/x", "/nowhere/.."] {
        let answer = send(&app, &format!("GET {path}"), &[]).await;
        assert_eq!(answer.status, 400, "{path}");
    }
}

#[tokio::test]
async fn a_policy_without_routes_rejects_no_path() {
    let app = outside(Policy::builder().everyone("1000/hour"));
    let long = format!("/{}", "a%2F".repeat(4_000));
    for path in DOTS.iter().copied().chain([long.as_str()]) {
        let answer = send(&app, &format!("GET {path}"), &[]).await;
        assert_eq!(answer.status, 200, "{path}");
    }
}

#[tokio::test]
async fn exempt_callers_are_not_rejected() {
    let app = outside(policy().exempt_subject("tenant", "acme"));
    let acme = [("x-user", "ada"), ("x-tenant", "acme")];
    assert_eq!(send(&app, "GET /a/../b", &acme).await.status, 200);
    assert_eq!(
        send(&app, "GET /a/../b", &[("x-user", "ada")]).await.status,
        400
    );
    let app = outside(policy().exempt_when(|head| head.path().starts_with("/a/")));
    assert_eq!(send(&app, "GET /a/../b", &[]).await.status, 200);
}

#[tokio::test]
async fn a_path_over_8_kib_is_rejected_only_if_it_needs_normalization() {
    let app = outside(policy());
    let plain = format!("/{}", "a".repeat(10_000));
    assert_eq!(send(&app, &format!("GET {plain}"), &[]).await.status, 200);
    let answer = send(&app, &format!("GET {plain}%20"), &[]).await;
    assert_eq!(answer.status, 414);
    assert_eq!(answer.json()["error"]["code"], "PATH_TOO_LONG");
    let query = format!("GET /%61?{}", "a".repeat(10_000));
    assert_eq!(send(&app, &query, &[]).await.status, 200);
}

#[tokio::test]
async fn too_many_readings_are_rejected() {
    let app = outside(policy().endpoint("/{a}/{b}/{c}", Rule::new("5/hour").name("three")));
    for path in [
        format!("/{}", "a%2F".repeat(2_000)),
        "//%2F".repeat(1_500),
        "/%2F".repeat(2_000),
    ] {
        let answer = send(&app, &format!("GET {path}"), &[]).await;
        assert_eq!(answer.status, 400, "{}", &path[..20]);
        let message = answer.json()["error"]["message"].to_string();
        assert!(message.contains("too many"), "{message}");
    }
}

/// Each of the two rules fits into a batch. Both together do not.
#[tokio::test]
async fn readings_with_more_than_eight_quotas_are_rejected() {
    let five = |name: &str| {
        Rule::new("1/second")
            .limit("10/minute")
            .limit("100/hour")
            .limit("1000/day")
            .limit("10/5m")
            .name(name)
    };
    let policy = Policy::builder()
        .endpoint("/a/b", five("literal"))
        .endpoint("/a/{x}", five("parameter"));
    let app = outside(policy);
    assert_eq!(send(&app, "GET /a/b", &[]).await.status, 200);
    let answer = send(&app, "GET /a/%62", &[]).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json()["error"]["code"], "INVALID_PATH");
}

#[test]
fn a_plain_path_with_more_than_eight_quotas_is_a_policy_error() {
    let five = |name: &str| {
        Rule::new("1/second")
            .limit("10/minute")
            .limit("100/hour")
            .limit("1000/day")
            .limit("10/5m")
            .name(name)
    };
    let policy = Policy::builder()
        .endpoint("/m", five("route"))
        .endpoint("/m/{*rest}", five("mount"));
    let problem = policy.build().unwrap_err().to_string();
    assert!(problem.contains("at most 8"), "{problem}");
    assert!(problem.contains("/m/{*rest}"), "{problem}");
}

#[test]
fn a_parameter_with_a_suffix_is_a_policy_error() {
    let suffix = Policy::builder()
        .endpoint("GET /x/{name}.json", "5/hour")
        .build();
    let problem = suffix.unwrap_err().to_string();
    assert!(
        problem.contains("`{name}.json` has text after it"),
        "{problem}"
    );
    let prefix = Policy::builder()
        .endpoint("GET /user_{name}", "5/hour")
        .build();
    assert!(prefix.is_ok());
}

#[tokio::test]
async fn rejections_go_through_the_renderer() {
    let (builder, _) = super::layer(policy());
    let inner = Router::new().fallback(named_handler("any"));
    let layer = builder.render(ProblemJson).build().unwrap();
    let app = Router::new().fallback_service(layer.layer(inner));
    let answer = send(&app, "GET /a/..", &[]).await;
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    let body = answer.json();
    assert_eq!(
        (&body["status"], &body["title"]),
        (&400.into(), &"Bad Request".into())
    );

    let app = outside(policy());
    let grpc = [("content-type", "application/grpc")];
    let answer = send(&app, "POST /a/..", &grpc).await;
    assert_eq!(
        (answer.status, answer.header("grpc-status")),
        (200, Some("3"))
    );
    let long = format!("POST /%61{}", "a".repeat(9_000));
    let answer = send(&app, &long, &grpc).await;
    assert_eq!(
        (answer.status, answer.header("grpc-status")),
        (200, Some("3"))
    );
}

#[tokio::test]
async fn unusual_request_targets_are_counted() {
    let app = outside(policy());
    for line in [
        "OPTIONS *",
        "GET http://example.com",
        "GET http://example.com/x",
    ] {
        let answer = send(&app, line, &[]).await;
        assert_eq!(
            answer.header("x-ratelimit-policy"),
            Some("ip:global:1h"),
            "{line}"
        );
    }
    let answer = send(&app, "POST http://example.com/v1//login", &[]).await;
    assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:login:1h"));
}

#[tokio::test]
async fn rejections_are_logged_with_a_cut_path_and_sampled() {
    let (log, _listening) = crate::support::log::Log::listen();
    let app = outside(policy());
    let path = format!("/a/../{}", "x".repeat(1_000));
    for _ in 0..100 {
        send(&app, &format!("GET {path}"), &[]).await;
    }
    let events = log.about("rate_limit_rejected");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(
        events[0].contains("reason=\"invalid-path\""),
        "{}",
        events[0]
    );
    assert!(!events[0].contains(&"x".repeat(257)), "{}", events[0]);
}
