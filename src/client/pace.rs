//! When the next request may be sent: arithmetic, without locks and clocks.
//!
//! While enough of the limit remains, requests are sent at once. Below a share of the limit they
//! wait for the reset: what is left covers requests that are in flight in other processes. Where
//! the reset is far away or not known, the last ten requests are spaced further and further apart.

use std::time::Duration;

use super::jitter::{Jitter, multiply};
use crate::clock::Timestamp;
use crate::headers::Limits;

/// Below this many remaining requests, the client backs off.
const FEW: u64 = 10;

/// The share of the limit counts only if the reset is nearer than this.
const SOON: Duration = Duration::from_mins(5);

/// Longest back-off, and how long limits without a reset apply.
pub(super) const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// What is known when a request is to be sent.
pub(super) struct PacingInput<'a> {
    pub(super) limits: &'a Limits,
    /// Requests that were sent later and are not in these limits yet.
    pub(super) pending: u64,
    /// When the last request was sent, or will be.
    pub(super) last: Timestamp,
    pub(super) now: Timestamp,
}

/// When a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pacing {
    Now,
    /// At this instant. The next request is spaced from it.
    Reserved(Timestamp),
    /// After the reset, independent of other requests.
    AfterReset(Timestamp),
}

impl PacingInput<'_> {
    /// Returns what remains for requests that have not been sent.
    fn available(&self) -> Option<u64> {
        let has_reset = self.limits.reset_at.is_some_and(|at| at <= self.now);
        let left = if has_reset {
            self.limits.limit?
        } else {
            self.limits.remaining?
        };
        Some(left.saturating_sub(self.pending))
    }

    fn reset_in(&self) -> Option<Duration> {
        let wait = self.limits.reset_at?.duration_since(self.now);
        (!wait.is_zero()).then_some(wait)
    }

    /// Returns when to send a request after the reset, if nothing remains before it.
    pub(super) fn used_up_until(&self, jitter: &Jitter) -> Option<Timestamp> {
        let reset_in = self.reset_in().filter(|_| self.available() == Some(0))?;
        Some(self.after_reset(reset_in, jitter))
    }

    /// Returns when the next request may be sent. Below `share` of the limit it waits for the reset.
    pub(super) fn next(&self, share: f64, jitter: &Jitter) -> Pacing {
        let Some(available) = self.available() else {
            return Pacing::Now;
        };
        let limit = self.limits.limit;
        #[expect(clippy::cast_precision_loss, reason = "a share of the limit")]
        let is_low = limit.is_some_and(|limit| (available as f64) < limit as f64 * share);
        if let Some(reset_in) = self.reset_in()
            && (available == 0 || is_low && reset_in < SOON)
        {
            return Pacing::AfterReset(self.after_reset(reset_in, jitter));
        }
        // At most half of a small limit, so that a fresh limit is not paced.
        let few = limit.map_or(FEW, |limit| FEW.min(limit / 2)).max(1);
        if available >= few {
            return Pacing::Now;
        }
        let spacing = multiply(backoff(few - available), 0.5 + jitter.fraction());
        let at = self.last.saturating_add(spacing);
        if at <= self.now {
            Pacing::Now
        } else {
            Pacing::Reserved(at)
        }
    }

    /// Returns an instant after the reset, with jitter, so that waiting clients do not all send at
    /// once.
    fn after_reset(&self, reset_in: Duration, jitter: &Jitter) -> Timestamp {
        let window = self.limits.window.unwrap_or_default();
        let jitter = jitter.part_of(spread(window.max(reset_in)));
        self.now.saturating_add(reset_in).saturating_add(jitter)
    }
}

/// Returns the spacing of requests after `used` of the last ones: 100 ms, doubled with each.
fn backoff(used: u64) -> Duration {
    let doublings = u32::try_from(used).unwrap_or(u32::MAX).min(10);
    (Duration::from_millis(50) * 2_u32.pow(doublings)).min(MAX_BACKOFF)
}

/// Returns the time over which requests are spread that have waited for one instant.
pub(super) fn spread(waited: Duration) -> Duration {
    const MIN: Duration = Duration::from_millis(250);
    const MAX: Duration = Duration::from_secs(10);
    (waited / 4).clamp(MIN, MAX)
}
