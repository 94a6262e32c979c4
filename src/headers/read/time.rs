//! Reset times: seconds from now, seconds or milliseconds since 1970, or a date.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::DATE;

use super::number::millionths;
use crate::clock::Timestamp;

/// From here on a number is an instant (September 2001). As a wait it would be 31 years.
const FIRST_INSTANT: u64 = 1_000_000_000;

/// From here on a number is in milliseconds (September 2001). As seconds it would be the year 33658.
const FIRST_MILLISECONDS: u64 = 1_000_000_000_000;

/// Largest difference between clocks that is ignored: `Date` has whole seconds.
const MAX_SKEW: Duration = Duration::from_secs(2);

/// The current time, on this machine and on the server.
#[derive(Clone, Copy)]
pub(super) struct Present {
    local: Timestamp,
    /// The `Date` of the response, if it differs from the local clock.
    server: Option<Timestamp>,
}

impl Present {
    pub(super) fn new(headers: &HeaderMap, local: Timestamp) -> Self {
        let date = headers.get(DATE).and_then(|line| line.to_str().ok());
        let differs = |server: &Timestamp| {
            let apart = server
                .duration_since(local)
                .max(local.duration_since(*server));
            apart > MAX_SKEW
        };
        Self {
            local,
            server: date.and_then(http_date).filter(differs),
        }
    }

    /// Returns the instant `micros` from now.
    pub(super) fn after(self, micros: u64) -> Timestamp {
        self.local.saturating_add(Duration::from_micros(micros))
    }

    /// Converts an instant of the server's clock to the local clock. One before `Date` is not
    /// converted: then `Date` is wrong.
    pub(super) fn translated(self, instant: Timestamp) -> Timestamp {
        match self.server {
            Some(server) if instant >= server => {
                self.local.saturating_add(instant.duration_since(server))
            }
            _ => instant,
        }
    }

    /// Parses a reset in any of its forms.
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

    /// Returns the time until an instant.
    pub(super) fn until(self, instant: Timestamp) -> Duration {
        instant.duration_since(self.local)
    }
}

/// Parses `Wed, 21 Oct 2015 07:28:00 GMT`, or one of the two older forms.
pub(super) fn http_date(text: &str) -> Option<Timestamp> {
    let date: SystemTime = httpdate::parse_http_date(text.trim()).ok()?;
    Some(Timestamp::from(date))
}
