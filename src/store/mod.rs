//! Where counters live: the [`Store`] trait and the stores that come with the crate.

mod admin;
mod breaker;
mod by_fingerprint;
mod chance;
mod circuit_breaker;
#[cfg(feature = "test-util")]
pub mod contract;
mod deny_cache;
mod epoch;

mod future;
mod health;
mod hook;
mod lease;
mod memory;
mod memory_stats;
mod overrides;
#[cfg(feature = "redis")]
mod redis;
mod shutdown;
mod siphash;
mod subject_hash;
mod wall;

use std::fmt;
use std::sync::Arc;

use crate::batch::Batch;
use crate::clock::{Clock, Timestamp};
use crate::error::StoreError;
use crate::usage::Usages;

pub use self::admin::{OverrideStore, StoreAdmin};
pub use self::circuit_breaker::{CircuitBreaker, CircuitBreakerBuilder};
pub use self::deny_cache::{DenyCache, DenyCacheBuilder};
pub use self::future::StoreFuture;
pub(crate) use self::future::block_on;
pub use self::health::StoreHealth;
pub use self::lease::{Leased, LeasedBuilder};
pub use self::memory::{MemoryStore, MemoryStoreBuilder};
pub use self::memory_stats::MemoryStats;
pub(crate) use self::overrides::AppliedOverride;
pub use self::overrides::{Override, Overrides};
#[cfg(feature = "redis")]
pub use self::redis::{RedisStore, RedisStoreBuilder};
pub(crate) use self::shutdown::shutdown_within;

/// Keeps counters and decides batches against them.
///
/// One call decides all quotas of a request, because all-or-nothing cannot be promised by a store that
/// sees one key at a time. A store that answers synchronously (memory) returns [`StoreFuture::ready`];
/// one that waits for a network returns [`StoreFuture::pending`] with a future that owns what it needs.
///
/// `now` is the monotonic time of the caller's [`Clock`]. A store with a clock of its own, shared by
/// several processes, may decide by that one: [`Usages::at`] is the instant of the decision, and
/// [`use_clock`](Store::use_clock) returns which clock it is from. If `now` goes back, no time has
/// passed.
///
/// # Groups
///
/// A batch has [groups](crate::Group). Each is charged whole or not at all, and all are decided at one
/// instant. The group [`Live`](crate::Group::Live) decides about the request. A
/// [`DryRun`](crate::Group::DryRun) group is charged only if `Live` is admitted and the group itself
/// has room.
///
/// # Implement a store
///
/// The four methods without a default are enough: [`State`](crate::algorithm::State) has the
/// arithmetic, and the contract suite (feature `test-util`) tests the promises. Stores that receive a
/// [`Batch`] need not validate it. A decorator implements [`inner`](Store::inner) as well: the methods
/// with a default forward to it.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Charges each group of the batch whose checks all have room, as described under
    /// [groups](Store#groups).
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages>;

    /// Returns what [`decide`](Store::decide) would return. Writes nothing.
    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages>;

    /// Charges every check of every group, whether there is room or not.
    ///
    /// The usages are those after the charge. A counter over its limit is
    /// [`Denied`](crate::Outcome::Denied), with the instant at which a request of cost 0 would be
    /// allowed.
    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages>;

    /// Takes back charges made at `charged_at` (the [`Usages::at`] of the decision), as far as they
    /// still count. A counter never goes below zero, and another window is never credited.
    ///
    /// The caller may drop the future without polling it, as a dropped
    /// [`Reservation`](crate::Reservation) does. Start the work in this call if possible.
    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()>;

    /// Receives the clock whose `now` is passed to the other methods. Called once by each layer and
    /// each limiter that is built with this store.
    ///
    /// A store that decides at the `now` of its callers keeps the clock of the first call, and
    /// evaluates calendar windows at the wall-clock time ([`Clock::wall_offset`]). A store that
    /// ignores it counts days and months from midnight UTC by the wall clock at program start.
    fn use_clock(&self, clock: &Arc<dyn Clock>) -> TimeSource {
        self.inner()
            .map_or(TimeSource::Caller, |inner| inner.use_clock(clock))
    }

    /// Returns the health of the store, as far as it is known without a call.
    fn health(&self) -> StoreHealth {
        match self.inner() {
            Some(inner) => inner.health(),
            None => StoreHealth::Healthy,
        }
    }

    /// Returns the operations for operators; `None` if the store has none.
    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.inner()?.admin()
    }

    /// Returns the overrides; `None` if the store keeps none.
    fn overrides(&self) -> Option<&dyn OverrideStore> {
        self.inner()?.overrides()
    }

    /// Prepares the end of the process: refunds what was charged in advance, and waits for the replies
    /// to refunds that were sent. [`RateLimitLayer::shutdown`](crate::RateLimitLayer::shutdown) and
    /// [`Limiter::shutdown`](crate::Limiter::shutdown) call it with a deadline.
    ///
    /// Returns an error if a refund of what was charged in advance failed. Errors of refunds that were
    /// sent before belong to their own futures.
    ///
    /// The store can still be used. From the call on, nothing is charged in advance. A store that
    /// charges nothing in advance and refunds at once needs no implementation.
    fn shutdown(&self) -> StoreFuture<()> {
        match self.inner() {
            Some(inner) => inner.shutdown(),
            None => StoreFuture::ready(Ok(())),
        }
    }

    /// Returns the store that a decorator wraps; `None` for any other store. The methods above forward
    /// to it by default.
    fn inner(&self) -> Option<&dyn Store> {
        None
    }
}

/// Clock of the instants in a store's answers ([`Usages::at`], [`Usage::reset_at`](crate::Usage::reset_at)).
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
    pub(crate) fn wall_offset(self, clock: &dyn Clock) -> i64 {
        match self {
            Self::Caller => clock.wall_offset(),
            Self::Store => 0,
        }
    }
}

/// Checks that a store answered as many checks as it received.
#[inline]
pub(crate) fn expect_len(usages: &Usages, checks: usize) -> Result<(), StoreError> {
    let answered = usages.usages().len();
    if answered == checks {
        return Ok(());
    }
    Err(StoreError::permanent(format!(
        "invalid answer of the store: {answered} usages, expected {checks}"
    )))
}

/// Returns the override store if its table has entries or is still loading. While it loads, the limits of
/// a caller are unknown.
#[inline]
pub(crate) fn overrides_in_use(store: &dyn Store) -> Option<&dyn OverrideStore> {
    let overrides = store.overrides()?;
    (!overrides.table().is_empty()).then_some(overrides)
}

/// Error of a store that keeps no overrides.
pub(crate) fn no_overrides() -> StoreError {
    StoreError::permanent("this store keeps no overrides")
}

/// Error of a store without [`StoreAdmin`].
pub(crate) fn no_admin() -> StoreError {
    StoreError::permanent("this store has no operations for operators")
}

/// Returns the epoch of a store; a constant if it has none. See [`StoreAdmin::epoch`].
#[inline]
fn epoch_of(store: &dyn Store) -> u64 {
    store.admin().map_or(0, StoreAdmin::epoch)
}

/// Shared store.
impl<S: Store + ?Sized> Store for Arc<S> {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        (**self).decide(batch, now)
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

    fn use_clock(&self, clock: &Arc<dyn Clock>) -> TimeSource {
        (**self).use_clock(clock)
    }

    fn health(&self) -> StoreHealth {
        (**self).health()
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        (**self).admin()
    }

    fn overrides(&self) -> Option<&dyn OverrideStore> {
        (**self).overrides()
    }

    fn shutdown(&self) -> StoreFuture<()> {
        (**self).shutdown()
    }

    fn inner(&self) -> Option<&dyn Store> {
        (**self).inner()
    }
}
