//! A mail service that never sends more than so many a minute and so many an hour, all senders
//! together, and counts only what was really sent.
//!
//! ```sh
//! GLOBAL_SEND_RATE_LIMIT_PER_MINUTE=3 cargo run --example outbound_email
//! ```
//!
//! | variable | |
//! |---|---|
//! | `PORT` | 3000; 0 is any free one |
//! | `GLOBAL_SEND_RATE_LIMIT_PER_MINUTE` | the most in any minute; 0, the default, is no limit |
//! | `GLOBAL_SEND_RATE_LIMIT_PER_HOUR` | the most in any hour; 0, the default, is no limit |
//! | `REDIS_URL` | where to count, together with other instances; else in memory |
//! | `LOG_LEVEL` | info; with debug, what is sent is logged as well |
//!
//! `POST /v1/messages` takes `{"to", "subject", "body"}`. Mail to `blocked.test` is stopped by the
//! domain filter, mail to `bounce.test` by the provider. `GET /v1/messages` says how many went out.
//! While Redis cannot be asked nothing is sent, and callers are told to come back (503): mail cannot
//! be taken back, and instances that count by themselves would send more than the limit together.

mod common;
#[path = "common/number.rs"]
mod number;
#[path = "common/service.rs"]
mod service;

use std::error::Error;
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

use number::number;

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

/// Why a mail was not sent: the status, what the caller is told, and when to come back.
struct Refusal(StatusCode, String, Option<Duration>);

impl IntoResponse for Refusal {
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
) -> Result<Response, Refusal> {
    let Json(mail) = mail.map_err(|wrong| Refusal(wrong.status(), wrong.body_text(), None))?;
    if mail.domain().is_none() {
        let detail = format!("`to` is {:?}, which is no address", mail.to);
        return Err(Refusal(StatusCode::UNPROCESSABLE_ENTITY, detail, None));
    }
    // A matter of policy, which has nothing to do with how much is sent.
    if mail.is_to("blocked.test") {
        let detail = "mail to this domain is not allowed".to_owned();
        return Err(Refusal(StatusCode::FORBIDDEN, detail, None));
    }
    // In a task of its own: whoever hangs up ends this handler, but not what is being sent, and
    // what is sent must count.
    let delivery = tokio::spawn(async move { outbox.deliver(&mail).await });
    let failed = |_| Refusal(StatusCode::INTERNAL_SERVER_ERROR, "not sent".into(), None);
    let number = delivery.await.map_err(failed)??;
    let answer = Json(json!({ "status": "sent", "number": number }));
    Ok((StatusCode::ACCEPTED, answer).into_response())
}

async fn sent(State(outbox): State<Arc<Outbox>>) -> Json<Value> {
    Json(json!({ "sent": outbox.sent.load(Ordering::SeqCst) }))
}

impl Outbox {
    async fn deliver(&self, mail: &Mail) -> Result<u64, Refusal> {
        // Both windows, in one step. To check first and to record after the mail was sent leaves a
        // gap in between, in which others check as well; room that is reserved is nobody else's.
        let room = self.sends.reserve(Subject::all()).await.map_err(|error| {
            tracing::error!(%error, "mails cannot be counted");
            let detail = "sending is not possible right now".to_owned();
            Refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                detail,
                Some(Duration::from_secs(5)),
            )
        })?;
        if room.is_denied() {
            return Err(self.too_many(room.decision()));
        }
        // If this fails, the room is given back on the way out.
        provider(mail).await?;
        let used = room.decision().used();
        tracing::debug!(used, subject = mail.subject, "sent");
        room.commit();
        Ok(self.sent.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn too_many(&self, decision: &Decision) -> Refusal {
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
        // The longer wait, if both windows are full: true to the bucket, not a guess.
        let wait = decision.retry_after().unwrap_or_default();
        tracing::warn!(limit_name, count, limit, "send rate limit exceeded");
        let detail = format!(
            "Send rate limit exceeded ({limit_name}: {limit}). Try again in {} seconds.",
            retry_after_secs(wait)
        );
        Refusal(StatusCode::TOO_MANY_REQUESTS, detail, Some(wait))
    }
}

/// Stands for a service elsewhere: it takes its time, and does not take everything.
async fn provider(mail: &Mail) -> Result<(), Refusal> {
    sleep(Duration::from_millis(20)).await;
    if mail.is_to("bounce.test") || mail.body.len() > 1_000_000 {
        let detail = "the provider did not take the mail".to_owned();
        return Err(Refusal(StatusCode::BAD_GATEWAY, detail, None));
    }
    Ok(())
}

fn sends() -> Result<Limiter, tollgate::Error> {
    let limits = [(PER_MINUTE, Window::MINUTE), (PER_HOUR, Window::HOUR)];
    let limits = limits.map(|(name, window)| (number(name, 0, 0..=1_000_000_000), window));
    let mut sends = Limiter::builder()
        .name("sends")
        .store(service::store("outbound-email"));
    for (amount, window) in limits.into_iter().filter(|(amount, _)| *amount > 0) {
        // Seconds of a minute, minutes of an hour: never more than the limit in any window.
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
    service::log();
    let outbox = Outbox {
        sends: sends()?,
        sent: AtomicU64::new(0),
    };
    let app = Router::new()
        .route("/v1/messages", post(send).get(sent))
        .with_state(Arc::new(outbox));
    service::serve(app, |server| {
        format!(
            "
Send something, also to ada@blocked.test and to ada@bounce.test:

    curl -i http://{server}/v1/messages -H 'Content-Type: application/json' -d '{{\"to\":\"ada@example.com\",\"subject\":\"hello\",\"body\":\"\"}}'

"
        )
    })
    .await
}
