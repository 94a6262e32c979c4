//! A cached denial and how long it is valid: [`CachedDenial`].

use std::time::Duration;

use super::versions::VersionSlot;
use crate::batch::{Batch, Check};
use crate::clock::Timestamp;
use crate::quota::Algorithm;
use crate::usage::{Outcome, Usage, Usages};

/// Reply of the store to a request that it has denied.
#[derive(Debug)]
pub(super) struct CachedDenial {
    /// Usages of all groups. Those of dry runs are returned as they were.
    pub(super) usages: Box<[Usage]>,
    /// Instant of the decision, by the clock of the store.
    pub(super) decided_at: Timestamp,
    /// Instant of the call, by the clock of the caller.
    pub(super) called_at: Timestamp,
    /// Until when the denial is valid, by the clock of the caller.
    pub(super) expires_at: Timestamp,
    /// Epoch of the store before the call.
    pub(super) epoch: u64,
    /// Versions of the subjects that were denied, before the call.
    pub(super) versions: Box<[(VersionSlot, u64)]>,
}

impl CachedDenial {
    /// A clock that went back makes the age unknown, and the denial invalid.
    #[inline]
    pub(super) fn is_current(&self, epoch: u64, now: Timestamp) -> bool {
        self.epoch == epoch && self.called_at <= now && now < self.expires_at
    }

    /// Returns what the store would reply now.
    ///
    /// The instant is the store's, later by at most the time that the call took to reach it. A
    /// denial is therefore never returned after its reset.
    pub(super) fn to_usages(&self, batch: &Batch<'_>, now: Timestamp) -> Usages {
        let age = now.duration_since(self.called_at);
        let instant = self.decided_at.saturating_add(age);
        let mut usages = Usages::new(batch, instant);
        for usage in &self.usages {
            // The reset of an unused counter is the instant of the reply.
            usages.push(if usage.reset_at() <= self.decided_at {
                Usage::new(usage.limit(), usage.used(), instant, usage.outcome())
            } else {
                *usage
            });
        }
        usages
    }
}

/// Condition under which the usage of a denied check stays the same until its reset.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Stability {
    /// Fixed window: `used` changes at the end of the window only.
    #[default]
    Always,
    /// Other algorithms: `used` decreases over time. At this value the next decrease is the reset.
    WhenUsed(u64),
}

impl Stability {
    pub(super) fn of(check: &Check<'_>) -> Self {
        let quota = check.quota();
        match quota.algorithm() {
            Algorithm::FixedWindow => Self::Always,
            _ => Self::WhenUsed(quota.burst().saturating_add(1).saturating_sub(check.cost())),
        }
    }

    fn is_stable(self, usage: &Usage) -> bool {
        match self {
            Self::Always => true,
            // `Outcome::ExceedsCapacity` is denied at any value of `used`.
            Self::WhenUsed(used) => usage.outcome() == Outcome::Denied && usage.used() == used,
        }
    }
}

/// Time to live of a denial whose `used` decreases before the reset.
const UNSTABLE_TTL: Duration = Duration::from_millis(10);

/// Returns how long a denial is valid if its subjects do not change; zero if it must not be cached.
/// `live` belongs to the first usages; those of dry runs have no influence on the outcome.
pub(super) fn time_to_live(
    usages: &[Usage],
    live: impl Iterator<Item = Stability>,
    decided_at: Timestamp,
    max_ttl: Duration,
) -> Duration {
    let mut ttl = max_ttl;
    for (usage, stability) in usages.iter().zip(live) {
        if !usage.is_allowed() && !stability.is_stable(usage) {
            ttl = ttl.min(UNSTABLE_TTL);
        }
    }
    for usage in usages {
        if usage.reset_at() > decided_at {
            ttl = ttl.min(usage.reset_at().duration_since(decided_at));
        }
    }
    ttl
}
