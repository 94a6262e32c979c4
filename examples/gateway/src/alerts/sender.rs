//! HTTP requests to the webhook, with retries.

use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::uri::Scheme;
use axum::http::{Request, Response, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::time::{sleep, timeout};
use tollgate::observe::Alert;

/// Attempts for one alert. With the waits between them, they take at most 104 s, unless `Retry-After`
/// is longer.
const ATTEMPTS: u32 = 8;
/// From the connection to the head of the response.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// Wait after the first attempt. It doubles with each one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Sends alerts to one URL.
pub(crate) struct Sender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: Uri,
}

/// Why an attempt failed. The text has no part of the URL.
enum Failure {
    /// Another attempt can succeed, at the earliest after this time.
    Temporary(String, Option<Duration>),
    /// The webhook rejects the alert.
    Permanent(String),
}

impl Sender {
    /// Fails if the URL is `https` and the certificates of the system cannot be read.
    pub(crate) fn new(url: Uri) -> io::Result<Self> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls_config(&url)?)
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            url,
        })
    }

    /// Sends an alert until the webhook accepts it, rejects it, or the attempts are used up.
    pub(crate) async fn send(&self, alert: &Alert, body: &Value) {
        let body = Bytes::from(body.to_string());
        for attempt in 1..=ATTEMPTS {
            let (why, wait) = match self.attempt(body.clone()).await {
                Ok(()) => return,
                Err(Failure::Permanent(why)) => return self.give_up(alert, attempt, &why),
                Err(Failure::Temporary(why, wait)) => (why, wait),
            };
            if attempt == ATTEMPTS {
                return self.give_up(alert, attempt, &why);
            }
            let wait = wait.unwrap_or_default().max(back_off(attempt));
            let wait = wait.min(LONGEST_WAIT);
            tracing::warn!(
                alert = alert.kind.name(),
                webhook = %self,
                attempt,
                why,
                wait = wait.as_secs_f64(),
                "alert_delivery_failed"
            );
            sleep(wait).await;
        }
    }

    fn give_up(&self, alert: &Alert, attempts: u32, why: &str) {
        let alert = alert.kind.name();
        tracing::error!(alert, webhook = %self, attempts, why, "alert_not_delivered");
    }

    async fn attempt(&self, body: Bytes) -> Result<(), Failure> {
        let request = Request::post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| Failure::Permanent(error.to_string()))?;
        let temporary = |why: String| Failure::Temporary(why, None);
        let response = timeout(ATTEMPT_TIMEOUT, self.client.request(request))
            .await
            .map_err(|_| temporary("no response in time".to_owned()))?
            .map_err(|error| {
                let what = if error.is_connect() {
                    "no connection"
                } else {
                    "no response"
                };
                temporary(format!("{what}{}", causes(&error)))
            })?;
        outcome(&response)
    }
}

fn tls_config(url: &Uri) -> io::Result<ClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let config = if url.scheme() == Some(&Scheme::HTTPS) {
        config.with_native_roots()?
    } else {
        config.with_root_certificates(RootCertStore::empty())
    };
    Ok(config.with_no_client_auth())
}

/// Returns the causes of an error: `: invalid peer certificate: UnknownIssuer`. They come from the
/// connector, TLS and HTTP/1, which know the host but not the path of the URL.
fn causes(error: &dyn Error) -> String {
    let mut text = String::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        // Some errors repeat the text of their cause.
        if !text.ends_with(&cause_text) {
            text += ": ";
            text += &cause_text;
        }
        next = cause.source();
    }
    text
}

/// Returns whether the webhook has accepted the alert.
fn outcome<B>(response: &Response<B>) -> Result<(), Failure> {
    let status = response.status();
    let why = format!("status {}", status.as_u16());
    if status.is_success() {
        Ok(())
    } else if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        let seconds = response.headers().get(RETRY_AFTER);
        let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
        Err(Failure::Temporary(why, seconds.map(Duration::from_secs)))
    } else {
        Err(Failure::Permanent(why))
    }
}

/// Returns the wait after an attempt: doubled with each one, and shortened at random by up to a half, so
/// that several processes do not repeat at once.
fn back_off(attempt: u32) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << (attempt - 1).min(16));
    let random = RandomState::new().hash_one(0_u8) % 1_000;
    let permille = u32::try_from(1_000 - random / 2).unwrap_or(1_000);
    doubled.min(LONGEST_WAIT) * permille / 1_000
}

/// Scheme and host. The path and the query of a webhook are its password.
impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.url.scheme_str().unwrap_or_default();
        let host = self.url.authority().map_or("", |host| host.as_str());
        write!(f, "{scheme}://{host}")
    }
}
