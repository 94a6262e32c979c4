//! Numbers from the environment.

use std::ops::RangeInclusive;

use crate::common;

/// A whole number from the environment, or its default. One out of range ends the program.
pub(crate) fn number(name: &str, default: u64, range: RangeInclusive<u64>) -> u64 {
    let allowed = format!("a whole number from {} to {}", range.start(), range.end());
    common::setting(name, &default.to_string(), &allowed, |text| {
        text.parse().ok().filter(|number| range.contains(number))
    })
}
