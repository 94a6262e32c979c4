//! Where counters live: the [`Store`] trait and the stores that come with the crate.

mod by_print;
mod chance;
mod circuit_breaker;
#[cfg(feature = "test-util")]
pub mod contract;
mod deny_cache;
mod fingerprint;
mod future;
mod health;
mod lease;
mod memory;
mod memory_stats;
mod overrides;
#[cfg(feature = "redis")]
mod redis;
mod shared;
mod siphash;
mod wall;

use std::fmt;
use std::sync::Arc;

use crate::batch::{Batch, Check};
use crate::clock::{Clock, SharedClock, Timestamp};
use crate::decision::{Usage, Usages};
use crate::error::StoreError;
use crate::key::Subject;

pub use self::circuit_breaker::{CircuitBreaker, CircuitBreakerBuilder};
pub use self::deny_cache::{DenyCache, DenyCacheBuilder};
pub use self::future::StoreFuture;
pub(crate) use self::future::block_on;
pub use self::health::StoreHealth;
pub use self::lease::{Leased, LeasedBuilder};
pub use self::memory::{MemoryStore, MemoryStoreBuilder};
pub use self::memory_stats::MemoryStats;
pub use self::overrides::{Override, Overrides};
#[cfg(feature = "redis")]
pub use self::redis::{RedisStore, RedisStoreBuilder};
pub(crate) use self::shared::SharedStore;

/// Keeps counters and decides batches against them.
///
/// One call decides all quotas of a request, because a store that is asked for one key at a
/// time cannot promise all-or-nothing. A store that answers at once (memory) returns
/// [`StoreFuture::ready`]; one that must wait (a network) returns [`StoreFuture::pending`] with a future
/// that owns what it needs.
///
/// `now` is the monotonic time of the caller's [`Clock`]. A store with a clock of its own, shared by
/// a fleet, may decide by that one: [`Usages::at`] is the instant of the decision, and
/// [`use_clock`](Store::use_clock) returns which clock it is from. A clock that goes back means that
/// no time has passed.
///
/// Anyone can write a store: [`State`](crate::algorithm::State) has the arithmetic, and the
/// contract suite (feature `test-util`) tells whether it keeps the promises.
#[expect(
    clippy::len_without_is_empty,
    reason = "whether it is empty is nothing to ask"
)]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Charges every check if all have room; otherwise charges nothing.
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages>;

    /// [`decide`](Store::decide) for a single check: how its counter stands, and the instant of
    /// the decision. Most requests have but one quota, and a store may know a shorter way for
    /// it; what is decided must be the same.
    fn decide_one(&self, check: &Check<'_>, now: Timestamp) -> StoreFuture<(Usage, Timestamp)> {
        let batch = match Batch::new(std::slice::from_ref(check)) {
            Ok(batch) => batch,
            Err(invalid) => {
                return StoreFuture::ready(Err(StoreError::refused(invalid.to_string())));
            }
        };
        self.decide(&batch, now).map(|verdict| only(&verdict?))
    }

    /// How the counters stand and what [`decide`](Store::decide) would say. Changes nothing.
    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages>;

    /// Charges every check, whether there is room or not: it has already happened.
    ///
    /// The usages are those after the charge; one that went over its limit is
    /// [`Denied`](crate::Outcome::Denied) and says when a request of no cost would be within
    /// it again.
    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages>;

    /// Takes back charges made at `charged_at` (the [`Usages::at`] of the decision), as far
    /// as they still count. Never below zero, never out of another window.
    ///
    /// Nobody may be there to wait for the answer: a [`Reservation`](crate::Reservation) that is
    /// dropped cannot. So be at work from the moment this is called, if you can.
    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()>;

    /// Forgets the counters of these checks.
    fn reset(&self, batch: &Batch<'_>) -> StoreFuture<()>;

    /// Forgets every counter of a subject.
    fn reset_subject(&self, subject: &Subject<'_>) -> StoreFuture<()>;

    /// Forgets everything.
    fn clear(&self) -> StoreFuture<()>;

    /// How many counters are kept, those included that have expired but not been swept.
    fn len(&self) -> StoreFuture<usize>;

    /// Drops every expired counter now, and says how many there were. A store that expires
    /// them by itself has nothing to do.
    fn sweep(&self, now: Timestamp) -> StoreFuture<usize> {
        let _ = now;
        StoreFuture::ready(Ok(0))
    }

    /// The limits that were set at run time, as far as this process knows them; `None` if the
    /// store keeps none. A change elsewhere must be in it within a second.
    fn overrides(&self) -> Option<&Overrides> {
        None
    }

    /// Sets a limit at run time, for all who share the store.
    fn set_override(&self, new: Override) -> StoreFuture<()> {
        drop(new);
        StoreFuture::ready(Err(StoreError::refused("this store keeps no overrides")))
    }

    /// Removes the limits that were set for a subject under a rule, and says whether there were
    /// any.
    fn remove_override(&self, subject: &Subject<'_>, rule: &str) -> StoreFuture<bool> {
        let _ = (subject, rule);
        StoreFuture::ready(Ok(false))
    }

    /// Receives the clock whose `now` is passed to the other methods. Called once by each layer and
    /// each limiter that is built with this store.
    ///
    /// A store that decides at the `now` of its callers keeps the clock of the first call, and
    /// evaluates calendar windows at the wall-clock time ([`Clock::wall_offset`]). A store that
    /// ignores it counts days and months from midnight UTC by the wall clock at program start. A
    /// decorator forwards the call.
    fn use_clock(&self, clock: &Arc<dyn Clock>) -> TimeSource {
        let _ = clock;
        TimeSource::Caller
    }

    /// Whether it answers at present, as far as is known without asking. For those who watch.
    fn health(&self) -> StoreHealth {
        StoreHealth::Healthy
    }

    /// What it keeps in the memory of this process; `None` if that is nothing. For those who
    /// watch, once a second.
    fn memory_stats(&self) -> Option<MemoryStats> {
        None
    }
}

/// Clock of the instants in a store's answers ([`Usages::at`], [`Usage::reset_at`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeSource {
    /// The monotonic `now` that the caller passes. The caller converts it to wall-clock time where
    /// it is shown.
    #[default]
    Caller,
    /// A wall clock of the store's own, such as `TIME` of a Redis server.
    Store,
}

impl TimeSource {
    /// Returns the microseconds to add to instants of this source to get wall-clock time.
    #[inline]
    pub(crate) fn wall_offset(self, clock: &SharedClock) -> i64 {
        match self {
            Self::Caller => clock.wall_offset(),
            Self::Store => 0,
        }
    }
}

/// What a verdict says to a single check.
fn only(verdict: &Usages) -> Result<(Usage, Timestamp), StoreError> {
    let first = verdict.usages().first().copied();
    let usage = first.ok_or_else(|| StoreError::refused("the store answered no check"))?;
    Ok((usage, verdict.at()))
}

/// A store that is shared.
impl<S: Store + ?Sized> Store for Arc<S> {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        (**self).decide(batch, now)
    }

    fn decide_one(&self, check: &Check<'_>, now: Timestamp) -> StoreFuture<(Usage, Timestamp)> {
        (**self).decide_one(check, now)
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        (**self).peek(batch, now)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        (**self).record(batch, now)
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        (**self).refund(batch, charged_at, now)
    }

    fn reset(&self, batch: &Batch<'_>) -> StoreFuture<()> {
        (**self).reset(batch)
    }

    fn reset_subject(&self, subject: &Subject<'_>) -> StoreFuture<()> {
        (**self).reset_subject(subject)
    }

    fn clear(&self) -> StoreFuture<()> {
        (**self).clear()
    }

    fn len(&self) -> StoreFuture<usize> {
        (**self).len()
    }

    fn sweep(&self, now: Timestamp) -> StoreFuture<usize> {
        (**self).sweep(now)
    }

    fn overrides(&self) -> Option<&Overrides> {
        (**self).overrides()
    }

    fn set_override(&self, new: Override) -> StoreFuture<()> {
        (**self).set_override(new)
    }

    fn remove_override(&self, subject: &Subject<'_>, rule: &str) -> StoreFuture<bool> {
        (**self).remove_override(subject, rule)
    }

    fn use_clock(&self, clock: &Arc<dyn Clock>) -> TimeSource {
        (**self).use_clock(clock)
    }

    fn health(&self) -> StoreHealth {
        (**self).health()
    }

    fn memory_stats(&self) -> Option<MemoryStats> {
        (**self).memory_stats()
    }
}
