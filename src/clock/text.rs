//! Text form of [`Timestamp`]: RFC 3339 in UTC, to the millisecond.
//!
//! The policy file, the admin API, denials and the program `tollgate` all use it.

use std::fmt;
use std::str::FromStr;

use jiff::fmt::StdFmtWrite;
use jiff::fmt::temporal::{DateTimePrinter, Pieces};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{self, Serialize, Serializer};

use super::Timestamp;
use crate::error::ValidationError;

static PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// What the printer reserves: a text with nine digits after the point.
const TEXT_CAPACITY: usize = "-009999-12-31T23:59:59.999999999Z".len();

/// RFC 3339 in UTC, to the millisecond: `2025-10-30T14:00:00.000Z`. Fractions of a millisecond
/// are cut off.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printed = PRINTER.print_timestamp(&self.to_jiff(), StdFmtWrite(f));
        printed.map_err(|_| fmt::Error)
    }
}

impl Timestamp {
    /// Converts to the millisecond that this is in.
    fn to_jiff(self) -> jiff::Timestamp {
        let millis = i64::try_from(self.0 / 1_000).unwrap_or(i64::MAX);
        // A timestamp is below 2^53 microseconds, which is within the range of jiff.
        jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX)
    }
}

/// Parses a date with time and offset from UTC. Fractions of a microsecond are rounded up.
///
/// ```
/// use tollgate::Timestamp;
///
/// let ends: Timestamp = "2026-12-01T07:00:00+01:00".parse()?;
/// assert_eq!(ends.to_string(), "2026-12-01T06:00:00.000Z");
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
///
/// # Errors
///
/// Text without time or offset, and times before 1970 or after [`Timestamp::MAX`].
impl FromStr for Timestamp {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        let invalid = |expected| ValidationError::new("time", text, expected);
        let range = "a time from 1970 to 2218";
        let time: jiff::Timestamp = text.trim().parse().map_err(|_| {
            invalid(if is_complete(text.trim()) {
                range
            } else {
                "a date with time and offset, such as `2026-12-01T06:00:00Z`"
            })
        })?;
        let nanos = u128::try_from(time.as_nanosecond()).ok();
        let micros = nanos.and_then(|nanos| u64::try_from(nanos.div_ceil(1_000)).ok());
        let time = micros
            .map(Self)
            .filter(|time| *time <= Self::MAX)
            .ok_or_else(|| invalid(range))?;
        Ok(time)
    }
}

/// Returns whether a text has a date, a time and an offset. If it cannot be parsed, it is out of range:
/// jiff rejects the last day of the year 9999.
fn is_complete(text: &str) -> bool {
    Pieces::parse(text).is_ok_and(|found| found.time().is_some() && found.offset().is_some())
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        // With the longest text of the printer, the string does not grow.
        let mut text = String::with_capacity(TEXT_CAPACITY);
        let printed = PRINTER.print_timestamp(&self.to_jiff(), &mut text);
        printed.map_err(ser::Error::custom)?;
        to.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_parsed_with_any_offset() {
        for (text, micros) in [
            ("2026-12-01T06:00:00Z", 1_796_104_800_000_000),
            ("2026-12-01T06:00:00+05:30", 1_796_085_000_000_000),
            ("2026-12-01 06:00:00-08:00", 1_796_133_600_000_000),
            ("2024-02-29T23:59:59.999999Z", 1_709_251_199_999_999),
            ("2024-02-29T23:59:59.9999991Z", 1_709_251_200_000_000),
            ("1970-01-01T00:00:00Z", 0),
            ("2218-12-31T23:59:59Z", 7_857_647_999_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Timestamp(micros)), "{text}");
        }
    }

    #[test]
    fn text_without_time_or_offset_or_out_of_range_is_rejected() {
        for text in [
            "",
            "tomorrow",
            "2026-12-01",
            "06:00:00",
            "2026-12-01T06:00:00",
            "2026-02-30T06:00:00Z",
            "2026-13-01T06:00:00Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
            "2230-01-01T00:00:00Z",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn error_for_a_time_out_of_range_names_the_range() {
        for text in [
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59-11:00",
            "2230-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "-009999-01-01T00:00:00+23:00",
        ] {
            let error = text.parse::<Timestamp>().unwrap_err();
            assert_eq!(error.expected(), "a time from 1970 to 2218", "{text}");
        }
        for text in ["9999-12-31", "9999-12-31T23:59:59", "9999-12-32T23:59:59Z"] {
            let error = text.parse::<Timestamp>().unwrap_err();
            assert!(error.expected().contains("time and offset"), "{text}");
        }
    }

    #[test]
    fn json_form_is_the_text_form() {
        let time = Timestamp(1_735_689_600_123_456);
        let text = serde_json::to_string(&time).unwrap();
        assert_eq!(text, r#""2025-01-01T00:00:00.123Z""#);
        let parsed: Timestamp = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed, Timestamp(1_735_689_600_123_000));
        let error = serde_json::from_str::<Timestamp>("\"2025-01-01\"").unwrap_err();
        assert!(
            error.to_string().contains("with time and offset"),
            "{error}"
        );
    }
}
