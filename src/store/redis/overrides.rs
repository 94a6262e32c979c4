//! Overrides in Redis: one key for all of them, and a copy in every process.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::hash::BuildHasher as _;
use std::sync::{Arc, Weak};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::Shared;
use super::call::ScriptCall;
use super::error::RedisStoreError;
use super::key::Prefix;
use super::script;
use crate::clock::Timestamp;
use crate::key::{Subject, Value};
use crate::store::Override;

/// Interval of polls. A change is known to all processes within a second.
const POLL_INTERVAL: Duration = Duration::from_millis(400);
/// Field with the version of the overrides.
const VERSION: &str = "version";

/// Version of the copy in this process: `None` if unknown, `Some(None)` if there was none to copy.
/// Locked while the copy changes, so that no older one replaces it.
pub(super) type Seen = Mutex<Option<Option<String>>>;

impl Shared {
    /// Sets an override for all processes.
    pub(super) async fn set_override(
        self: Arc<Self>,
        new: Override,
    ) -> Result<(), RedisStoreError> {
        let window = if new.quota().counts_nothing() {
            "*".to_owned()
        } else {
            new.quota().window().to_string()
        };
        let whose = Prefix::hash_of(&new.subject(), new.rule());
        let mut seen = self.seen.lock().await;
        self.change("set", &whose, &window, &written(&new)).await?;
        self.overrides.set(new);
        *seen = None;
        Ok(())
    }

    /// Removes the overrides of a subject under a rule. Returns whether there were any.
    pub(super) async fn remove_override(
        self: Arc<Self>,
        of: Override,
    ) -> Result<bool, RedisStoreError> {
        let whose = Prefix::hash_of(&of.subject(), of.rule());
        let mut seen = self.seen.lock().await;
        let removed = self.change("remove", &whose, "", "").await?;
        self.overrides.remove(&of.subject(), of.rule());
        *seen = None;
        Ok(removed > 0)
    }

    async fn change(
        &self,
        verb: &str,
        whose: &str,
        window: &str,
        value: &str,
    ) -> Result<u64, RedisStoreError> {
        let clock = if self.by_callers_clock { "" } else { "server" };
        // Only has to differ from earlier versions; they are not ordered.
        let random = RandomState::new();
        let version = format!("{:016x}{:016x}", random.hash_one(0), random.hash_one(1));
        let arguments = [verb, whose, window, value, clock, &version].map(str::as_bytes);
        let call = ScriptCall {
            script: script::overrides(),
            keys: &[self.prefix.of_overrides()],
            arguments: &arguments,
        };
        self.servers.run(call, super::upkeep::DEADLINE).await
    }

    /// Polls until the store is dropped.
    pub(super) async fn follow_overrides(shared: Weak<Self>) {
        while let Some(shared) = shared.upgrade() {
            // Without a reply, the last copy stays in force.
            let _ = shared.copy_overrides().await;
            drop(shared);
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Copies the overrides if their version has changed.
    async fn copy_overrides(&self) -> Result<(), RedisStoreError> {
        let mut seen = self.seen.lock().await;
        let key = self.prefix.of_overrides();
        let mut get = redis::cmd("HGET");
        let version = get.arg(&key).arg(VERSION);
        let version: Option<String> = self.servers.command(&key, version, self.deadline).await?;
        if *seen == Some(version) {
            return Ok(());
        }
        let mut all = redis::cmd("HGETALL");
        let all: HashMap<String, String> = self
            .servers
            .command(&key, all.arg(&key), self.deadline)
            .await?;
        let fields = all.iter().filter(|(field, _)| *field != VERSION);
        self.overrides
            .replace(fields.filter_map(|(_, value)| read(value)));
        // The version that was copied, which may be later than the one read first.
        *seen = Some(all.get(VERSION).cloned());
        Ok(())
    }
}

/// Writes an override: expiry, rule, quota and the dimensions of the subject.
fn written(this: &Override) -> String {
    let plain = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let ends = this.expires_at().map(|ends| ends.as_micros().to_string());
    let quota = plain(&this.quota().to_string());
    let mut text = ends.unwrap_or_else(|| "-".to_owned());
    let _ = write!(text, " {} {quota}", plain(this.rule()));
    for (name, value) in this.subject().dimensions() {
        let (kind, value) = match value {
            Value::Text(text) => ("text", plain(text)),
            Value::Number(number) => ("number", number.to_string()),
            Value::Negative(number) => ("number", number.to_string()),
            Value::Address(address) => ("address", address.to_string()),
        };
        let _ = write!(text, " {}={kind}:{value}", plain(name));
    }
    text
}

/// Reads an override. `None` if the text is none, or comes from a later version of this crate.
fn read(text: &str) -> Option<Override> {
    let mut words = text.split(' ');
    let ends = words.next()?;
    let (rule, quota) = (decoded(words.next()?)?, decoded(words.next()?)?);
    let mut dimensions = Vec::new();
    for word in words {
        let (name, value) = word.split_once('=')?;
        let (kind, value) = value.split_once(':')?;
        dimensions.push((decoded(name)?, kind, decoded(value)?));
    }
    let dimensions = dimensions.iter().map(|(name, kind, text)| {
        let value = match *kind {
            "text" => Value::Text(text),
            "number" if text.starts_with('-') => Value::from(text.parse::<i64>().ok()?),
            "number" => Value::Number(text.parse().ok()?),
            "address" => Value::Address(text.parse().ok()?),
            _ => return None,
        };
        Some((name.as_str(), value))
    });
    let dimensions: Vec<_> = dimensions.collect::<Option<_>>()?;
    let subject = Subject::from_dimensions(&dimensions).ok()?;
    let read = Override::new(subject, rule, quota).ok()?;
    Some(match ends {
        "-" => read,
        micros => read.until(Timestamp::from_micros(micros.parse().ok()?)),
    })
}

fn decoded(text: &str) -> Option<String> {
    let text = percent_decode_str(text).decode_utf8().ok()?;
    Some(text.into_owned())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn overrides_are_read_as_they_were_written() {
        let subjects = [
            Subject::all(),
            Subject::from("a b=c:d%20"),
            Subject::from(7),
            Subject::from(i64::MIN),
            Subject::from([("ip", Ipv6Addr::LOCALHOST)]),
            Subject::from([("gr oup", "ü"), ("user", ""), ("", "x"), ("y", "=")]),
        ];
        let quotas = [
            "blocked",
            "unlimited",
            "50/minute, token-bucket, burst 20",
            "9/month, fixed-window",
        ];
        let until = Timestamp::from_micros(1_796_083_200_000_001);
        for subject in subjects {
            for quota in quotas {
                let for_good = Override::new(subject, "a:rule=%", quota).expect("valid");
                for this in [for_good.clone(), for_good.until(until)] {
                    let text = written(&this);
                    assert_eq!(read(&text).as_ref(), Some(&this), "{text}");
                }
            }
        }
    }

    #[test]
    fn malformed_overrides_are_ignored() {
        for text in [
            "",
            "-",
            "- rule",
            "- rule 5",
            "x rule 5%2F1h",
            "- rule 5%2F1h a=ghost:b",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert!(read("- rule 5%2F1h a=text:b").is_some());
    }
}
