//! Logs on standard error: `LOG_FORMAT` and `LOG_IDENTITIES`.

use std::error::Error;
use std::fmt::{self, Debug};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tollgate::Timestamp;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::common;

/// Sends events to standard error, in the format of `LOG_FORMAT`.
pub(crate) fn init() {
    let is_json = common::setting("LOG_FORMAT", "text", "text or json", |text| match text {
        "text" => Some(false),
        "json" => Some(true),
        _ => None,
    });
    let logs = tracing_subscriber::fmt().with_writer(io::stderr);
    if is_json {
        logs.event_format(JsonLine).init();
    } else {
        logs.init();
    }
}

/// Returns whether events contain callers as they are, instead of hashes: `LOG_IDENTITIES`.
pub(crate) fn shows_identities() -> bool {
    let allowed = "hashed or plain";
    common::setting("LOG_IDENTITIES", "hashed", allowed, |text| match text {
        "hashed" => Some(false),
        "plain" => Some(true),
        _ => None,
    })
}

/// Writes each event as one flat JSON object:
///
/// ```json
/// {"level":"warn","event":"rate_limit_exceeded","user_id":"…","ip":"203.0.113.45",
///  "endpoint":"/v1/secrets/{id}","method":"GET","limit":500,"actual_requests":501,"used":500,
///  "window":"1h","policy":"user:secrets:1h","retry_after":1847,"request_id":"req_…",
///  "timestamp":"2025-10-30T13:28:15.234Z"}
/// ```
///
/// The field `identity` becomes `user_id`, or `ip` if the caller has no user. Numbers of suppressed events
/// are left out if they are 0. A message that is no event name is `message`, with its `target`.
struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        write!(writer, "{{\"level\":{}", Value::from(level))?;
        let message = fields.message;
        if is_event_name(&message) {
            write!(writer, ",\"event\":{}", Value::from(message))?;
        } else {
            let target = Value::from(event.metadata().target());
            write!(
                writer,
                ",\"message\":{},\"target\":{target}",
                Value::from(message)
            )?;
        }
        for (name, value) in &fields.named {
            write!(writer, ",{}:{value}", Value::from(*name))?;
        }
        writeln!(writer, ",\"timestamp\":\"{}\"}}", now())
    }
}

fn is_event_name(message: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !message.is_empty() && message.bytes().all(is_plain)
}

/// Returns the wall-clock time, which is written in milliseconds.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.map_or(0, |since| since.as_micros());
    Timestamp::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// Fields of one event, in their order.
#[derive(Default)]
struct Fields {
    message: String,
    named: Vec<(&'static str, Value)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        let is_zero = value.as_u64() == Some(0);
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            ("identity", Value::String(identity)) => self.add_identity(identity),
            ("suppressed" | "suppressed_others", _) if is_zero => {}
            // Known from the identity of an unauthenticated caller.
            ("ip", value) => self.set("ip", value),
            (name, value) => self.named.push((name, value)),
        }
    }

    /// Adds the caller: `user#9f86d081884c7d65`, `user=alice`, or an address in the same two forms.
    fn add_identity(&mut self, identity: String) {
        let (name, value) = if let Some(user) = identity.strip_prefix("user=") {
            ("user_id", user.to_owned())
        } else if let Some(address) = identity.strip_prefix("ip=") {
            ("ip", address.to_owned())
        } else if identity.starts_with("user#") {
            ("user_id", identity)
        } else if identity.starts_with("ip#") {
            ("ip", identity)
        } else {
            ("identity", identity)
        };
        self.set(name, value.into());
    }

    fn set(&mut self, name: &'static str, value: Value) {
        self.named.retain(|(known, _)| *known != name);
        self.named.push((name, value));
    }
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.add(field, value.to_string().into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, format!("{value:?}").into());
    }
}
