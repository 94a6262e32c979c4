//! When the next request may go: arithmetic, without locks and clocks.
//!
//! There is plenty, most of the time, and nobody waits. When little is left, it is made to last
//! until the reset. How long that takes depends on two things that no header tells, and that are
//! learned from what the answers say:
//!
//! - **The crowd.** Others may use the same limit: another process with the same key. If five are
//!   gone where we sent one, four others are as eager as we are, and what is left is theirs too.
//! - **Whether it refills.** Some limits come back all at once, others all the time. If as much is
//!   left as before although we took one, it refills, and waiting for the reset would be a waste.

use std::time::Duration;

use super::jitter::{Jitter, multiply};
use crate::clock::Timestamp;
use crate::headers::Limits;

/// Below this many, requests are spread out, whatever the share.
const FEW: u64 = 10;

/// The share of the limit does not matter while the reset is further away than this.
const SOON: Duration = Duration::from_mins(5);

/// Where nothing says when there will be more, what was told counts for no longer than this.
pub(super) const BLIND: Duration = Duration::from_secs(10);

/// How much of what is too little for everybody is given to the lucky.
const LUCK: f64 = 0.25;

/// What is known when a request wants to go.
pub(super) struct PacingInput<'a> {
    pub(super) limits: &'a Limits,
    /// Sent since, and not yet in the numbers.
    pub(super) pending: u64,
    /// How many are drinking, ourselves included.
    pub(super) crowd: f64,
    pub(super) refills: bool,
    /// As long as a reset was ever away, if the server does not tell.
    pub(super) window: Duration,
    /// When the last request went, or will go.
    pub(super) last: Timestamp,
    pub(super) now: Timestamp,
}

/// When a request may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pacing {
    Now,
    /// Then, and the next one after it.
    At(Timestamp),
    /// When there is more, or by chance before. Others are not put off by it.
    Later(Timestamp),
}

impl PacingInput<'_> {
    /// What is left for requests that have not been sent.
    fn available(&self) -> Option<u64> {
        let has_reset = self.limits.reset_at().is_some_and(|at| at <= self.now);
        let left = if has_reset {
            self.limits.limit()?
        } else {
            self.limits.remaining()?
        };
        Some(left.saturating_sub(self.pending))
    }

    fn reset_in(&self) -> Option<Duration> {
        let wait = self.limits.reset_at()?.duration_since(self.now);
        (!wait.is_zero()).then_some(wait)
    }

    /// Whether there is nothing left, and nothing will come before the reset.
    pub(super) fn is_used_up(&self) -> bool {
        !self.refills && self.available() == Some(0) && self.reset_in().is_some()
    }

    fn is_low(&self, available: u64, share: f64) -> bool {
        let limit = self.limits.limit();
        // Of a limit of twelve, ten are not few.
        let few = limit.map_or(FEW, |limit| FEW.min(limit / 2)).max(1);
        let is_soon = self.reset_in().is_none_or(|wait| wait < SOON);
        #[expect(
            clippy::cast_precision_loss,
            reason = "a share of millions is a million"
        )]
        let is_small = limit.is_some_and(|limit| (available as f64) < limit as f64 * share);
        available < few || (is_small && is_soon)
    }

    /// When the next request may go, if `share` of the limit is little.
    pub(super) fn turn(&self, share: f64, jitter: &Jitter) -> Pacing {
        let Some(available) = self.available() else {
            return Pacing::Now;
        };
        if !self.is_low(available, share) {
            return Pacing::Now;
        }
        let Some(reset_in) = self.reset_in() else {
            return self.after(blind(available), jitter);
        };
        if let Some(spacing) = self.refill_spacing(available) {
            return self.after(spacing.min(reset_in), jitter);
        }
        #[expect(clippy::cast_precision_loss, reason = "few, or a share of the limit")]
        let available = available as f64;
        // Each of the others has probably sent one that is not in the numbers yet.
        let ours = (available + 1.0 - self.crowd) / self.crowd;
        if ours >= 1.0 {
            let turn = self.after(multiply(reset_in, 1.0 / ours), jitter);
            // Past the reset there is plenty again, and no queue to stand in.
            let is_late = matches!(turn, Pacing::At(at) if at > self.now.saturating_add(reset_in));
            return if is_late {
                Pacing::Later(self.after_reset(reset_in, jitter))
            } else {
                turn
            };
        }
        // Not one for each of us. Whoever is lucky takes one, so that none is left over and the
        // lucky learn whether it refills; the others wait.
        if jitter.fraction() < LUCK * available / self.crowd {
            return Pacing::Later(self.now.saturating_add(jitter.part_of(reset_in)));
        }
        Pacing::Later(self.after_reset(reset_in, jitter))
    }

    /// Past the reset, each at a time of its own.
    pub(super) fn after_reset(&self, reset_in: Duration, jitter: &Jitter) -> Timestamp {
        let scatter = jitter.part_of(scatter(self.window.max(reset_in)));
        self.now.saturating_add(reset_in).saturating_add(scatter)
    }

    /// The used up wait for the reset.
    pub(super) fn until_reset(&self, jitter: &Jitter) -> Option<Timestamp> {
        Some(self.after_reset(self.reset_in()?, jitter))
    }

    /// `spacing` after the last one, half as much earlier or later.
    fn after(&self, spacing: Duration, jitter: &Jitter) -> Pacing {
        let spacing = multiply(spacing, 0.5 + jitter.fraction());
        let at = self.last.saturating_add(spacing);
        if at <= self.now {
            Pacing::Now
        } else {
            Pacing::At(at)
        }
    }

    /// How far apart our requests are to be if what is used comes back all the time.
    fn refill_spacing(&self, available: u64) -> Option<Duration> {
        let limit = self
            .limits
            .limit()
            .filter(|limit| self.refills && *limit > 0)?;
        let window = self.limits.window().unwrap_or(self.window);
        #[expect(clippy::cast_precision_loss, reason = "a wait, to some digits")]
        let each = multiply(window, self.crowd / limit as f64);
        // Let it recover.
        Some(if available == 0 { each * 2 } else { each })
    }
}

/// Doubles with each that is gone.
fn blind(available: u64) -> Duration {
    let gone = u32::try_from(FEW.saturating_sub(available)).unwrap_or(0);
    (Duration::from_millis(50) * 2_u32.pow(gone)).min(BLIND)
}

/// Over how long those scatter who have waited for the same instant.
pub(super) fn scatter(waited: Duration) -> Duration {
    const LEAST: Duration = Duration::from_millis(250);
    const MOST: Duration = Duration::from_secs(10);
    (waited / 4).clamp(LEAST, MOST)
}
