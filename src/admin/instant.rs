//! Instants as JSON has them: `2026-12-01T06:00:00.000Z`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected};
use serde::ser::{Serialize, Serializer};

use crate::calendar::Rfc3339Millis;
use crate::clock::Timestamp;

/// A date with time and offset; written to the millisecond, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instant(pub(super) Timestamp);

impl Instant {
    /// The whole second that is not before it, as callers are told when to come back.
    pub(super) const fn rounded_up(instant: Timestamp) -> Self {
        Self(Timestamp::from_secs(instant.as_secs_rounded_up()))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Rfc3339Millis::from_micros(self.0.as_micros()).fmt(f)
    }
}

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let read: Option<jiff::Timestamp> = text.parse().ok();
        // What is before 1970 is long over.
        let micros = read.and_then(|read| u64::try_from(read.as_microsecond()).ok());
        let instant = micros.map(|micros| Self(Timestamp::from_micros(micros)));
        instant.ok_or_else(|| {
            let expected = "a date with time and offset, such as `2026-12-01T06:00:00Z`";
            D::Error::invalid_value(Unexpected::Str(&text), &expected)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_written_and_read() {
        let instant = Instant(Timestamp::from_micros(1_735_689_600_123_456));
        let text = serde_json::to_string(&instant).unwrap();
        assert_eq!(text, r#""2025-01-01T00:00:00.123Z""#);
        assert_eq!(
            serde_json::from_str::<Instant>(r#""2025-01-01T01:00:00.123456+01:00""#).unwrap(),
            instant
        );
        for wrong in [
            "tomorrow",
            "2025-01-01",
            "2025-01-01T00:00:00",
            "1969-12-31T23:59:59Z",
        ] {
            let error = serde_json::from_value::<Instant>(wrong.into()).unwrap_err();
            assert!(
                error.to_string().contains("with time and offset"),
                "{error}"
            );
        }
    }
}
