//! The status endpoint and the admin API, over real sockets.

mod authentication;
mod dashboard;
mod hostile;
mod lookup;
mod maintenance;
mod overrides;
mod page;
mod policy;
mod rendering;
mod roles;
mod same_json;
mod status;

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use tollgate::admin::{Admin, Status};
use tollgate::policy::IntoPolicy;
use tollgate::{ManualClock, RateLimitLayer};

use crate::support::http::{Answer, echo, layer};
use crate::support::sockets::{Client, Version, serve};

const TOKEN: &str = "the-token-of-these-tests";

/// A service with limits, a status endpoint and an admin router, on a manual clock. Callers are
/// identified by `x-user`, `x-tier` and `x-tenant`.
struct Served {
    client: Client,
    address: SocketAddr,
    clock: ManualClock,
    limits: RateLimitLayer,
}

impl Served {
    async fn new(policy: impl IntoPolicy) -> Self {
        let (builder, clock) = layer(policy);
        Self::of(builder.build().unwrap(), clock).await
    }

    async fn of(limits: RateLimitLayer, clock: ManualClock) -> Self {
        let admin = Admin::new(&limits).shared_token(TOKEN);
        let admin = admin.actor_with(|head| head.header("x-operator").map(str::to_owned));
        Self::with(limits.clone(), clock, Status::new(&limits), admin).await
    }

    async fn with(
        limits: RateLimitLayer,
        clock: ManualClock,
        status: Status,
        admin: Admin,
    ) -> Self {
        let app: Router = Router::new()
            .merge(status.router().unwrap())
            .nest_service("/admin", admin.router().unwrap())
            .merge(echo().layer(limits.clone()));
        let address = serve(app).await;
        Self {
            client: Client::new(Version::Http1, address),
            address,
            clock,
            limits,
        }
    }

    /// Sends a request of a user.
    async fn send(&self, line: &str, user: &str) -> Answer {
        self.client.send(line, &[("x-user", user)]).await
    }

    /// Returns the status of a user.
    async fn status(&self, user: &str) -> Value {
        let answer = self.send("GET /v1/rate-limits/status", user).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }

    /// Sends a GET request of an operator to the admin API.
    async fn get(&self, path: &str) -> Answer {
        let token = format!("Bearer {TOKEN}");
        let line = format!("GET /admin/api/{path}");
        self.client.send(&line, &[("authorization", &token)]).await
    }

    /// Sends a POST request of an operator to the admin API.
    async fn post(&self, path: &str, body: impl ToString) -> Answer {
        self.post_with(TOKEN, path, body).await
    }

    /// Sends a body to the admin API with a token.
    async fn post_with(&self, token: &str, path: &str, body: impl ToString) -> Answer {
        let request = Request::post(format!("/admin/api/{path}"))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .header("x-operator", "olivia")
            .body(Body::from(body.to_string()))
            .unwrap();
        self.client.send_request(request).await
    }

    /// Returns the look-up of a user.
    async fn look_up(&self, user: &str) -> Value {
        let answer = self.post("lookup", json!({ "subject": { "user": user } }));
        let answer = answer.await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }
}

/// Returns the limit with this policy name, which must be unique.
fn limit<'a>(of: &'a Value, policy: &str) -> &'a Value {
    let limits = of["limits"].as_array().unwrap();
    let mut found = limits.iter().filter(|limit| limit["policy"] == policy);
    let limit = found.next().unwrap_or_else(|| panic!("{policy} in {of}"));
    assert!(found.next().is_none(), "{policy} is listed twice");
    limit
}

/// Asserts that a response is an error with this status and code. Returns its message.
fn assert_rejected<'a>(answer: &'a Answer, status: u16, code: &str) -> std::borrow::Cow<'a, str> {
    assert_eq!(answer.status, status, "{}", answer.body);
    let error = &answer.json()["error"];
    assert_eq!(error["code"], code, "{}", answer.body);
    assert_eq!(error["request_id"], answer.header("x-request-id").unwrap());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let at: jiff::Timestamp = error["timestamp"].as_str().unwrap().parse().unwrap();
    assert!(at.as_second() > 0);
    error["message"].as_str().unwrap().to_owned().into()
}
