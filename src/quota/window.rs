//! Period of a quota: [`Window`].

use std::fmt;
use std::time::Duration;

use crate::calendar;
use crate::error::ValidationError;

/// The period of a quota: a span of time, or a number of calendar months.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Window;
///
/// assert_eq!(Window::HOUR.to_string(), "1h");
/// assert_eq!(Window::new(Duration::from_secs(90))?.to_string(), "90s");
/// assert!(Window::new(Duration::ZERO).is_err());
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window(Length);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Length {
    /// Microseconds, 1 to [`Window::MAX_MICROS`].
    Span(u64),
    /// Months, 1 to [`Window::MAX_MONTHS`]: calendar months for fixed windows, 30 days each
    /// for everything that slides.
    Months(u32),
}

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

impl Window {
    /// One second.
    pub const SECOND: Self = Self(Length::Span(SECOND));
    /// One minute.
    pub const MINUTE: Self = Self(Length::Span(MINUTE));
    /// One hour.
    pub const HOUR: Self = Self(Length::Span(HOUR));
    /// One day: from midnight to midnight UTC for fixed windows, 24 hours for what slides.
    pub const DAY: Self = Self(Length::Span(DAY));
    /// One month: a calendar month in UTC for fixed windows, 30 days for what slides.
    pub const MONTH: Self = Self(Length::Months(1));

    /// Ten years. Longer windows are rejected as mistakes.
    const MAX_MICROS: u64 = 3_653 * DAY;
    const MAX_MONTHS: u32 = 120;
    const ALLOWED: &'static str = "1 microsecond to 3653 days, in whole microseconds";

    /// Returns a window of this length, in whole microseconds and at most ten years.
    pub fn new(length: Duration) -> Result<Self, ValidationError> {
        let refuse =
            || ValidationError::new("quota window", format_args!("{length:?}"), Self::ALLOWED);
        let nanos = length.as_nanos();
        let micros = u64::try_from(nanos / 1_000).map_err(|_| refuse())?;
        if !nanos.is_multiple_of(1_000) || micros == 0 || micros > Self::MAX_MICROS {
            return Err(refuse());
        }
        Ok(Self(Length::Span(micros)))
    }

    /// Returns a window of `count` calendar months, at most 120.
    pub fn months(count: u32) -> Result<Self, ValidationError> {
        Self::calendar_months(u64::from(count))
    }

    fn calendar_months(count: u64) -> Result<Self, ValidationError> {
        if let Ok(fits @ 1..=Self::MAX_MONTHS) = u32::try_from(count) {
            return Ok(Self(Length::Months(fits)));
        }
        let found = format_args!("{count} months");
        Err(ValidationError::new(
            "quota window",
            found,
            "1 to 120 months",
        ))
    }

    /// The nominal length; a month counts as 30 days.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_micros(self.micros())
    }

    pub(super) const fn longest() -> Self {
        Self(Length::Span(Self::MAX_MICROS))
    }

    pub(crate) const fn micros(self) -> u64 {
        match self.0 {
            Length::Span(micros) => micros,
            Length::Months(count) => count as u64 * 30 * DAY,
        }
    }

    /// Returns whether it is whole days or months: a fixed window of this length is aligned to the
    /// calendar.
    #[inline]
    pub(crate) const fn is_calendar(self) -> bool {
        match self.0 {
            Length::Span(micros) => micros >= DAY && micros.is_multiple_of(DAY),
            Length::Months(_) => true,
        }
    }

    /// How many calendar months it is; 0 if it is a span of time.
    #[cfg(feature = "redis")]
    pub(crate) const fn in_months(self) -> u32 {
        match self.0 {
            Length::Span(_) => 0,
            Length::Months(count) => count,
        }
    }

    /// Where the aligned window that contains `now` ends.
    pub(crate) const fn end_after(self, now: u64) -> u64 {
        match self.0 {
            Length::Span(micros) => (now / micros + 1) * micros,
            Length::Months(count) => calendar::months_end(now, count),
        }
    }

    /// Creates a window from a count and a unit such as `hour` or `h`; `None` for an unknown unit.
    pub(super) fn from_unit(count: u64, unit: &str) -> Option<Result<Self, ValidationError>> {
        let micros = match unit {
            "us" | "µs" | "microsecond" | "microseconds" => 1,
            "ms" | "millisecond" | "milliseconds" => 1_000,
            "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
            "m" | "min" | "mins" | "minute" | "minutes" => MINUTE,
            "h" | "hr" | "hrs" | "hour" | "hours" => HOUR,
            "d" | "day" | "days" => DAY,
            "w" | "week" | "weeks" => 7 * DAY,
            "mo" | "month" | "months" => {
                return Some(Self::calendar_months(count));
            }
            _ => return None,
        };
        Some(match count.checked_mul(micros) {
            Some(total) => Self::new(Duration::from_micros(total)),
            None => Err(ValidationError::new(
                "quota window",
                format_args!("{count}{unit}"),
                Self::ALLOWED,
            )),
        })
    }
}

/// The short form that policy names use: `1h`, `15m`, `1d`, `1mo`, `500ms`.
impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 6] = [
            (DAY, "d"),
            (HOUR, "h"),
            (MINUTE, "m"),
            (SECOND, "s"),
            (1_000, "ms"),
            (1, "us"),
        ];
        match self.0 {
            Length::Months(count) => write!(f, "{count}mo"),
            Length::Span(micros) => {
                let fits = UNITS.iter().find(|(unit, _)| micros.is_multiple_of(*unit));
                let (unit, name) = fits.unwrap_or(&(1, "us"));
                write!(f, "{}{name}", micros / unit)
            }
        }
    }
}
