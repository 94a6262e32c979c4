//! Text of an override in Redis.

use std::fmt::Write as _;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::clock::Timestamp;
use crate::key::{Subject, Value};
use crate::store::Override;

/// Overrides of one subject under one rule, as the log of changes has them.
#[derive(Debug)]
pub(super) struct OverrideChange {
    /// Random id of the change.
    pub(super) id: String,
    /// Identifies subject and rule. Its quota has no meaning.
    pub(super) of: Override,
    pub(super) all: Vec<Override>,
}

impl OverrideChange {
    /// Reads an entry of the log: id, subject and rule, then one override per line.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (id, text) = text.split_once('\n')?;
        let (of, lines) = text.split_once('\n').unwrap_or((text, ""));
        Some(Self {
            id: id.to_owned(),
            of: read(of)?,
            all: read_lines(lines).collect(),
        })
    }
}

/// Reads the value of a field: one override per line, each after its window. Ignores malformed
/// lines.
pub(super) fn read_lines(text: &str) -> impl Iterator<Item = Override> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(_, text)| read(text))
}

/// Writes an override: expiry, rule, quota and the dimensions of the subject.
pub(super) fn written(this: &Override) -> String {
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

/// Reads an override. `None` if the text is malformed, or was written by a later version of this crate.
pub(super) fn read(text: &str) -> Option<Override> {
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
