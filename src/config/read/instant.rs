//! Instants: `2026-12-01T06:00:00Z`.

use toml::value::{Datetime, Offset};

use super::PolicyReader;
use crate::calendar;
use crate::clock::Timestamp;
use crate::config::problem::{ConfigProblem, Told};
use crate::config::tree::{ConfigValue, Setting};

impl PolicyReader<'_> {
    /// A date with time and offset, as text or as TOML has it.
    pub(super) fn instant(&mut self, setting: &Setting<'_>) -> Option<Timestamp> {
        let (ConfigValue::Text(text) | ConfigValue::Instant(text)) = &setting.node.value else {
            return None;
        };
        let refused = match parse(text) {
            Ok(instant) => return Some(instant),
            Err(refused) => refused,
        };
        self.report.push(ConfigProblem::new(Told {
            path: setting.path.clone(),
            message: refused.to_owned(),
            found: Some(text.clone()),
            expected: Some(
                "a date with time and offset, such as `2026-12-01T06:00:00Z`".to_owned(),
            ),
            span: Some(setting.node.span.clone()),
            ..Told::default()
        }));
        None
    }
}

fn parse(text: &str) -> Result<Timestamp, &'static str> {
    let read: Datetime = text.trim().parse().map_err(|_| "this is no date")?;
    let date = read.date.ok_or("there is no date")?;
    let time = read.time.ok_or("there is no time of day")?;
    let minutes = match read.offset.ok_or("there is no offset from UTC")? {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes),
    };
    let (year, month) = (u64::from(date.year), u64::from(date.month));
    let in_range = "this is before 1970 or after 2218";
    if !(1_970..2_219).contains(&year) {
        return Err(in_range);
    }
    let days = calendar::day(year, month, u64::from(date.day));
    let hours = days * 24 + u64::from(time.hour);
    let local = (hours * 60 + u64::from(time.minute)) * 60 + u64::from(time.second.unwrap_or(0));
    let seconds = local.checked_add_signed(-minutes * 60).ok_or(in_range)?;
    let micros = u64::from(time.nanosecond.unwrap_or(0)).div_ceil(1_000);
    Ok(Timestamp::from_micros(seconds * 1_000_000 + micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against an independent calendar.
    #[test]
    fn agrees_with_jiff() {
        for text in [
            "2026-12-01T06:00:00Z",
            "2024-02-29T23:59:59.999999Z",
            "2026-12-01T06:00:00+05:30",
            "2026-12-01 06:00:00-08:00",
            "1970-01-01T00:00:00Z",
            "2218-12-31T23:59:59Z",
        ] {
            let expected: jiff::Timestamp = text.parse().unwrap();
            let read = parse(text).unwrap();
            assert_eq!(
                i64::try_from(read.as_micros()),
                Ok(expected.as_microsecond()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_instant() {
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
            "2219-01-01T00:00:00Z",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
