//! Lengths of time as people say them.

use super::sink::Sink;
use crate::quota::Window;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Units from the longest to the shortest, in seconds.
const UNITS: [(u64, &str); 4] = [
    (DAY, "day"),
    (HOUR, "hour"),
    (MINUTE, "minute"),
    (1, "second"),
];

/// A wait: `47 minutes`, `1 hour and 5 minutes`, `2 days`.
///
/// Always rounded up, because who waits as long as told must be let in, and never by more than
/// a tenth: from ten of a unit on that unit alone is close enough, below that the next smaller
/// one is named too.
pub(super) fn wait(secs: u64, out: &mut impl Sink) {
    let unit = coarsest(secs);
    let grain = if secs >= 10 * unit { unit } else { finer(unit) };
    let rounded = secs.div_ceil(grain).saturating_mul(grain);
    let largest = coarsest(rounded);
    let (count, rest) = (rounded / largest, rounded % largest);
    amount(count, name_of(largest), out);
    if rest > 0 {
        let smaller = finer(largest);
        out.plain(" and ");
        amount(rest / smaller, name_of(smaller), out);
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

/// The longest unit that fits in.
fn coarsest(secs: u64) -> u64 {
    let fits = UNITS.iter().find(|(unit, _)| secs >= *unit);
    fits.map_or(1, |(unit, _)| *unit)
}

/// The next smaller unit.
const fn finer(unit: u64) -> u64 {
    match unit {
        DAY => HOUR,
        HOUR => MINUTE,
        _ => 1,
    }
}

fn name_of(unit: u64) -> &'static str {
    let known = UNITS.iter().find(|(secs, _)| *secs == unit);
    known.map_or("second", |(_, name)| name)
}

/// A window, to follow "in the past": `hour`, `15 minutes`, `month`.
pub(super) fn window(window: Window, out: &mut impl Sink) {
    let micros = window.micros();
    let (count, unit) = if let Some(months) = months(window) {
        (u64::from(months), "month")
    } else if micros.is_multiple_of(1_000_000) {
        let secs = micros / 1_000_000;
        let fits = UNITS.iter().find(|(unit, _)| secs.is_multiple_of(*unit));
        let (unit, name) = fits.unwrap_or(&(1, "second"));
        (secs / unit, *name)
    } else if micros.is_multiple_of(1_000) {
        (micros / 1_000, "millisecond")
    } else {
        (micros, "microsecond")
    };
    match count {
        1 => out.plain(unit),
        _ => amount(count, unit, out),
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

fn amount(count: u64, unit: &str, out: &mut impl Sink) {
    out.number(count);
    out.plain(" ");
    out.plain(unit);
    if count != 1 {
        out.plain("s");
    }
}
