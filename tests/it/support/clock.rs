//! The instant at which most tests start.

use tollgate::Timestamp;

/// 2025-01-01 00:00:00 UTC in seconds, where a `ManualClock` starts. Windows of every length begin
/// then.
pub(crate) const NEW_YEAR_SECS: u64 = 1_735_689_600;
pub(crate) const NEW_YEAR_MICROS: u64 = NEW_YEAR_SECS * 1_000_000;
pub(crate) const NEW_YEAR: Timestamp = Timestamp::from_secs(NEW_YEAR_SECS);

pub(crate) fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros)
}
