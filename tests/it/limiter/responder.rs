//! Denials of a limiter that a handler returns as the layer's own responses.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::request::Parts;
use axum::routing::any;
use tollgate::headers::HeaderSet;
use tollgate::policy::{OnStoreFailure, Policy, Rule};
use tollgate::response::{ProblemJson, Render, render_with};
use tollgate::{
    Decision, DenialResponder, Limiter, ManualClock, RateLimitLayerBuilder, RateLimited,
};

use crate::support::http::{Answer, echo, layer, send};
use crate::support::scripted_store::{Script, ScriptedStore};

const ALICE: [(&str, &str); 2] = [("x-user", "alice"), ("x-request-id", "order-4711")];

async fn export(
    denials: DenialResponder,
    State(exports): State<Limiter>,
) -> Result<&'static str, RateLimited> {
    let user = ("user", "alice");
    let decision = denials.admit(&exports, user, exports.check(user).await)?;
    assert!(decision.is_allowed());
    Ok("exported")
}

fn exports(clock: &ManualClock) -> Limiter {
    let limiter = Limiter::builder().name("exports").quota("1/hour");
    limiter.clock(clock.clone()).build().unwrap()
}

/// A route that the layer limits, and one whose handler checks a limiter with the same limit.
fn both_ways(settings: impl FnOnce(RateLimitLayerBuilder) -> RateLimitLayerBuilder) -> Router {
    let rule = Rule::new("1/hour").name("exports").global(false);
    let policy = Policy::builder()
        .everyone("1000/hour")
        .endpoint("/by-layer", rule);
    let (builder, clock) = layer(policy);
    let limits = settings(builder.insert_extensions()).build().unwrap();
    let by_limiter = Router::new()
        .route("/by-limiter", any(export))
        .with_state(exports(&clock));
    echo().merge(by_limiter).layer(limits)
}

/// Returns both routes with a renderer and all headers.
fn rendered_by(render: impl Render) -> Router {
    both_ways(|builder| builder.render(render).headers(HeaderSet::Both))
}

/// Returns the denials of both routes, of which the limiter's has the path of the other.
async fn denials(app: &Router, method: &str, headers: &[(&str, &str)]) -> [Answer; 2] {
    let headers = [&ALICE, headers].concat();
    let mut answers = Vec::new();
    for path in ["/by-layer", "/by-limiter"] {
        let line = format!("{method} {path}");
        assert_eq!(send(app, &line, &headers).await.status, 200);
        let mut answer = send(app, &line, &headers).await;
        answer.body = answer.body.replace("/by-limiter", "/by-layer");
        answers.push(answer);
    }
    answers.try_into().unwrap()
}

fn assert_equal([by_layer, by_limiter]: &[Answer; 2], status: u16) {
    assert_eq!(by_layer.status, status);
    assert_eq!(by_limiter.status, by_layer.status);
    assert_eq!(by_limiter.headers, by_layer.headers);
    assert_eq!(by_limiter.body, by_layer.body);
}

#[tokio::test]
async fn a_denial_of_a_limiter_is_the_response_of_the_layer() {
    let teapot = render_with(|denial| {
        let mut response = http::Response::new(denial.message());
        *response.status_mut() = http::StatusCode::IM_A_TEAPOT;
        response
    });
    let answers = denials(&both_ways(|builder| builder), "POST", &[]).await;
    assert_equal(&answers, 429);
    let answer = &answers[1];
    assert_eq!(answer.number("retry-after"), 3_600);
    assert_eq!(answer.header("x-ratelimit-policy"), Some("user:exports:1h"));
    assert_eq!(answer.number("x-ratelimit-remaining"), 0);
    assert_eq!(answer.json()["error"]["request_id"], "order-4711");
    assert!(answer.extensions.get::<Decision>().unwrap().is_denied());

    let answers = denials(&both_ways(|builder| builder), "HEAD", &[]).await;
    assert_equal(&answers, 429);
    assert_eq!(answers[1].body, "");
    let grpc = [("content-type", "application/grpc")];
    let answers = denials(&both_ways(|builder| builder), "POST", &grpc).await;
    assert_equal(&answers, 200);
    assert_eq!(answers[1].header("grpc-status"), Some("8"));
    assert_equal(&denials(&rendered_by(ProblemJson), "POST", &[]).await, 429);
    assert_equal(&denials(&rendered_by(teapot), "POST", &[]).await, 418);
}

#[tokio::test]
async fn a_denial_of_a_limiter_has_the_jitter_of_the_layer() {
    let jitter = Duration::from_hours(1_000);
    let app = both_ways(|builder| builder.retry_after_jitter(jitter));
    let [_, denied] = denials(&app, "POST", &[]).await;
    let again = send(&app, "POST /by-limiter", &ALICE).await;
    let reset = denied.number("x-ratelimit-reset");
    assert_eq!(again.number("x-ratelimit-reset"), reset);
    // Equal for one of 3,600,000 pairs.
    assert_ne!(denied.number("retry-after"), again.number("retry-after"));
}

#[tokio::test]
async fn a_failed_limiter_is_the_503_of_the_layer() {
    let rule = Rule::new("1/hour").on_store_failure(OnStoreFailure::Deny);
    let policy = Policy::builder()
        .everyone("1000/hour")
        .on_store_failure(OnStoreFailure::Allow)
        .endpoint("/by-layer", rule);
    let store = ScriptedStore::new(Script::Unavailable);
    let (builder, clock) = layer(policy);
    let builder = builder.insert_extensions().store(store.clone());
    let limiter = Limiter::builder().quota("1/hour").store(store);
    let app = Router::new()
        .route("/by-limiter", any(export))
        .with_state(limiter.clock(clock).build().unwrap());
    let app = echo().merge(app).layer(builder.build().unwrap());
    let by_layer = send(&app, "POST /by-layer", &ALICE).await;
    let by_limiter = send(&app, "POST /by-limiter", &ALICE).await;
    assert_equal(&[by_layer, by_limiter], 503);
}

#[tokio::test]
async fn without_a_layer_a_denial_has_the_default_response() {
    async fn plain(
        State(exports): State<Limiter>,
        parts: Parts,
    ) -> Result<&'static str, RateLimited> {
        let (denials, user) = (DenialResponder::without_layer(&parts), ("user", "alice"));
        let decision = denials.admit(&exports, user, exports.check(user).await)?;
        assert_eq!(decision.remaining(), 0);
        Ok("exported")
    }

    let clock = ManualClock::new();
    let app = Router::new()
        .route("/by-limiter", any(plain))
        .with_state(exports(&clock));
    let [by_layer, _] = denials(&both_ways(|builder| builder), "POST", &[]).await;
    assert_eq!(send(&app, "POST /by-limiter", &ALICE).await.status, 200);
    let denied = send(&app, "POST /by-limiter", &ALICE).await;
    assert_eq!(denied.status, 429);
    assert_eq!(denied.headers.len(), by_layer.headers.len());
    for name in by_layer.headers.keys() {
        assert!(denied.headers.contains_key(name), "{name}");
    }
    let error = &denied.json()["error"];
    assert_eq!(error["details"]["policy"], "user:exports:1h");
    assert_eq!(error["request_id"], "order-4711");
}

#[tokio::test]
async fn without_extensions_the_extractor_names_the_missing_setting() {
    let (builder, clock) = layer("10/hour");
    let app = Router::new()
        .route("/", any(export))
        .with_state(exports(&clock))
        .layer(builder.build().unwrap());
    let answer = send(&app, "GET /", &[]).await;
    assert_eq!(answer.status, 500);
    assert!(
        answer.body.contains("insert_extensions()"),
        "{}",
        answer.body
    );
}

#[test]
fn the_error_has_message_decision_and_source() {
    let (parts, ()) = http::Request::new(()).into_parts();
    let denials = DenialResponder::without_layer(&parts);
    let limiter = exports(&ManualClock::new());
    for (key, policy) in [
        (tollgate::Subject::from("alice"), "key:exports:1h"),
        (tollgate::Subject::all(), "all:exports:1h"),
        (
            [("group", "g"), ("user", "u")].into(),
            "group+user:exports:1h",
        ),
    ] {
        assert!(
            denials
                .admit(&limiter, key, limiter.check(key).wait())
                .is_ok()
        );
        let error = denials.admit(&limiter, key, limiter.check(key).wait());
        let error = error.unwrap_err();
        assert_eq!(
            error.to_string(),
            "Rate limit exceeded. Please try again in 1 hour."
        );
        assert_eq!(error.decision().unwrap().limit(), 1);
        assert!(std::error::Error::source(&error).is_none());
        assert_eq!(error.response().headers()["x-ratelimit-policy"], policy);
    }
    let store = ScriptedStore::new(Script::Unavailable);
    let failing = Limiter::builder().quota("1/hour").store(store).build();
    let failing = failing.unwrap();
    let error = denials.admit(&failing, "alice", failing.check("alice").wait());
    let error = error.unwrap_err();
    assert!(std::error::Error::source(&error).is_some());
    assert_eq!(
        (error.response().status().as_u16(), error.decision()),
        (503, None)
    );
}
