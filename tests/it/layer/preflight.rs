//! CORS preflights: charged on entry, refunded if the response has CORS headers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Response};
use axum::routing::{any, get};
use tollgate::policy::{
    ExplainRequest, Policy, PolicyBuilder, Preflight, Rule, RuleKind, RuleMode, SkipReason,
};
use tower_http::cors::{Any, CorsLayer};

use super::{Answer, layer, request, send};

const PREFLIGHT: [(&str, &str); 2] = [
    ("origin", "https://app.example"),
    ("access-control-request-method", "PUT"),
];

/// Returns a fallback for all methods and paths that counts its calls. It adds
/// `Access-Control-Allow-Methods` if the request has `x-cors`.
fn counting() -> (Router, Arc<AtomicU64>) {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let handler = move |request: Request<Body>| async move {
        counted.fetch_add(1, Ordering::Relaxed);
        let response = Response::builder();
        let response = if request.headers().contains_key("x-cors") {
            response.header("access-control-allow-methods", "GET")
        } else {
            response
        };
        response.body(Body::empty()).unwrap()
    };
    let app = Router::new()
        .route("/any", any(handler.clone()))
        .fallback(handler);
    (app, calls)
}

fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::PUT])
}

fn limited(app: Router, policy: PolicyBuilder) -> Router {
    app.layer(layer(policy).0.build().unwrap())
}

async fn preflight(app: &Router, path: &str, more: &[(&str, &str)]) -> Answer {
    let headers: Vec<_> = PREFLIGHT.iter().chain(more).copied().collect();
    send(app, &format!("OPTIONS {path}"), &headers).await
}

/// Sends a request of an unauthenticated caller. Returns what remains after it.
async fn remaining(app: &Router, line: &str) -> String {
    let answer = send(app, line, &[]).await;
    answer.header("x-ratelimit-remaining").unwrap().to_owned()
}

#[tokio::test]
async fn the_preflight_quota_limits_calls_of_an_options_handler() {
    for path in ["/any", "/nowhere"] {
        let (app, calls) = counting();
        let app = limited(app, Policy::builder().everyone("10/hour"));
        for _ in 0..2_000 {
            preflight(&app, path, &[]).await;
        }
        assert_eq!(calls.load(Ordering::Relaxed), 600, "{path}");
        let denied = preflight(&app, path, &[]).await;
        assert_eq!(denied.status, 429);
        let policy = denied.header("x-ratelimit-policy");
        assert_eq!(policy, Some("ip:preflight:1m"));
        // The responses had no CORS headers, so the global rule counted them.
        assert_eq!(send(&app, "GET /any", &[]).await.status, 429);
    }
}

#[tokio::test]
async fn a_rule_of_the_endpoint_is_enforced_on_entry() {
    let policy = Policy::builder()
        .everyone("100/hour")
        .endpoint("/any", Rule::new("3/hour").name("any"))
        .rule("instance", Rule::new("50/hour").per([]));
    let (app, calls) = counting();
    let app = limited(app, policy);
    for _ in 0..2_000 {
        preflight(&app, "/any", &[]).await;
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    let denied = preflight(&app, "/any", &[]).await;
    assert_eq!(denied.header("x-ratelimit-policy"), Some("ip:any:1h"));
}

#[tokio::test]
async fn denied_callers_can_still_send_preflights() {
    let policy = Policy::builder().everyone("2/hour");
    let (app, _) = counting();
    let app = limited(app.layer(cors()), policy);
    for _ in 0..2 {
        assert_eq!(send(&app, "GET /any", &[]).await.status, 200);
    }
    assert_eq!(send(&app, "GET /any", &[]).await.status, 429);
    for _ in 0..100 {
        assert_eq!(preflight(&app, "/any", &[]).await.status, 200);
    }
}

#[tokio::test]
async fn only_a_response_with_cors_headers_is_refunded() {
    let policy = || {
        Policy::builder()
            .everyone("100/hour")
            .endpoint("/any", Rule::new("10/hour").name("any").global(false))
            .rule("instance", Rule::new("50/hour").per([]))
    };
    let (app, calls) = counting();
    let app = limited(app, policy());
    for _ in 0..30 {
        assert_eq!(
            preflight(&app, "/any", &[("x-cors", "1")]).await.status,
            200
        );
    }
    assert_eq!(calls.load(Ordering::Relaxed), 30);
    assert_eq!(remaining(&app, "GET /any").await, "9");
    preflight(&app, "/any", &[]).await;
    assert_eq!(remaining(&app, "GET /any").await, "7");
    // The always-on rule was charged for each of them, and the global rule was not charged.
    assert_eq!(remaining(&app, "GET /other").await, "46");
}

#[tokio::test]
async fn the_global_rule_is_recorded_without_cors_headers() {
    let (app, _) = counting();
    let app = limited(app, Policy::builder().everyone("10/hour"));
    preflight(&app, "/any", &[("x-cors", "1")]).await;
    assert_eq!(remaining(&app, "GET /any").await, "9");
    preflight(&app, "/any", &[]).await;
    assert_eq!(remaining(&app, "GET /any").await, "7");
}

#[tokio::test]
async fn credentials_or_a_body_make_an_ordinary_request() {
    for header in [
        ("authorization", "Bearer x"),
        ("cookie", "session=x"),
        ("content-length", "3"),
        ("transfer-encoding", "chunked"),
        ("x-user", "alice"),
        ("access-control-request-method", "not a method"),
    ] {
        let (app, calls) = counting();
        let app = limited(app, Policy::builder().everyone("1/hour"));
        for _ in 0..3 {
            let headers: Vec<_> = match header.0 {
                "access-control-request-method" => vec![PREFLIGHT[0], header],
                _ => PREFLIGHT.into_iter().chain([header]).collect(),
            };
            send(&app, "OPTIONS /any", &headers).await;
        }
        assert_eq!(calls.load(Ordering::Relaxed), 1, "{header:?}");
    }
    let (app, calls) = counting();
    let app = limited(app, Policy::builder().everyone("1/hour"));
    for _ in 0..3 {
        preflight(&app, "/any", &[("content-length", "0")]).await;
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3, "no body");
}

#[tokio::test]
async fn cors_layers_outside_and_inside_answer_preflights() {
    let routes = || Router::new().route("/item", get(|| async { "item" }));
    let policy = || {
        Policy::builder()
            .everyone("2/hour")
            .endpoint("/item", Rule::new("5/hour").name("item"))
    };
    let inside = limited(routes().layer(cors()), policy());
    let outside = limited(routes(), policy()).layer(cors());
    for app in [inside, outside] {
        for _ in 0..50 {
            let answer = preflight(&app, "/item", &[]).await;
            assert_eq!(answer.status, 200);
            assert!(answer.header("access-control-allow-methods").is_some());
        }
        // Neither the global rule nor the rule of the endpoint has counted them.
        assert_eq!(remaining(&app, "GET /item").await, "1");
        assert_eq!(remaining(&app, "GET /item").await, "0");
    }
}

#[tokio::test]
async fn the_preflight_quota_is_configurable_and_preflights_can_be_counted() {
    let (app, calls) = counting();
    let policy = Policy::builder()
        .everyone("1000/hour")
        .preflight_quota("5/minute");
    let app = limited(app, policy);
    for _ in 0..20 {
        preflight(&app, "/any", &[("x-cors", "1")]).await;
    }
    assert_eq!(calls.load(Ordering::Relaxed), 5);

    let (app, calls) = counting();
    let policy = Policy::builder()
        .everyone("3/hour")
        .preflight(Preflight::Count);
    let app = limited(app, policy);
    for _ in 0..20 {
        preflight(&app, "/any", &[("x-cors", "1")]).await;
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

/// A policy that limits nothing does not limit preflights either, and a dry run never denies.
#[tokio::test]
async fn dry_runs_and_policies_without_limits_do_not_limit_preflights() {
    for policy in [
        Policy::builder().authenticated(Rule::new("5/hour").mode(RuleMode::DryRun)),
        Policy::builder().endpoint("/item", "5/hour"),
    ] {
        let (app, calls) = counting();
        let app = limited(app, policy.preflight_quota("5/minute"));
        for _ in 0..20 {
            assert_eq!(preflight(&app, "/any", &[]).await.status, 200);
        }
        assert_eq!(calls.load(Ordering::Relaxed), 20);
    }
}

#[test]
fn an_explanation_names_the_preflight_quota() {
    let policy = Policy::builder().everyone("10/hour").build().unwrap();
    let explanation = policy.explain(&ExplainRequest::from(request("OPTIONS /any", &PREFLIGHT)));
    let counted = &explanation.counted_by;
    assert_eq!(counted.len(), 1);
    assert_eq!(counted[0].kind, RuleKind::Preflight);
    assert_eq!(counted[0].policy, "ip:preflight:1m");
    let mut skipped = explanation.not_counted_by.iter();
    assert!(skipped.any(|rule| rule.why == SkipReason::Preflight));
    assert_eq!(policy.overview().preflight.unwrap().name, "preflight");
}
