//! One denial that is remembered.

use std::time::Duration;

use super::versions::VersionSlot;
use crate::batch::{Batch, Check};
use crate::clock::Timestamp;
use crate::quota::Algorithm;
use crate::usage::{Outcome, Usage, Usages};

/// What the store has said, and for how long that holds.
#[derive(Debug)]
pub(super) struct CachedDenial {
    usages: Box<[Usage]>,
    /// The store's instant.
    at: Timestamp,
    /// The caller's: from when on time has passed, and from when on it is asked again.
    asked: Timestamp,
    until: Timestamp,
    /// Epoch of the store when it was asked.
    pub(super) epoch: u64,
    /// What it counts on: of each subject that was denied, how much had happened to it.
    pub(super) counts_on: Box<[(VersionSlot, u64)]>,
}

impl CachedDenial {
    /// A denial that was asked for at `asked` and holds for `span`.
    pub(super) fn new(
        usages: &[Usage],
        at: Timestamp,
        (epoch, asked): (u64, Timestamp),
        span: Duration,
        counts_on: Box<[(VersionSlot, u64)]>,
    ) -> Self {
        Self {
            usages: usages.into(),
            at,
            asked,
            until: asked.saturating_add(span),
            epoch,
            counts_on,
        }
    }

    /// Whether it still holds. A clock that went back does not know.
    #[inline]
    pub(super) fn holds(&self, now: Timestamp) -> bool {
        self.asked <= now && now < self.until
    }

    /// The store's instant that it is by now, or a moment later: what passed on the way to the
    /// store counts, too. So no denial is given past its time.
    #[inline]
    fn instant(&self, now: Timestamp) -> Timestamp {
        self.at.saturating_add(now.duration_since(self.asked))
    }

    #[inline]
    fn usage(&self, usage: &Usage, instant: Timestamp) -> Usage {
        // Counters of which nothing is used are whole now, whenever that is.
        if usage.reset_at() <= self.at {
            Usage::new(usage.limit(), usage.used(), instant, usage.outcome())
        } else {
            *usage
        }
    }

    /// What the store would say.
    pub(super) fn verdict(&self, batch: &Batch<'_>, now: Timestamp) -> Usages {
        let instant = self.instant(now);
        let mut verdict = Usages::new(batch, instant);
        for usage in &self.usages {
            verdict.push(self.usage(usage, instant));
        }
        verdict
    }
}

/// When a check says the same as long as it is denied.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Stability {
    /// Always: what is used goes down at the end of the window, and then all at once.
    #[default]
    Always,
    /// With just so much used. It goes down as time passes, and with one less there is room.
    At(u64),
}

impl Stability {
    pub(super) fn of(check: &Check<'_>) -> Self {
        let quota = check.quota();
        match quota.algorithm() {
            Algorithm::FixedWindow => Self::Always,
            _ => Self::At(quota.burst().saturating_add(1).saturating_sub(check.cost())),
        }
    }

    fn is_steady(self, usage: &Usage) -> bool {
        match self {
            Self::Always => true,
            // What never fits is denied with whatever is used.
            Self::At(used) => usage.outcome() == Outcome::Denied && usage.used() == used,
        }
    }
}

/// A counter that fades while it denies is looked at again after this.
const FADING: Duration = Duration::from_millis(10);

/// For how long what these say can be given again, if nothing happens; nothing if not at all.
pub(super) fn span(
    usages: &[Usage],
    steady: &[Stability],
    at: Timestamp,
    max_ttl: Duration,
) -> Duration {
    let mut span = max_ttl;
    for (usage, steady) in usages.iter().zip(steady) {
        let is_open = usage.outcome() == Outcome::Allowed;
        if !is_open && !steady.is_steady(usage) {
            span = span.min(FADING);
        }
        // When something versions for certain: there is room, or a window ends.
        if usage.reset_at() > at {
            span = span.min(usage.reset_at().duration_since(at));
        }
    }
    span
}
