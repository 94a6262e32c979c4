//! An agent in group chats that does so much for each user of each group, and for some groups more
//! or less than that.
//!
//! ```sh
//! cargo run --example group_agent
//! ```
//!
//! | variable | |
//! |---|---|
//! | `PORT` | 3000; 0 is any free one |
//! | `MERCURY_RATE_LIMIT_PER_USER` | messages per user, group and window: 10; 1 to 1000 |
//! | `MERCURY_RATE_LIMIT_WINDOW_MS` | the window in milliseconds: 60000; 1000 to 3600000 |
//! | `REDIS_URL` | where to count, together with others; else in memory |
//! | `LOG_LEVEL` | info |
//!
//! `POST /message` takes `{"group", "user", "text"}`. What begins with `@agent` is for the assistant
//! and counts; `stop` and `compact` are commands, which always work; the rest is ignored.
//! `PUT /api/config` sets a group's own limit, `GET /api/rate-limit?group=…&user=…` tells what is
//! left, `GET /api/buckets` how many users of groups are being counted. While Redis cannot be asked,
//! messages are counted by each instance for itself; the other three say 503.

mod common;
#[path = "common/counted.rs"]
mod counted;
#[path = "common/number.rs"]
mod number;
#[path = "common/service.rs"]
mod service;

use std::error::Error;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tollgate::{Algorithm, Limiter, Override, Quota, Window};

use counted::Counted;
use number::number;

/// The name of the rule, under which limits of groups are set as well.
const RULE: &str = "agent";

#[derive(Deserialize)]
struct Message {
    group: String,
    user: String,
    text: String,
}

#[derive(Deserialize)]
struct Member {
    group: String,
    user: String,
}

#[derive(Deserialize)]
struct Setting {
    key: String,
    value: String,
}

/// What a message is, before anything is counted.
enum Kind<'a> {
    Assistant(&'a str),
    Command(&'static str),
    Ignored,
}

impl<'a> Kind<'a> {
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

/// A store that cannot be asked is not the user's fault.
impl From<tollgate::Error> for Failure {
    fn from(error: tollgate::Error) -> Self {
        tracing::error!(%error, "messages cannot be counted");
        let told = "messages cannot be counted right now".to_owned();
        Self(StatusCode::SERVICE_UNAVAILABLE, told)
    }
}

/// Two named dimensions: no `:` in a name can make two of them one, as in `group:user`.
fn member<'a>(group: &'a str, user: &'a str) -> [(&'static str, &'a str); 2] {
    [("group", group), ("user", user)]
}

async fn message(
    State(agent): State<Counted>,
    Json(Message { group, user, text }): Json<Message>,
) -> Result<Json<Value>, Failure> {
    let answer = match Kind::of(&text) {
        Kind::Command(command) => json!({ "type": "command", "command": command }),
        Kind::Ignored => json!({ "type": "ignore" }),
        Kind::Assistant(prompt) => {
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

/// The limit of a group wins over the global one, for its next message already, and in the whole
/// fleet within a second: it is kept where the counters are.
async fn configure(
    State(agent): State<Counted>,
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
    let own = of_group(&agent.together, group, limit)?;
    agent.together.set_override(own).await?;
    tracing::info!(group, caller, limit, "rate limit of a group set");
    Ok(Json(json!({ "group": group, "key": key, "value": value })))
}

/// Another amount in the same window, for whoever is in the group.
fn of_group(agent: &Limiter, group: &str, limit: u64) -> Result<Override, tollgate::Error> {
    let quota = agent.counters()[0].quota().with_amount(limit)?;
    Ok(Override::new([("group", group)], RULE, quota)?)
}

async fn rate_limit(
    State(agent): State<Counted>,
    Query(Member { group, user }): Query<Member>,
) -> Result<Json<Value>, Failure> {
    let stand = agent.together.peek(member(&group, &user)).cost(0).await?;
    Ok(Json(json!({
        "group": group,
        "user": user,
        "limit": stand.limit(),
        "used": stand.used(),
        "remaining": stand.remaining(),
    })))
}

/// Counters that have expired are dropped as others are used, so nothing has to be cleaned up
/// every minute; here it is done first, because they are counted.
async fn buckets(State(agent): State<Counted>) -> Result<Json<Value>, Failure> {
    agent.together.sweep().await?;
    Ok(Json(json!({ "buckets": agent.together.len().await? })))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    service::log();
    let amount = number("MERCURY_RATE_LIMIT_PER_USER", 10, 1..=1_000);
    let millis = number("MERCURY_RATE_LIMIT_WINDOW_MS", 60_000, 1_000..=3_600_000);
    let quota = Quota::builder(amount, Window::new(Duration::from_millis(millis))?)
        .algorithm(Algorithm::SlidingLog)
        .build()?;
    let agent = Counted::new(RULE, quota, "group-agent")?;
    let app = Router::new()
        .route("/message", post(message))
        .route("/api/config", put(configure))
        .route("/api/rate-limit", get(rate_limit))
        .route("/api/buckets", get(buckets))
        .with_state(agent);
    service::serve(app, |server| {
        format!(
            "
Ask something, and set another limit for the group:

    curl http://{server}/message -H 'Content-Type: application/json' -d '{{\"group\":\"g\",\"user\":\"u\",\"text\":\"@agent hello\"}}'

    curl -X PUT http://{server}/api/config -H 'X-Mercury-Group: g' -H 'X-Mercury-Caller: u' -H 'Content-Type: application/json' -d '{{\"key\":\"rate_limit\",\"value\":\"5\"}}'

"
        )
    })
    .await
}
