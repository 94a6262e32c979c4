//! An agent in group chats with a limit per user and group. A group can have its own limit.
//!
//! ```sh
//! cargo run --example group_agent
//! ```
//!
//! | variable | meaning |
//! |---|---|
//! | `PORT` | Port. 0 is any free port. Default: 3000 |
//! | `MERCURY_RATE_LIMIT_PER_USER` | Messages per user, group and window, 1 to 1000. Default: 10 |
//! | `MERCURY_RATE_LIMIT_WINDOW_MS` | Window in milliseconds, 1000 to 3600000. Default: 60000 |
//! | `REDIS_URL` | Redis server that instances share. Default: count in memory |
//! | `LOG_LEVEL` | Default: info |
//!
//! - `POST /message` takes `{"group", "user", "text"}`. Text that begins with `@agent` is for the
//!   assistant and counts. `stop` and `compact` are commands and do not count. Other text is ignored.
//! - `PUT /api/config` sets the limit of a group.
//! - `GET /api/rate-limit?group=…&user=…` returns limit, used and remaining.
//! - `GET /api/buckets` returns the number of counters.
//!
//! The API of the original limiter, and what replaces it:
//!
//! | original | here |
//! |---|---|
//! | `isAllowed(group, user)` | [`Limiter::check`] |
//! | `isAllowed(group, user, override)` | [`CheckBuilder::limit`](tollgate::CheckBuilder::limit), or an [`Override`] in the store |
//! | `getRemaining(group, user)` | [`Limiter::remaining`], or [`Limiter::peek`] with a cost of 0 |
//! | `startCleanup(interval)` | a task with [`Limiter::sweep_every`] |
//! | `stopCleanup()` | abort that task |
//! | `cleanup()` | [`Limiter::sweep`] |
//! | `clear()` | [`Limiter::clear`] |
//! | `bucketCount` | [`Limiter::len`] |
//!
//! While Redis is unavailable, each instance counts messages by itself; the other endpoints answer 503.

mod common;

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};
use tollgate::{Algorithm, Limiter, Override, Quota, Window};
use tracing::Level;

use common::{LimiterWithFallback, number};

/// Name of the rule. Overrides of groups refer to it.
const RULE: &str = "agent";

/// How often counters that have expired are removed, also if no message arrives. With a shorter
/// window, once per window.
const SWEEP_INTERVAL: Duration = Duration::from_mins(1);

#[derive(Deserialize)]
struct Message {
    group: String,
    user: String,
    text: String,
}

#[derive(Deserialize)]
struct Setting {
    key: String,
    value: String,
}

/// Kind of a message. Only messages for the assistant count.
enum MessageKind<'a> {
    Assistant(&'a str),
    Command(&'static str),
    Ignored,
}

impl<'a> MessageKind<'a> {
    fn of(text: &'a str) -> Self {
        let text = text.trim();
        if let Some(prompt) = text.strip_prefix("@agent") {
            return Self::Assistant(prompt.trim());
        }
        let mut commands = ["stop", "compact"].into_iter();
        let command = commands.find(|command| text.eq_ignore_ascii_case(command));
        command.map_or(Self::Ignored, Self::Command)
    }
}

struct Failure(StatusCode, String);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

/// An unavailable store is 503, not a denial.
impl From<tollgate::Error> for Failure {
    fn from(error: tollgate::Error) -> Self {
        tracing::error!(%error, "message was not counted");
        let detail = "messages cannot be counted right now".to_owned();
        Self(StatusCode::SERVICE_UNAVAILABLE, detail)
    }
}

/// The subject: two dimensions. Unlike a joined `group:user`, it is unambiguous for any names.
fn member<'a>(group: &'a str, user: &'a str) -> [(&'static str, &'a str); 2] {
    [("group", group), ("user", user)]
}

async fn message(
    State(agent): State<LimiterWithFallback>,
    Json(Message { group, user, text }): Json<Message>,
) -> Result<Json<Value>, Failure> {
    let answer = match MessageKind::of(&text) {
        MessageKind::Command(command) => json!({ "type": "command", "command": command }),
        MessageKind::Ignored => json!({ "type": "ignore" }),
        MessageKind::Assistant(prompt) => {
            let decision = agent.check(member(&group, &user)).await?;
            if decision.is_denied() {
                tracing::warn!(group, limit = decision.limit(), "rate limit exceeded");
                let reason = "Rate limit exceeded. Try again shortly.";
                json!({ "type": "denied", "reason": reason })
            } else {
                let left = decision.remaining();
                json!({ "type": "assistant", "prompt": prompt, "remaining": left })
            }
        }
    };
    Ok(Json(answer))
}

/// Sets the limit of a group. It replaces the global limit from the next message on, and in all
/// instances within a second, because overrides are in the store.
async fn configure(
    State(agent): State<LimiterWithFallback>,
    headers: HeaderMap,
    Json(Setting { key, value }): Json<Setting>,
) -> Result<Json<Value>, Failure> {
    let header = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        let value = value.filter(|value| !value.is_empty());
        value.ok_or_else(|| Failure(StatusCode::BAD_REQUEST, format!("{name} is missing")))
    };
    let (group, caller) = (header("x-mercury-group")?, header("x-mercury-caller")?);
    let wrong = |what: String| Failure(StatusCode::BAD_REQUEST, what);
    if key != "rate_limit" {
        return Err(wrong(format!("key is {key:?}. Allowed: \"rate_limit\"")));
    }
    let limit = value
        .parse()
        .ok()
        .filter(|limit| (1..=1_000).contains(limit));
    let limit: u64 = limit.ok_or_else(|| {
        let allowed = "a whole number from 1 to 1000, as text";
        wrong(format!("value is {value:?}. Allowed: {allowed}"))
    })?;
    let new = group_override(&agent.shared, group, limit)?;
    agent.shared.set_override(new).await?;
    tracing::info!(group, caller, limit, "rate limit of a group set");
    Ok(Json(json!({ "group": group, "key": key, "value": value })))
}

/// An override with another amount in the same window, for all users of the group.
fn group_override(agent: &Limiter, group: &str, limit: u64) -> Result<Override, tollgate::Error> {
    let quota = agent.counters()[0].quota().with_amount(limit)?;
    Ok(Override::new([("group", group)], RULE, quota)?)
}

/// Returns a parameter of the query, decoded.
fn parameter(uri: &Uri, name: &str) -> Result<String, Failure> {
    let mut pairs = uri.query().unwrap_or_default().split('&');
    let value = pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let value = value.map(|value| value.replace('+', " "));
    let decoded = value
        .as_deref()
        .map(|value| percent_decode_str(value).decode_utf8());
    if let Some(Ok(text)) = decoded {
        return Ok(text.into_owned());
    }
    let wrong = format!("query parameter `{name}` is missing or not UTF-8");
    Err(Failure(StatusCode::BAD_REQUEST, wrong))
}

async fn rate_limit(
    State(agent): State<LimiterWithFallback>,
    uri: Uri,
) -> Result<Json<Value>, Failure> {
    let (group, user) = (parameter(&uri, "group")?, parameter(&uri, "user")?);
    let usage = agent.shared.peek(member(&group, &user)).cost(0).await?;
    Ok(Json(json!({
        "group": group,
        "user": user,
        "limit": usage.limit(),
        "used": usage.used(),
        "remaining": usage.remaining(),
    })))
}

/// Returns the number of counters. Those that have expired are included until the next sweep.
async fn buckets(State(agent): State<LimiterWithFallback>) -> Result<Json<Value>, Failure> {
    Ok(Json(json!({ "buckets": agent.shared.len().await? })))
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
    let amount = number("MERCURY_RATE_LIMIT_PER_USER", 10, 1..=1_000);
    let millis = number("MERCURY_RATE_LIMIT_WINDOW_MS", 60_000, 1_000..=3_600_000);
    let window = Duration::from_millis(millis);
    let quota = Quota::builder(amount, Window::new(window)?)
        .algorithm(Algorithm::SlidingLog)
        .build()?;
    let store = common::store("group-agent", Duration::from_secs(1)).await;
    let agent = LimiterWithFallback::new(RULE, quota, store)?;
    let messages = agent.shared.clone();
    let sweeper = tokio::spawn(agent.shared.sweep_every(SWEEP_INTERVAL.min(window)));
    let app = Router::new()
        .route("/message", post(message))
        .route("/api/config", put(configure))
        .route("/api/rate-limit", get(rate_limit))
        .route("/api/buckets", get(buckets))
        .with_state(agent);
    let (listener, stop) = common::listen().await;
    let server = listener.local_addr()?;
    common::print(&format!(
            "
Send a message to the assistant:

    curl http://{server}/message -H 'Content-Type: application/json' -d '{{\"group\":\"g\",\"user\":\"u\",\"text\":\"@agent hello\"}}'

Set the limit of group g to 5:

    curl -X PUT http://{server}/api/config -H 'X-Mercury-Group: g' -H 'X-Mercury-Caller: u' -H 'Content-Type: application/json' -d '{{\"key\":\"rate_limit\",\"value\":\"5\"}}'

"
    ));
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, app).with_graceful_shutdown(stop.received());
    let shutdown = |deadline| messages.shutdown(deadline);
    stop.run(server.into_future(), shutdown).await?;
    sweeper.abort();
    Ok(())
}
