//! When a limit resets: seconds from now, seconds or milliseconds since 1970, or a date.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::DATE;

use super::number::millionths;
use crate::clock::Timestamp;

/// From here on a number is an instant: September 2001. As a wait it would be 31 years.
const FIRST_INSTANT: u64 = 1_000_000_000;

/// From here on it is milliseconds: the same September. As seconds it would be the year 33658.
const FIRST_MILLISECONDS: u64 = 1_000_000_000_000;

/// Clocks that differ by no more than this are taken to agree. The server's is only told in
/// whole seconds.
const AGREEMENT: Duration = Duration::from_secs(2);

/// The present, on this machine and on the server.
#[derive(Clone, Copy)]
pub(super) struct Present {
    here: Timestamp,
    /// Where the `Date` of the response says that the server's clock is another.
    there: Option<Timestamp>,
}

impl Present {
    pub(super) fn new(headers: &HeaderMap, here: Timestamp) -> Self {
        let date = headers.get(DATE).and_then(|line| line.to_str().ok());
        let differs = |there: &Timestamp| {
            let apart = there.duration_since(here).max(here.duration_since(*there));
            apart > AGREEMENT
        };
        Self {
            here,
            there: date.and_then(http_date).filter(differs),
        }
    }

    /// `micros` from now.
    pub(super) fn after(self, micros: u64) -> Timestamp {
        self.here.saturating_add(Duration::from_micros(micros))
    }

    /// An instant of the server's clock on ours. One that was past when it was told is not
    /// translated: then it is `Date` that cannot be relied on.
    pub(super) fn translated(self, instant: Timestamp) -> Timestamp {
        match self.there {
            Some(there) if instant >= there => {
                self.here.saturating_add(instant.duration_since(there))
            }
            _ => instant,
        }
    }

    /// An instant in whichever of its dialects.
    pub(super) fn reset(self, text: &str) -> Option<Timestamp> {
        let Some(micros) = millionths(text) else {
            return http_date(text).map(|date| self.translated(date));
        };
        Some(match micros / 1_000_000 {
            0..FIRST_INSTANT => self.after(micros),
            FIRST_INSTANT..FIRST_MILLISECONDS => self.translated(Timestamp::from_micros(micros)),
            FIRST_MILLISECONDS.. => self.translated(Timestamp::from_micros(micros.div_ceil(1_000))),
        })
    }

    /// How long it is until then.
    pub(super) fn until(self, instant: Timestamp) -> Duration {
        instant.duration_since(self.here)
    }
}

/// `Wed, 21 Oct 2015 07:28:00 GMT`, or one of the two older forms.
pub(super) fn http_date(text: &str) -> Option<Timestamp> {
    let date: SystemTime = httpdate::parse_http_date(text.trim()).ok()?;
    Some(Timestamp::from(date))
}
