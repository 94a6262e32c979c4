//! A mail service with a limit per minute and per hour for the whole instance. Only mail that was sent
//! counts.
//!
//! ```sh
//! GLOBAL_SEND_RATE_LIMIT_PER_MINUTE=3 cargo run --example outbound_email
//! ```
//!
//! | variable | meaning |
//! |---|---|
//! | `PORT` | Port. 0 is any free port. Default: 3000 |
//! | `GLOBAL_SEND_RATE_LIMIT_PER_MINUTE` | Maximum in any minute. 0 is unlimited. Default: 0 |
//! | `GLOBAL_SEND_RATE_LIMIT_PER_HOUR` | Maximum in any hour. 0 is unlimited. Default: 0 |
//! | `REDIS_URL` | Redis server that instances share. Default: count in memory |
//! | `LOG_LEVEL` | Default: info. `debug` also logs sent mail |
//!
//! `POST /v1/messages` takes `{"to", "subject", "body"}`. The domain filter rejects mail to
//! `blocked.test`, the provider mail to `bounce.test`. `GET /v1/messages` returns the number of sent
//! messages. While Redis is unavailable, nothing is sent and callers get 503: instances that count by
//! themselves would exceed the limit together, and sent mail cannot be undone.

mod common;

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;
use tollgate::headers::retry_after_secs;
use tollgate::{Algorithm, Decision, Limiter, Quota, Subject, Window};
use tracing::Level;

use common::number;

const PER_MINUTE: &str = "GLOBAL_SEND_RATE_LIMIT_PER_MINUTE";
const PER_HOUR: &str = "GLOBAL_SEND_RATE_LIMIT_PER_HOUR";

#[derive(Deserialize)]
struct Mail {
    to: String,
    subject: String,
    body: String,
}

impl Mail {
    fn domain(&self) -> Option<&str> {
        let (_, domain) = self.to.rsplit_once('@')?;
        (!domain.is_empty()).then_some(domain)
    }

    fn is_to(&self, domain: &str) -> bool {
        self.domain()
            .is_some_and(|own| own.eq_ignore_ascii_case(domain))
    }
}

/// Response for mail that was not sent: status, detail, `Retry-After`.
struct SendError(StatusCode, String, Option<Duration>);

impl IntoResponse for SendError {
    fn into_response(self) -> Response {
        let Self(status, detail, wait) = self;
        let mut response = (status, Json(json!({ "detail": detail }))).into_response();
        if let Some(wait) = wait {
            let secs = retry_after_secs(wait).into();
            response.headers_mut().insert("retry-after", secs);
        }
        response
    }
}

struct Outbox {
    sends: Limiter,
    sent: AtomicU64,
}

async fn send(
    State(outbox): State<Arc<Outbox>>,
    mail: Result<Json<Mail>, JsonRejection>,
) -> Result<Response, SendError> {
    let Json(mail) = mail.map_err(|wrong| SendError(wrong.status(), wrong.body_text(), None))?;
    if mail.domain().is_none() {
        let detail = format!("`to` is {:?}, which is not an address", mail.to);
        return Err(SendError(StatusCode::UNPROCESSABLE_ENTITY, detail, None));
    }
    // Before the limit: rejected mail does not count.
    if mail.is_to("blocked.test") {
        let detail = "mail to this domain is not allowed".to_owned();
        return Err(SendError(StatusCode::FORBIDDEN, detail, None));
    }
    // In a separate task: a client that disconnects drops this handler, but must not stop the
    // delivery between sending and counting.
    let delivery = tokio::spawn(async move { outbox.deliver(&mail).await });
    let failed = |_| SendError(StatusCode::INTERNAL_SERVER_ERROR, "not sent".into(), None);
    let number = delivery.await.map_err(failed)??;
    let answer = Json(json!({ "status": "sent", "number": number }));
    Ok((StatusCode::ACCEPTED, answer).into_response())
}

async fn sent(State(outbox): State<Arc<Outbox>>) -> Json<Value> {
    Json(json!({ "sent": outbox.sent.load(Ordering::SeqCst) }))
}

impl Outbox {
    async fn deliver(&self, mail: &Mail) -> Result<u64, SendError> {
        // Charges both windows in one step. Checking first and recording after the delivery would let
        // concurrent requests pass the check in between.
        let reservation = self.sends.reserve(Subject::all()).await.map_err(|error| {
            tracing::error!(%error, "mail was not counted");
            let detail = "sending is not possible right now".to_owned();
            SendError(
                StatusCode::SERVICE_UNAVAILABLE,
                detail,
                Some(Duration::from_secs(5)),
            )
        })?;
        if reservation.is_denied() {
            return Err(self.limit_exceeded(reservation.decision()));
        }
        // If this fails, dropping the reservation refunds it.
        provider(mail).await?;
        let used = reservation.decision().used();
        tracing::debug!(used, subject = mail.subject, "sent");
        reservation.commit();
        Ok(self.sent.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn limit_exceeded(&self, decision: &Decision) -> SendError {
        let violated = decision
            .binding()
            .and_then(|index| self.sends.counters().get(index));
        let window = violated.map(|counter| counter.quota().window());
        let limit_name = if window == Some(Window::MINUTE) {
            "per-minute"
        } else {
            "per-hour"
        };
        let (count, limit) = (decision.used(), decision.limit());
        // The longer wait if both windows are full.
        let wait = decision.retry_after().unwrap_or_default();
        tracing::warn!(limit_name, count, limit, "send rate limit exceeded");
        let detail = format!(
            "Send rate limit exceeded ({limit_name}: {limit}). Try again in {} seconds.",
            retry_after_secs(wait)
        );
        SendError(StatusCode::TOO_MANY_REQUESTS, detail, Some(wait))
    }
}

/// Simulates a mail provider: takes 20 ms and rejects some mail.
async fn provider(mail: &Mail) -> Result<(), SendError> {
    sleep(Duration::from_millis(20)).await;
    if mail.is_to("bounce.test") || mail.body.len() > 1_000_000 {
        let detail = "the provider rejected the mail".to_owned();
        return Err(SendError(StatusCode::BAD_GATEWAY, detail, None));
    }
    Ok(())
}

async fn sends() -> Result<Limiter, tollgate::Error> {
    let limits = [(PER_MINUTE, Window::MINUTE), (PER_HOUR, Window::HOUR)];
    let limits = limits.map(|(name, window)| (number(name, 0, 0..=1_000_000_000), window));
    let mut sends = Limiter::builder()
        .name("sends")
        .store(common::store("outbound-email", Duration::from_secs(1)).await);
    for (amount, window) in limits.into_iter().filter(|(amount, _)| *amount > 0) {
        // 60 buckets: never more than the limit in any window.
        let quota = Quota::builder(amount, window).algorithm(Algorithm::SlidingBuckets);
        sends = sends.quota(quota.buckets(60).build()?);
    }
    if limits.iter().all(|(amount, _)| *amount == 0) {
        sends = sends.quota(Quota::unlimited());
    }
    Ok(sends.build()?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_max_level(common::setting(
            "LOG_LEVEL",
            "info",
            "error, warn, info, debug or trace",
            |text| text.parse::<Level>().ok(),
        ))
        .with_writer(io::stderr)
        .init();
    let sends = sends().await?;
    let outbox = Outbox {
        sends: sends.clone(),
        sent: AtomicU64::new(0),
    };
    let app = Router::new()
        .route("/v1/messages", post(send).get(sent))
        .with_state(Arc::new(outbox));
    let (listener, stop) = common::listen().await;
    let server = listener.local_addr()?;
    common::print(&format!(
            "
Send mail. Also try ada@blocked.test and ada@bounce.test:

    curl -i http://{server}/v1/messages -H 'Content-Type: application/json' -d '{{\"to\":\"ada@example.com\",\"subject\":\"hello\",\"body\":\"\"}}'

"
    ));
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, app).with_graceful_shutdown(stop.received());
    let shutdown = |deadline| sends.shutdown(deadline);
    Ok(stop.run(server.into_future(), shutdown).await?)
}
