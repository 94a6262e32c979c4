//! [`DenyCache`]: decorator that answers repeated denials without a store call.

mod denial;
mod table;
mod versions;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::table::DenialTable;
pub(super) use self::table::{CacheMiss, InvalidationGuard};
use super::hook::CompletionHook;
use super::{Store, StoreFuture, epoch_of};
use crate::batch::Batch;
use crate::clock::Timestamp;
use crate::error::{ValidationError, ValidationErrors};
use crate::usage::Usages;

/// Decorator that caches denials, so that a blocked caller that keeps sending causes no store calls.
///
/// ```
/// use tollgate::store::DenyCache;
/// use tollgate::{Limiter, ManualClock, MemoryStore};
///
/// // For remote stores. A memory store decides as fast without it.
/// let store = DenyCache::new(MemoryStore::new());
/// let limiter = Limiter::builder()
///     .quota("1/minute")
///     .store(store)
///     .clock(ManualClock::new())
///     .build()?;
/// assert!(limiter.check("alice").wait()?.is_allowed());
/// for _ in 0..1_000 {
///     // The first denial is a store call, the others come from the cache.
///     assert!(limiter.check("alice").wait()?.is_denied());
/// }
/// # Ok::<(), tollgate::Error>(())
/// ```
///
/// # What is cached
///
/// The usages of a request whose [live group](crate::Group::Live) was denied. The key is the whole
/// request: subjects, counters, groups, costs and limits. The denial is returned until one of
/// these happens:
///
/// - a quota that has denied it has room again,
/// - a `record`, `refund`, reset, or a charge of another request, of a subject that was denied,
/// - an override is set or removed,
/// - [one second](DenyCacheBuilder::max_ttl) has passed.
///
/// A request with another cost is another request: a smaller cost may be allowed, and a larger one
/// may have to wait longer. An allowed request with a denied dry run is not cached.
///
/// # Accuracy
///
/// For operations that go through this process, the cache denies exactly what the store would
/// deny, with the same reset. Age is measured by the clock of this process, so the clocks of store
/// and process may differ.
///
/// Changes by other processes are noticed after at most one second: a refund or reset there leaves
/// callers denied for that long. A charge there makes the reset in a cached denial too early.
///
/// Two numbers can be out of date although the outcome is right:
///
/// - [`Usage::used`](crate::Usage::used) of a counter that is further over its limit than the
///   request needs, by up to 10 ms.
/// - The usages of quotas that had room, and of dry runs, by the age of the denial.
///
/// # Cost
///
/// About 200 bytes for each cached denial, at most [`capacity`](DenyCacheBuilder::capacity) of them.
/// A call that is pending allocates nothing more than in the store.
pub struct DenyCache {
    store: Arc<dyn Store>,
    table: Arc<DenialTable>,
}

impl DenyCache {
    /// Creates a decorator with the default settings.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self::builder(store).create()
    }

    /// Returns a builder with the default settings.
    pub fn builder(store: impl Store) -> DenyCacheBuilder {
        DenyCacheBuilder {
            store: Arc::new(store),
            capacity: 65_536,
            max_ttl: Duration::from_secs(1),
        }
    }

    /// Returns the number of requests that were denied from the cache.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.table.hits()
    }
}

impl Store for DenyCache {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let lookup = self.table.lookup(batch, epoch_of(&*self.store), now);
        if let Some(denial) = self.table.get(&lookup) {
            return StoreFuture::ready(Ok(denial.to_usages(batch, now)));
        }
        let miss = CacheMiss::new(&self.table, lookup, batch);
        self.store
            .decide(batch, now)
            .with_hook(CompletionHook::DenyCache(miss))
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.store.peek(batch, now)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let guard = self.table.invalidate(batch);
        self.store
            .record(batch, now)
            .with_hook(CompletionHook::Invalidate(guard))
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        let guard = self.table.invalidate(batch);
        self.store
            .refund(batch, charged_at, now)
            .with_hook(CompletionHook::Invalidate(guard))
    }

    #[inline]
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.store)
    }
}

impl fmt::Debug for DenyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DenyCache")
            .field("store", &self.store)
            .field("denials", &self.table.len())
            .field("hits", &self.hits())
            .finish_non_exhaustive()
    }
}

/// Settings of a [`DenyCache`].
#[derive(Debug)]
#[must_use]
pub struct DenyCacheBuilder {
    store: Arc<dyn Store>,
    capacity: usize,
    max_ttl: Duration,
}

impl DenyCacheBuilder {
    const MAX_CAPACITY: usize = u32::MAX as usize;
    const LONGEST: Duration = Duration::from_mins(1);

    /// Sets how many denials are cached at most: at least 1. Default: 65,536.
    pub fn capacity(mut self, denials: usize) -> Self {
        self.capacity = denials;
        self
    }

    /// Sets how long a denial is cached at most: up to 60 seconds. Default: 1 second. A refund or
    /// reset by another process is noticed after at most this time.
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.max_ttl = max_ttl;
        self
    }

    /// Validates the settings and creates the decorator.
    ///
    /// # Errors
    ///
    /// All wrong settings, each with its path: `capacity`, `max_ttl`.
    pub fn build(self) -> Result<DenyCache, ValidationErrors> {
        let mut errors = ValidationErrors::default();
        if !(1..=Self::MAX_CAPACITY).contains(&self.capacity) {
            let expected = format!("1 to {} denials", Self::MAX_CAPACITY);
            let error = ValidationError::new("deny cache capacity", self.capacity, expected);
            errors.push(error.at("capacity"));
        }
        if self.max_ttl.is_zero() || self.max_ttl > Self::LONGEST {
            let found = format!("{:?}", self.max_ttl);
            let error = ValidationError::new("deny cache max_ttl", found, "up to 60 seconds");
            errors.push(error.at("max_ttl"));
        }
        Ok(errors.or(self)?.create())
    }

    fn create(self) -> DenyCache {
        DenyCache {
            store: self.store,
            table: Arc::new(DenialTable::new(self.capacity, self.max_ttl)),
        }
    }
}
