//! A Telegram bot that answers each user 20 times per hour. The 21st message gets a reply that names the
//! limit, and the webhook still answers 200.
//!
//! ```sh
//! cargo run --example telegram_webhook
//! ```
//!
//! | variable | meaning |
//! |---|---|
//! | `PORT` | Port. 0 is any free port. Default: 3000 |
//! | `RATE_LIMIT_MAX` | Messages per user and window. Default: 20 |
//! | `RATE_LIMIT_WINDOW_MS` | Window in milliseconds. Default: 3600000 |
//! | `ALLOWED_USERS` | User ids, separated by commas; others are ignored. Default: all users |
//! | `TELEGRAM_API_URL` | Bot API for replies: `POST …/sendMessage`. Default: print replies |
//! | `REDIS_URL` | Redis server that instances share. Default: count in memory |
//! | `LOG_LEVEL` | Default: info |
//!
//! While Redis is unavailable, each instance counts by itself.

mod common;

use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{Request, Uri};
use axum::routing::post;
use axum::{Json, Router};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use tollgate::{Algorithm, Quota, Window};
use tracing::Level;

use common::{LimiterWithFallback, number};

const LIMIT_REACHED: &str = "You've reached the message limit. Please try again later.";
const CANNOT_COUNT: &str = "I cannot answer right now. Please try again later.";

#[derive(Deserialize)]
struct Update {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    from: Sender,
    chat: Chat,
    text: String,
}

#[derive(Deserialize)]
struct Sender {
    id: i64,
}

#[derive(Deserialize)]
struct Chat {
    id: i64,
}

#[derive(Clone)]
struct Bot {
    messages: LimiterWithFallback,
    /// `None` allows all users.
    allowed: Option<Arc<HashSet<i64>>>,
    telegram: Telegram,
}

/// Always answers 200: Telegram repeats an update that gets any other status.
async fn webhook(State(bot): State<Bot>, body: Result<Bytes, BytesRejection>) -> Json<Value> {
    let update = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok());
    // Other updates, such as edits and photos, are ignored.
    if let Some(Update { message }) = update {
        bot.answer(message).await;
    }
    Json(json!({ "ok": true }))
}

impl Bot {
    async fn answer(&self, message: Message) {
        let user = message.from.id;
        if self
            .allowed
            .as_ref()
            .is_some_and(|allowed| !allowed.contains(&user))
        {
            return;
        }
        // One atomic step. Reading the counter first and writing it later would count two concurrent
        // messages as one.
        let reply = match self.messages.check([("user", user)]).await {
            Ok(decision) if decision.is_allowed() => message.text,
            Ok(decision) => {
                let (limit, retry_after) = (decision.limit(), decision.retry_after());
                tracing::warn!(limit, ?retry_after, "message limit reached");
                LIMIT_REACHED.to_owned()
            }
            Err(error) => {
                tracing::error!(%error, "message was not counted");
                CANNOT_COUNT.to_owned()
            }
        };
        self.telegram.send_message(message.chat.id, &reply).await;
    }
}

/// Client for `sendMessage` of the Bot API, over plain HTTP (a local server or a proxy).
#[derive(Clone)]
struct Telegram {
    client: Client<HttpConnector, Full<Bytes>>,
    send_message: Option<Uri>,
}

impl Telegram {
    async fn send_message(&self, chat: i64, text: &str) {
        let message = json!({ "chat_id": chat, "text": text }).to_string();
        let Some(uri) = &self.send_message else {
            common::print(&format!("{message}\n"));
            return;
        };
        let request = Request::post(uri)
            .header("content-type", "application/json")
            .body(Full::from(message))
            .expect("the URI and the header are valid");
        let sent = timeout(Duration::from_secs(10), self.client.request(request)).await;
        match sent {
            Ok(Ok(response)) if response.status().is_success() => {}
            Ok(Ok(response)) => tracing::error!(status = %response.status(), "no reply"),
            Ok(Err(error)) => tracing::error!(%error, "no reply"),
            Err(_) => tracing::error!("no reply: timed out"),
        }
    }
}

fn allowed_users() -> Option<Arc<HashSet<i64>>> {
    env::var_os("ALLOWED_USERS")?;
    let allowed = "ids of users, separated by commas, such as `42,4711`";
    let ids = common::setting("ALLOWED_USERS", "", allowed, |text| {
        text.split(',').map(|id| id.trim().parse().ok()).collect()
    });
    Some(Arc::new(ids))
}

fn send_message() -> Option<Uri> {
    let url = env::var_os("TELEGRAM_API_URL")?;
    let url = url.to_string_lossy();
    let uri = format!("{}/sendMessage", url.trim_end_matches('/')).parse::<Uri>();
    let uri = uri.ok().filter(|uri| uri.scheme_str() == Some("http"));
    Some(uri.unwrap_or_else(|| {
        // The text after `/bot` is the bot's secret token.
        let shown = url.split_once("/bot").map_or(&*url, |(server, _)| server);
        let allowed = "a URL such as `http://127.0.0.1:8081/bot<token>`, without TLS";
        common::refuse("TELEGRAM_API_URL", shown, allowed)
    }))
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
    let amount = number("RATE_LIMIT_MAX", 20, 1..=1_000_000_000);
    let millis = number("RATE_LIMIT_WINDOW_MS", 3_600_000, 1..=31_536_000_000);
    // A fixed window admits up to twice the limit around its end. `SlidingLog` is exact.
    let quota = Quota::builder(amount, Window::new(Duration::from_millis(millis))?)
        .algorithm(Algorithm::FixedWindow)
        .build()?;
    let bot = Bot {
        messages: LimiterWithFallback::new(
            "messages",
            quota,
            // The prefix of its keys in Redis. A bot can wait longer for Redis than a web page.
            common::store("telegram-webhook", Duration::from_secs(1)).await,
        )?,
        allowed: allowed_users(),
        telegram: Telegram {
            client: Client::builder(TokioExecutor::new()).build_http(),
            send_message: send_message(),
        },
    };
    let messages = bot.messages.shared.clone();
    let app = Router::new()
        .route("/webhook", post(webhook))
        .with_state(bot);
    let (listener, stop) = common::listen().await;
    let server = listener.local_addr()?;
    common::print(&format!(
        "
Send a message as user 42. After {amount} messages, the reply names the limit:

    curl http://{server}/webhook -d '{{\"message\":{{\"from\":{{\"id\":42}},\"chat\":{{\"id\":42}},\"text\":\"hello\"}}}}'

"
    ));
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, app).with_graceful_shutdown(stop.received());
    let shutdown = |deadline| messages.shutdown(deadline);
    Ok(stop.run(server.into_future(), shutdown).await?)
}
