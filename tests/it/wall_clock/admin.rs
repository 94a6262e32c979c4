//! Times in the admin API and in alerts after a step of the wall clock.

use std::time::Duration;

use axum::Router;
use serde_json::Value;
use tollgate::admin::{Admin, Status};
use tollgate::{Algorithm, Quota, RateLimitLayer, Timestamp, Window};

use super::{HOUR, HOUR_STEP, START, STEPS, step, wall};
use crate::support::http::{echo, layer, send};

const TOKEN: &str = "the-token-of-these-tests";

fn service(limits: &RateLimitLayer) -> Router {
    let admin = Admin::new(limits).shared_token(TOKEN).router().unwrap();
    Router::new()
        .merge(Status::new(limits).router().unwrap())
        .nest_service("/admin", admin)
        .merge(echo().layer(limits.clone()))
}

async fn api(app: &Router, line: &str) -> Value {
    let token = format!("Bearer {TOKEN}");
    let headers = [("authorization", &*token), ("x-user", "alice")];
    let answer = send(app, line, &headers).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

/// To the millisecond, as the API writes it.
fn text(instant: Timestamp) -> String {
    instant.to_string()
}

#[tokio::test]
async fn instants_of_the_admin_api_are_right_on_the_wall_clock() {
    for by in STEPS {
        let hourly = Quota::builder(1, Window::HOUR).algorithm(Algorithm::FixedWindow);
        let (builder, clock) = layer(hourly.build().unwrap());
        let limits = builder.build().unwrap();
        let app = service(&limits);
        for _ in 0..2 {
            send(&app, "GET /", &[("x-user", "alice")]).await;
        }
        clock.advance(Duration::from_mins(1));
        step(&clock, by);
        let (now, stepped) = (wall(&clock), |secs: u64| {
            text(Timestamp::from_secs(secs.strict_add_signed(by)))
        });

        let statistics = api(&app, "GET /admin/api/statistics").await;
        assert_eq!(statistics["at"], text(now));
        assert_eq!(statistics["since"], stepped(START));
        let minutes = statistics["last_hour"].as_array().unwrap();
        assert_eq!(minutes.last().unwrap()["from"], stepped(START + 60));
        assert_eq!(statistics["offenders"][0]["last_seen"], stepped(START));

        let status = api(&app, "GET /v1/rate-limits/status").await;
        assert_eq!(status["timestamp"], text(now));
        let limit = &status["limits"][0];
        assert_eq!(limit["reset_at"], stepped(START + HOUR));
        assert_eq!(limit["retry_after"], HOUR - 60);
    }
}

#[tokio::test]
async fn alerts_are_dated_by_the_wall_clock() {
    use std::sync::{Arc, Mutex};
    use tollgate::observe::Alerts;

    let (builder, clock) = layer("1/hour");
    let alerts = Alerts::default().many_denials(1);
    let limits = builder.alerts(alerts).build().unwrap();
    let app = service(&limits);
    step(&clock, -2 * HOUR_STEP);
    let received = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&received);
    let delivery = tokio::spawn(limits.on_alert(move |alert| {
        to.lock().unwrap().push(alert.since);
        async {}
    }));
    for _ in 0..5 {
        send(&app, "GET /", &[("x-user", "alice")]).await;
    }
    for _ in 0..5_000 {
        if !received.lock().unwrap().is_empty() {
            break;
        }
        clock.advance(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    delivery.abort();
    let since = received.lock().unwrap()[0];
    assert!(since <= wall(&clock), "{since}");
    assert!(since >= Timestamp::from_secs(START - 2 * HOUR), "{since}");
}
