//! The Telegram bot, against a server that records the messages it receives.

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::http::Uri;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::process::{Example, refuses};
use super::send_json;
use crate::support::sockets::Client;

const LIMITED: &str = "You've reached the message limit. Please try again later.";
/// One year, so that no window ends while a test runs.
const YEAR: (&str, &str) = ("RATE_LIMIT_WINDOW_MS", "31536000000");

type Notes = Arc<Mutex<Vec<(String, Value)>>>;

/// A Bot API server that records calls of `sendMessage`.
struct Telegram {
    url: String,
    notes: Notes,
}

impl Telegram {
    async fn start() -> Self {
        async fn note(
            State(notes): State<Notes>,
            uri: Uri,
            Json(body): Json<Value>,
        ) -> Json<Value> {
            notes.lock().unwrap().push((uri.path().to_owned(), body));
            Json(json!({ "ok": true }))
        }

        let notes = Notes::default();
        let app = Router::new()
            .route("/{token}/sendMessage", post(note))
            .with_state(Arc::clone(&notes));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/bot123:abc", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, notes }
    }

    /// Returns the messages received since the last call.
    fn take_messages(&self) -> Vec<(i64, String)> {
        let notes = std::mem::take(&mut *self.notes.lock().unwrap());
        let read = |(path, body): (String, Value)| {
            assert_eq!(path, "/bot123:abc/sendMessage");
            let text = body["text"].as_str().unwrap().to_owned();
            (body["chat_id"].as_i64().unwrap(), text)
        };
        notes.into_iter().map(read).collect()
    }
}

struct Bot {
    _example: Example,
    client: Client,
    telegram: Telegram,
}

impl Bot {
    async fn start(variables: &[(&str, &str)]) -> Self {
        let telegram = Telegram::start().await;
        let api = [("TELEGRAM_API_URL", telegram.url.as_str())];
        let variables = [variables, &api].concat();
        let example = Example::start("telegram_webhook", &variables).await;
        Self {
            client: example.version_1(),
            _example: example,
            telegram,
        }
    }

    /// Delivers an update, expects 200, and returns the bot's replies.
    async fn update(&self, update: &Value) -> Vec<(i64, String)> {
        let answer = send_json(&self.client, "POST /webhook", &[], update).await;
        assert_eq!((answer.status, answer.json()), (200, json!({ "ok": true })));
        self.telegram.take_messages()
    }

    /// Sends a message as this user, in a chat with another id, and returns the only reply.
    async fn post(&self, user: i64, text: &str) -> String {
        let chat = -1_000 - user;
        let mut replies = self.update(&message(user, chat, text)).await;
        let (to, reply) = replies.pop().expect("a reply");
        assert_eq!((to, replies.len()), (chat, 0));
        reply
    }
}

fn message(user: i64, chat: i64, text: &str) -> Value {
    json!({
        "update_id": 7,
        "message": { "from": { "id": user }, "chat": { "id": chat }, "text": text },
    })
}

#[tokio::test]
async fn each_user_has_a_limit_and_gets_the_limit_message() {
    let bot = Bot::start(&[("RATE_LIMIT_MAX", "3"), YEAR]).await;
    for text in ["one", "two", "three"] {
        assert_eq!(bot.post(42, text).await, text);
    }
    // The message is not processed: there is no echo.
    for text in ["four", "five"] {
        assert_eq!(bot.post(42, text).await, LIMITED);
    }
    assert_eq!(bot.post(43, "another user").await, "another user");
    assert_eq!(bot.post(42, "six").await, LIMITED);
}

/// The current hour, which is also the server's window.
fn hour() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs() / 3_600
}

#[tokio::test]
async fn twenty_an_hour_is_the_default() {
    // If the hour ends during the test, it is repeated in the next one.
    loop {
        let begun = hour();
        let bot = Bot::start(&[]).await;
        let mut replies = Vec::new();
        for number in 0..21 {
            replies.push(bot.post(42, &number.to_string()).await);
        }
        if begun == hour() {
            assert_eq!(replies[19], "19");
            assert_eq!(replies[20], LIMITED);
            return;
        }
    }
}

#[tokio::test]
async fn the_next_window_has_room_again() {
    let window = ("RATE_LIMIT_WINDOW_MS", "1000");
    let bot = Bot::start(&[("RATE_LIMIT_MAX", "1"), window]).await;
    while bot.post(42, "hello").await != LIMITED {}
    while bot.post(42, "hello").await == LIMITED {}
}

#[tokio::test]
async fn unknown_users_and_unsupported_updates_are_ignored() {
    let users = ("ALLOWED_USERS", "42, 43");
    let bot = Bot::start(&[("RATE_LIMIT_MAX", "2"), YEAR, users]).await;
    for _ in 0..5 {
        assert_eq!(bot.update(&message(99, 99, "let me in")).await, []);
    }
    let odd = [
        json!({}),
        json!([]),
        json!({ "message": null }),
        json!({ "edited_message": message(42, 42, "edited")["message"] }),
        json!({ "message": { "from": { "id": 42 }, "chat": { "id": 42 }, "photo": [] } }),
        json!({ "message": { "chat": { "id": 42 }, "text": "without sender" } }),
        json!({ "message": { "from": { "id": "42" }, "chat": { "id": 42 }, "text": "text" } }),
    ];
    for update in &odd {
        assert_eq!(bot.update(update).await, [], "{update}");
    }
    let empty = bot.client.send("POST /webhook", &[]).await;
    assert_eq!((empty.status, empty.json()), (200, json!({ "ok": true })));
    // None of them was counted.
    assert_eq!(bot.post(42, "one").await, "one");
    assert_eq!(bot.post(42, "two").await, "two");
    assert_eq!(bot.post(42, "three").await, LIMITED);
    assert_eq!(bot.post(43, "one").await, "one");
}

/// Concurrent messages get as many replies as sequential ones.
#[tokio::test]
async fn concurrent_messages_are_counted_one_by_one() {
    let bot = Bot::start(&[("RATE_LIMIT_MAX", "5"), YEAR]).await;
    let hello = message(42, 42, "hello");
    let all = (0..20).map(|_| send_json(&bot.client, "POST /webhook", &[], &hello));
    let answers = futures_util::future::join_all(all).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    let replies = bot.telegram.take_messages();
    let echoes = replies.iter().filter(|(_, text)| text == "hello").count();
    assert_eq!((replies.len(), echoes), (20, 5));
}

/// Telegram repeats an update that is not answered with 200.
#[tokio::test]
async fn the_webhook_answers_200_if_no_reply_can_be_sent() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = format!("http://{}/bot1:a", free.local_addr().unwrap());
    drop(free);
    let variables = [("TELEGRAM_API_URL", gone.as_str())];
    let mut example = Example::start_with_stderr("telegram_webhook", &variables).await;
    let client = example.version_1();
    let answer = send_json(&client, "POST /webhook", &[], &message(42, 42, "hello")).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "ok": true })));
    example.stderr_line("no reply").await;
}

#[tokio::test]
async fn without_a_telegram_replies_are_printed() {
    let mut example = Example::start("telegram_webhook", &[]).await;
    let client = example.version_1();
    send_json(&client, "POST /webhook", &[], &message(42, -7, "hello")).await;
    loop {
        if let Ok(printed) = serde_json::from_str::<Value>(&example.line().await) {
            assert_eq!(printed, json!({ "chat_id": -7, "text": "hello" }));
            return;
        }
    }
}

#[tokio::test]
async fn invalid_values_are_rejected_by_name() {
    let messages = "a whole number from 1 to 1000000000";
    let window = "a whole number from 1 to 31536000000";
    refuses(
        "telegram_webhook",
        &[
            ("RATE_LIMIT_MAX", "0", messages),
            ("RATE_LIMIT_MAX", "-1", messages),
            ("RATE_LIMIT_MAX", "twenty", messages),
            ("RATE_LIMIT_MAX", "", messages),
            ("RATE_LIMIT_MAX", "2.5", messages),
            ("RATE_LIMIT_WINDOW_MS", "0", window),
            ("RATE_LIMIT_WINDOW_MS", "1h", window),
            ("RATE_LIMIT_WINDOW_MS", "99999999999999999999999", window),
            ("ALLOWED_USERS", "", "ids of users, separated by commas"),
            ("ALLOWED_USERS", "42,ada", "ids of users"),
            ("ALLOWED_USERS", "42;43", "ids of users"),
            ("TELEGRAM_API_URL", "", "a URL such as"),
            ("TELEGRAM_API_URL", "api.telegram.org", "a URL such as"),
            (
                "TELEGRAM_API_URL",
                "https://api.telegram.org",
                "without TLS",
            ),
            ("LOG_LEVEL", "loud", "error, warn, info, debug or trace"),
        ],
    )
    .await;
}

/// The URL contains the bot's secret token.
#[tokio::test]
async fn invalid_url_is_rejected_without_printing_its_token() {
    let url = ("TELEGRAM_API_URL", "https://api.telegram.org/bot123:hush");
    let end = super::ended("telegram_webhook", &[url]).await;
    assert_eq!(end.code, Some(2));
    assert!(!end.stderr.contains("hush"), "{}", end.stderr);
}

#[tokio::test]
async fn two_bots_share_one_limit_in_a_namespace_of_their_own() {
    let mut redis = crate::redis::Server::start();
    let url = redis.url();
    let variables = [
        ("REDIS_URL", url.as_str()),
        ("RATE_LIMIT_MAX", "4"),
        ("ALLOWED_USERS", "42"),
        YEAR,
    ];
    let (one, other) = (Bot::start(&variables).await, Bot::start(&variables).await);
    assert_eq!(one.update(&message(99, 99, "a stranger")).await, []);
    assert!(redis.keys().is_empty(), "strangers are counted");
    for number in 0..4 {
        let bot = if number % 2 == 0 { &one } else { &other };
        assert_eq!(bot.post(42, "hello").await, "hello", "{number}");
    }
    for bot in [&one, &other] {
        assert_eq!(bot.post(42, "hello").await, LIMITED);
    }
    let keys = redis.keys();
    assert!(keys.iter().all(|key| key.starts_with("telegram-webhook:")));
    assert_eq!(keys.len(), 1);
    redis.assert_that_every_key_ends();

    // Without Redis, each bot counts by itself.
    redis.kill();
    for bot in [&one, &other] {
        let mut replies = Vec::new();
        // A user who was just denied stays denied for up to a second (deny cache).
        while replies.len() < 5 {
            let reply = bot.post(42, "hello").await;
            if reply == "hello" || !replies.is_empty() {
                replies.push(reply);
            }
        }
        assert_eq!(replies, ["hello", "hello", "hello", "hello", LIMITED]);
    }
}
