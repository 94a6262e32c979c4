//! Delivery of alerts to a webhook: `ALERT_WEBHOOK_URL`, `ALERT_FORMAT`, `ALERT_PAGERDUTY_KEY`,
//! `ALERT_MIN_SEVERITY` and `HOSTNAME`.

mod payload;
mod queue;
mod sender;

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::Uri;
use axum::http::uri::Scheme;
use tollgate::RateLimitLayer;
use tollgate::observe::Severity;

use self::payload::PayloadFormat;
use self::queue::AlertQueue;
use self::sender::Sender;
use crate::common;

/// Where alerts are delivered, and how.
pub(crate) struct Webhook {
    sender: Sender,
    format: PayloadFormat,
    min_severity: Severity,
}

impl Webhook {
    /// Reads the variables. Returns `None` if no alert is to be delivered.
    pub(crate) fn from_env() -> Option<Self> {
        let allowed = "slack, pagerduty or json";
        let format = common::setting("ALERT_FORMAT", "json", allowed, |text| match text {
            "json" => Some(PayloadFormat::Json),
            "slack" => Some(PayloadFormat::Slack),
            "pagerduty" => Some(PayloadFormat::PagerDuty {
                routing_key: pagerduty_key(),
            }),
            _ => None,
        });
        // PagerDuty wakes people: by default only for P0 and P1.
        let default = match format {
            PayloadFormat::PagerDuty { .. } => "high",
            PayloadFormat::Json | PayloadFormat::Slack => "low",
        };
        let allowed = "low, medium, high or critical";
        let min_severity =
            common::setting("ALERT_MIN_SEVERITY", default, allowed, |text| match text {
                "low" => Some(Severity::Low),
                "medium" => Some(Severity::Medium),
                "high" => Some(Severity::High),
                "critical" => Some(Severity::Critical),
                _ => None,
            });
        let others = ["ALERT_FORMAT", "ALERT_PAGERDUTY_KEY", "ALERT_MIN_SEVERITY"];
        let is_wanted = |name: &str| env::var_os(name).is_some();
        if !is_wanted("ALERT_WEBHOOK_URL") && !others.into_iter().any(is_wanted) {
            return None;
        }
        let allowed = "an http:// or https:// URL with a host and without user or password; required if \
                       another ALERT_ variable is set";
        let url = common::setting("ALERT_WEBHOOK_URL", "", allowed, parse_url);
        let sender = Sender::new(url).unwrap_or_else(|error| {
            let allowed = format!("https:// only with certificates of this system ({error})");
            common::refuse("ALERT_WEBHOOK_URL", "", &allowed)
        });
        Some(Self {
            sender,
            format,
            min_severity,
        })
    }

    /// Starts the tasks that receive and deliver the alerts of a layer. No request waits for them.
    /// The most severe alert is delivered first; what does not fit into the queue is logged.
    pub(crate) fn deliver(self, limits: &RateLimitLayer, server: SocketAddr) {
        let Self {
            sender,
            format,
            min_severity,
        } = self;
        let instance = instance(server);
        let queue = Arc::new(AlertQueue::default());
        let waiting = Arc::clone(&queue);
        tokio::spawn(limits.on_alert(move |alert| {
            let is_severe = alert.severity() >= min_severity;
            if let Some(dropped) = is_severe.then(|| queue.push(alert)).flatten() {
                tracing::error!(
                    alert = dropped.kind.name(),
                    why = "the queue is full",
                    "alert_not_delivered"
                );
            }
            async {}
        }));
        tokio::spawn(async move {
            loop {
                let alert = waiting.pop().await;
                sender.send(&alert, &format.render(&alert, &instance)).await;
            }
        });
    }
}

/// Returns the name of this instance: `web-1:3000`.
fn instance(server: SocketAddr) -> String {
    let host = env::var("HOSTNAME").or_else(|_| fs::read_to_string("/etc/hostname"));
    let host = host.unwrap_or_default();
    let host = match host.trim() {
        "" => "localhost",
        host => host,
    };
    // The longest host name of Linux.
    let host: String = host.chars().take(64).collect();
    format!("{host}:{}", server.port())
}

fn parse_url(text: &str) -> Option<Uri> {
    let url: Uri = text.parse().ok()?;
    let is_http = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&url.scheme());
    let has_host = url.host().is_some_and(|host| !host.is_empty());
    let has_user = url.authority()?.as_str().contains('@');
    (is_http && has_host && !has_user).then_some(url)
}

/// Returns the routing key, which `ALERT_FORMAT=pagerduty` requires.
fn pagerduty_key() -> String {
    let allowed = "the integration key of a PagerDuty service, 32 letters and digits; required by \
                   ALERT_FORMAT=pagerduty";
    common::setting("ALERT_PAGERDUTY_KEY", "", allowed, |key| {
        let is_key = key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_key.then(|| key.to_owned())
    })
}
