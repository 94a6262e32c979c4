//! A Telegram bot that answers each of its users 20 times an hour, and says so politely the 21st
//! time.
//!
//! ```sh
//! cargo run --example telegram_webhook
//! ```
//!
//! | variable | |
//! |---|---|
//! | `PORT` | 3000; 0 is any free one |
//! | `RATE_LIMIT_MAX` | messages per window, 20 |
//! | `RATE_LIMIT_WINDOW_MS` | the window in milliseconds, 3600000 |
//! | `ALLOWED_USERS` | ids, separated by commas; others are ignored. Everybody, if it is not set |
//! | `TELEGRAM_API_URL` | where replies are sent: `POST` to `…/sendMessage`. Printed, if it is not set |
//! | `REDIS_URL` | where to count, together with others; else in memory |
//! | `LOG_LEVEL` | info |
//!
//! While Redis cannot be asked, each instance counts by itself.

mod common;
#[path = "common/counted.rs"]
mod counted;
#[path = "common/number.rs"]
mod number;
#[path = "common/service.rs"]
mod service;

use std::collections::HashSet;
use std::env;
use std::error::Error;
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

use counted::Counted;
use number::number;

const TOO_MANY: &str = "You've reached the message limit. Please try again later.";
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
    messages: Counted,
    /// Everybody, if there is no list.
    allowed: Option<Arc<HashSet<i64>>>,
    telegram: Telegram,
}

/// Whatever comes, the answer is 200: anything else makes Telegram send the update again.
async fn webhook(State(bot): State<Bot>, body: Result<Bytes, BytesRejection>) -> Json<Value> {
    let update = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok());
    // Edits, photos and the like are no messages that anything is done about.
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
        // Counted before anything is done, in one step: where a counter is read and then written,
        // or is a minute late elsewhere, two messages at once are one.
        let reply = match self.messages.check([("user", user)]).await {
            Ok(decision) if decision.is_allowed() => message.text,
            Ok(decision) => {
                let (limit, retry_after) = (decision.limit(), decision.retry_after());
                tracing::warn!(limit, ?retry_after, "message limit reached");
                TOO_MANY.to_owned()
            }
            Err(error) => {
                tracing::error!(%error, "messages cannot be counted");
                CANNOT_COUNT.to_owned()
            }
        };
        self.telegram.send_message(message.chat.id, &reply).await;
    }
}

/// The part of the Bot API that is needed, over plain HTTP: a server of one's own, or a proxy.
#[derive(Clone)]
struct Telegram {
    client: Client<HttpConnector, Full<Bytes>>,
    send_message: Option<Uri>,
}

impl Telegram {
    async fn send_message(&self, chat: i64, text: &str) {
        let message = json!({ "chat_id": chat, "text": text }).to_string();
        let Some(uri) = &self.send_message else {
            common::say(&format!("{message}\n"));
            return;
        };
        let request = Request::post(uri)
            .header("content-type", "application/json")
            .body(Full::from(message))
            .expect("a request that is always the same");
        let sent = timeout(Duration::from_secs(10), self.client.request(request)).await;
        match sent {
            Ok(Ok(response)) if response.status().is_success() => {}
            Ok(Ok(response)) => tracing::error!(status = %response.status(), "no reply"),
            Ok(Err(error)) => tracing::error!(%error, "no reply"),
            Err(_) => tracing::error!("no reply: Telegram does not answer"),
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
        // What comes after `/bot` is its password.
        let shown = url.split_once("/bot").map_or(&*url, |(server, _)| server);
        let allowed = "a URL such as `http://127.0.0.1:8081/bot<token>`, without TLS";
        common::refuse("TELEGRAM_API_URL", shown, allowed)
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    service::log();
    let amount = number("RATE_LIMIT_MAX", 20, 1..=1_000_000_000);
    let millis = number("RATE_LIMIT_WINDOW_MS", 3_600_000, 1..=31_536_000_000);
    // Up to twice as many around the end of a window: `SlidingLog` is the word for those who mind.
    let quota = Quota::builder(amount, Window::new(Duration::from_millis(millis))?)
        .algorithm(Algorithm::FixedWindow)
        .build()?;
    let bot = Bot {
        // A namespace of its own, which can be purged without harm to anything else.
        messages: Counted::new("messages", quota, "telegram-webhook")?,
        allowed: allowed_users(),
        telegram: Telegram {
            client: Client::builder(TokioExecutor::new()).build_http(),
            send_message: send_message(),
        },
    };
    let app = Router::new()
        .route("/webhook", post(webhook))
        .with_state(bot);
    service::serve(app, |server| {
        format!(
            "
Say hello as user 42, who may do so {amount} times:

    curl http://{server}/webhook -d '{{\"message\":{{\"from\":{{\"id\":42}},\"chat\":{{\"id\":42}},\"text\":\"hello\"}}}}'

"
        )
    })
    .await
}
