//! Durations and windows as text.

use crate::quota::Window;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Unit of time with its singular and plural, each with a leading space.
struct Unit {
    secs: u64,
    one: &'static str,
    several: &'static str,
}

impl Unit {
    const fn new(secs: u64, one: &'static str, several: &'static str) -> Self {
        Self { secs, one, several }
    }

    /// Writes `count` and the unit.
    fn times(&self, count: u64, out: &mut String) {
        let unit = if count == 1 { self.one } else { self.several };
        out.push_str(itoa::Buffer::new().format(count));
        out.push_str(unit);
    }
}

static DAYS: Unit = Unit::new(DAY, " day", " days");
static HOURS: Unit = Unit::new(HOUR, " hour", " hours");
static MINUTES: Unit = Unit::new(MINUTE, " minute", " minutes");
static SECONDS: Unit = Unit::new(1, " second", " seconds");

/// Units of windows only: their length in seconds is not a constant integer.
static MONTHS: Unit = Unit::new(0, " month", " months");
static MILLIS: Unit = Unit::new(0, " millisecond", " milliseconds");
static MICROS: Unit = Unit::new(0, " microsecond", " microseconds");

/// Writes a wait: `47 minutes`, `1 hour and 5 minutes`, `2 days`.
///
/// Rounded up, so that a request after this wait is allowed, and by at most a tenth: from ten of a
/// unit on, that unit is written alone; below, the next smaller unit is written, too.
pub(super) fn wait(secs: u64, out: &mut String) {
    let (unit, finer) = coarsest(secs);
    let grain = if secs >= 10 * unit.secs { unit } else { finer };
    let rounded = secs.div_ceil(grain.secs).saturating_mul(grain.secs);
    let (largest, smaller) = coarsest(rounded);
    let (count, rest) = (rounded / largest.secs, rounded % largest.secs);
    largest.times(count, out);
    if rest > 0 {
        out.push_str(" and ");
        smaller.times(rest / smaller.secs, out);
    }
}

/// Returns the text of [`wait`].
#[cfg(feature = "admin")]
pub(crate) fn wait_text(secs: u64) -> String {
    let mut text = String::new();
    wait(secs, &mut text);
    text
}

/// Returns the text of [`window`].
#[cfg(feature = "admin")]
pub(crate) fn window_text(of: Window) -> String {
    let mut text = String::new();
    window(of, &mut text);
    text
}

/// Returns the largest unit that fits, and the next smaller one.
const fn coarsest(secs: u64) -> (&'static Unit, &'static Unit) {
    match secs {
        DAY.. => (&DAYS, &HOURS),
        HOUR.. => (&HOURS, &MINUTES),
        MINUTE.. => (&MINUTES, &SECONDS),
        _ => (&SECONDS, &SECONDS),
    }
}

/// Writes a window, to follow "in the past": `hour`, `15 minutes`, `month`.
pub(super) fn window(window: Window, out: &mut String) {
    let micros = window.micros();
    let (count, unit) = if let Some(months) = months(window) {
        (u64::from(months), &MONTHS)
    } else if micros.is_multiple_of(1_000_000) {
        let secs = micros / 1_000_000;
        let units = [&DAYS, &HOURS, &MINUTES];
        let fits = |unit: &&Unit| secs.is_multiple_of(unit.secs);
        let unit = units.into_iter().find(fits).unwrap_or(&SECONDS);
        (secs / unit.secs, unit)
    } else if micros.is_multiple_of(1_000) {
        (micros / 1_000, &MILLIS)
    } else {
        (micros, &MICROS)
    };
    match count {
        1 => out.push_str(unit.one.trim_start()),
        _ => unit.times(count, out),
    }
}

/// Returns the number of calendar months, if the window is counted in months.
fn months(window: Window) -> Option<u32> {
    let month = Window::MONTH.micros();
    if !window.micros().is_multiple_of(month) {
        return None;
    }
    let count = u32::try_from(window.micros() / month).ok()?;
    (Window::months(count).ok()? == window).then_some(count)
}
