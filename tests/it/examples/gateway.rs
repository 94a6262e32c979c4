//! The gateway over HTTP: endpoints, tiers, settings.

mod answers;
mod attack;
mod dashboard;
mod logs;
mod redis;
mod reload;
mod rows;
mod settings;
mod table;
mod webhook;

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};

use super::process::Example;
use crate::support::http::Answer;
use crate::support::sockets::Client;

/// Settings that all tests use.
const OWN: [(&str, &str); 2] = [("JWT_SECRET", SECRET), ("TRUSTED_PROXIES", "127.0.0.1/32")];
const SECRET: &str = "the secret of these tests";

/// A gateway that trusts forwarding headers from loopback.
struct Gateway {
    example: Example,
    client: Client,
}

/// A caller: token and address.
struct Caller {
    headers: Vec<(&'static str, String)>,
}

impl Gateway {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(variables: &[(&str, &str)]) -> Self {
        let variables = [&OWN, variables].concat();
        Self::of(Example::start("gateway", &variables).await)
    }

    fn of(example: Example) -> Self {
        let client = example.version_1();
        Self { example, client }
    }

    async fn send(&self, line: &str, caller: &Caller) -> Answer {
        caller.send(&self.client, line).await
    }

    /// Sends requests up to the limit and one more. Returns the 429.
    async fn exhaust(&self, line: &str, caller: &Caller, limit: u64) -> Answer {
        for sent in 0..limit {
            let answer = self.send(line, caller).await;
            assert_eq!(answer.status, 200, "{line}: {sent} of {limit}");
        }
        let answer = self.send(line, caller).await;
        assert_eq!(answer.status, 429, "{line}: more than {limit}");
        answer
    }
}

impl Caller {
    /// A caller without a token, at an address that is derived from `number`.
    fn anonymous(number: usize) -> Self {
        let [.., high, low] = number.to_be_bytes();
        Self {
            headers: vec![("x-forwarded-for", format!("203.{high}.{low}.9"))],
        }
    }

    async fn send(&self, client: &Client, line: &str) -> Answer {
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        client.send(line, &headers).await
    }

    fn with_claims(claims: &Value) -> Self {
        let mut caller = Self::anonymous(0);
        caller.show(claims);
        caller
    }

    fn user(name: &str, plan: &str) -> Self {
        Self::with_claims(&json!({ "sub": name, "app_metadata": { "plan": plan } }))
    }

    /// Adds a token.
    fn and_user(mut self, name: &str, plan: &str) -> Self {
        self.show(&json!({ "sub": name, "app_metadata": { "plan": plan } }));
        self
    }

    fn show(&mut self, claims: &Value) {
        let mut claims = claims.clone();
        claims["exp"] = json!(seconds() + 3_600);
        let key = EncodingKey::from_secret(SECRET.as_bytes());
        let token = encode(&Header::default(), &claims, &key).unwrap();
        self.headers
            .push(("authorization", format!("Bearer {token}")));
    }
}

/// Wall-clock time in seconds, which the server uses as well.
fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// Policy, limit and remaining of a response.
fn usage_of(answer: &Answer) -> (&str, u64, u64) {
    (
        answer.header("x-ratelimit-policy").unwrap_or("none"),
        answer.number("x-ratelimit-limit"),
        answer.number("x-ratelimit-remaining"),
    )
}
