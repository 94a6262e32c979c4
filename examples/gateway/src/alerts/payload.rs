//! Bodies of webhook requests.

use serde_json::{Value, json};
use tollgate::observe::{Alert, Severity};

/// Format of the body.
pub(crate) enum PayloadFormat {
    /// The alert as the admin API shows it, with a status.
    Json,
    /// Incoming webhook of Slack.
    Slack,
    /// Events API v2 of `PagerDuty`.
    PagerDuty { routing_key: String },
}

impl PayloadFormat {
    /// Returns the body for an alert of this instance that fires or is resolved.
    pub(crate) fn render(&self, alert: &Alert, instance: &str) -> Value {
        match self {
            Self::Json => as_json(alert),
            Self::Slack => slack_message(alert),
            Self::PagerDuty { routing_key } => pagerduty_event(alert, routing_key, instance),
        }
    }
}

/// Returns the alert with `status`: `firing` or `resolved`.
fn as_json(alert: &Alert) -> Value {
    let mut document = json!(alert);
    document["status"] = if alert.is_firing() {
        json!("firing")
    } else {
        json!("resolved")
    };
    document
}

/// Returns the priority of the severity.
const fn priority(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "P0",
        Severity::High => "P1",
        Severity::Medium => "P2",
        _ => "P3",
    }
}

/// Returns the caller that the alert is about: `user=alice`.
fn caller(alert: &Alert) -> Option<String> {
    json!(alert)["counter"].as_str().map(str::to_owned)
}

/// Returns a message without previews of links.
fn slack_message(alert: &Alert) -> Value {
    json!({ "text": slack_text(alert), "unfurl_links": false, "unfurl_media": false })
}

/// Formatted as Slack's `mrkdwn`. Only the caller's name is text that a caller chooses.
fn slack_text(alert: &Alert) -> String {
    let severity = alert.severity();
    let alert_text = slack_escaped(&alert.to_string());
    let mut text = format!(
        "*[{}] {}* ({severity})\n{alert_text}",
        priority(severity),
        alert.kind
    );
    if let Some(caller) = caller(alert) {
        text += "\nCaller: ";
        text += &slack_code(&caller);
    }
    text
}

/// Escapes the three characters of links, channels and entities.
fn slack_escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns a name as a code span, in which Slack formats nothing.
///
/// A name can neither end the span nor hide a part of the message: backticks, control characters and
/// characters that are invisible or change the direction of text are written as `\n` or `\u{202e}`.
fn slack_code(name: &str) -> String {
    let mut span = String::from("`");
    for letter in name.chars() {
        match letter {
            '`' => span.extend(letter.escape_unicode()),
            '\'' | '"' => span.push(letter),
            _ => span.extend(letter.escape_debug()),
        }
    }
    span.push('`');
    slack_escaped(&span)
}

/// Returns the event that opens an incident, or resolves it: both have the same `dedup_key`. Each
/// instance has incidents of its own, because another instance may still have the cause of one that is
/// resolved here.
fn pagerduty_event(alert: &Alert, routing_key: &str, instance: &str) -> Value {
    let caller = caller(alert);
    let mut dedup_key = format!("tollgate:{instance}:{}", alert.kind);
    if let Some(caller) = &caller {
        dedup_key = format!("{dedup_key}:{caller}");
    }
    // PagerDuty accepts 255 characters.
    let dedup_key: String = dedup_key.chars().take(255).collect();
    let mut event = json!({
        "routing_key": routing_key,
        "event_action": if alert.is_firing() { "trigger" } else { "resolve" },
        "dedup_key": dedup_key,
    });
    // A resolution needs no payload.
    if alert.is_firing() {
        event["client"] = json!("tollgate");
        event["payload"] = json!({
            "summary": format!("[{}] {alert}", priority(alert.severity())),
            "source": instance,
            "severity": match alert.severity() {
                Severity::Critical => "critical",
                Severity::High => "error",
                Severity::Medium => "warning",
                _ => "info",
            },
            "timestamp": alert.since,
            "class": alert.kind.name(),
            "custom_details": {
                "value": alert.value,
                "threshold": alert.threshold,
                "addresses": alert.addresses.map(|addresses| addresses.count),
                "caller": caller,
            },
        });
    }
    event
}
