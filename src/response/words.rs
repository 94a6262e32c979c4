//! Lengths of time as people say them.

use std::fmt::Write as _;

use crate::quota::Window;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A unit of time, by its name after a number: of one, and of several.
struct Unit {
    secs: u64,
    one: &'static str,
    several: &'static str,
}

impl Unit {
    const fn new(secs: u64, one: &'static str, several: &'static str) -> Self {
        Self { secs, one, several }
    }

    /// So many of it.
    fn times(&self, count: u64, out: &mut String) {
        let unit = if count == 1 { self.one } else { self.several };
        // Infallible for a `String`.
        let _ = write!(out, "{count}{unit}");
    }
}

static DAYS: Unit = Unit::new(DAY, " day", " days");
static HOURS: Unit = Unit::new(HOUR, " hour", " hours");
static MINUTES: Unit = Unit::new(MINUTE, " minute", " minutes");
static SECONDS: Unit = Unit::new(1, " second", " seconds");

/// Only windows are named by these, which are no whole number of seconds, or not always the same.
static MONTHS: Unit = Unit::new(0, " month", " months");
static MILLIS: Unit = Unit::new(0, " millisecond", " milliseconds");
static MICROS: Unit = Unit::new(0, " microsecond", " microseconds");

/// A wait: `47 minutes`, `1 hour and 5 minutes`, `2 days`.
///
/// Always rounded up, because who waits as long as told must be let in, and never by more than
/// a tenth: from ten of a unit on that unit alone is close enough, below that the next smaller
/// one is named too.
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

/// A [`wait`] as text.
#[cfg(feature = "admin")]
pub(crate) fn wait_text(secs: u64) -> String {
    let mut text = String::new();
    wait(secs, &mut text);
    text
}

/// A [`window`] as text.
#[cfg(feature = "admin")]
pub(crate) fn window_text(of: Window) -> String {
    let mut text = String::new();
    window(of, &mut text);
    text
}

/// The longest unit that fits in, and the next smaller one.
const fn coarsest(secs: u64) -> (&'static Unit, &'static Unit) {
    match secs {
        DAY.. => (&DAYS, &HOURS),
        HOUR.. => (&HOURS, &MINUTES),
        MINUTE.. => (&MINUTES, &SECONDS),
        _ => (&SECONDS, &SECONDS),
    }
}

/// A window, to follow "in the past": `hour`, `15 minutes`, `month`.
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

/// How many calendar months, if it is that and not as many days.
fn months(window: Window) -> Option<u32> {
    let month = Window::MONTH.micros();
    if !window.micros().is_multiple_of(month) {
        return None;
    }
    let count = u32::try_from(window.micros() / month).ok()?;
    (Window::months(count).ok()? == window).then_some(count)
}
