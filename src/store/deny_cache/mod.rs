//! Denials that are known already are not asked about again.

mod denial;
mod table;
mod versions;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::table::DenialTable;
use self::versions::VersionSlot;
use super::{OverrideStore, Store, StoreAdmin, StoreFuture, StoreHealth, TimeSource, epoch_of};
use crate::batch::Batch;
use crate::clock::{Clock, Timestamp};
use crate::error::Invalid;
use crate::usage::Usages;

/// Remembers denials, so that those who hammer while they are blocked cost the store nothing.
///
/// ```
/// use tollgate::store::DenyCache;
/// use tollgate::{Limiter, ManualClock, MemoryStore};
///
/// // Worth it around a store that is far away; table is as quick by itself.
/// let store = DenyCache::new(MemoryStore::new());
/// let limiter = Limiter::builder()
///     .quota("1/minute")
///     .store(store)
///     .clock(ManualClock::new())
///     .build()?;
/// assert!(limiter.check("alice").wait()?.is_allowed());
/// for _ in 0..1_000 {
///     // CacheMiss about once, and answered from table from then on.
///     assert!(limiter.check("alice").wait()?.is_denied());
/// }
/// # Ok::<(), tollgate::Error>(())
/// ```
///
/// # What is remembered
///
/// The store's whole answer to a request that it has denied: the same counters, of the same
/// subjects, at the same cost, under the same limits. It is given again until it can change:
/// until one of the quotas that denied it has room, or somebody
///
/// - gives back, records or resets what one of them counts,
/// - sets or removes an [`Override`], or versions the limits by a reload or another tier,
/// - is admitted at a smaller cost,
///
/// and not for longer than [a second](DenyCacheBuilder::max_ttl). What is asked differently is
/// asked of the store: a smaller cost may fit, and of a larger one the wait is not known.
///
/// # What is exact
///
/// Whatever happens through this store, what it denies is what the store would deny, with the
/// same instant to come back at. Time is what has passed here since the answer, so the clocks of
/// store and process need not agree.
///
/// What happens elsewhere may be noticed late, by no longer than a second: if *another process*
/// gives back or resets what a remembered denial is about, those it concerns are denied for up
/// to that much longer. What another process charges makes the wait that is told too short by as
/// much as it would be if it had charged it a moment after the answer.
///
/// Two figures may be old without being wrong about the outcome. A counter that is further over
/// than the request needs (it costs more than one, or was recorded past the limit) fades while it
/// denies: it is looked at again every 10 milliseconds, and [`Usage::used`] is up to that old.
/// And what a denial says of quotas that *had* room is as old as the denial.
///
/// # What it costs
///
/// At most as many denials are kept as [there is room](DenyCacheBuilder::capacity) for, in some
/// 200 bytes each; what is forgotten is asked about again.
pub struct DenyCache {
    store: Arc<dyn Store>,
    table: Arc<DenialTable>,
}

impl DenyCache {
    /// Remembers the denials of this store.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self::builder(store).create()
    }

    /// The same, with settings.
    pub fn builder(store: impl Store) -> DenyCacheBuilder {
        DenyCacheBuilder {
            store: Arc::new(store),
            capacity: 65_536,
            max_ttl: Duration::from_secs(1),
        }
    }

    /// How many requests were answered without asking the store.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.table.answered()
    }

    /// Does what may make a remembered denial untrue.
    fn change<T: Unpin + Send + 'static>(
        &self,
        slots: impl IntoIterator<Item = VersionSlot>,
        ask: impl FnOnce(&dyn Store) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        // Before it is asked, and after: a denial that is heard in between may be of either time.
        let change = DenialTable::changing(&self.table, slots);
        match ask(&*self.store).try_ready() {
            Ok(done) => {
                drop(change);
                StoreFuture::ready(done)
            }
            Err(pending) => StoreFuture::pending(async move {
                let done = pending.await;
                drop(change);
                done
            }),
        }
    }
}

impl Store for DenyCache {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let prints = self.table.fingerprints(batch);
        let print = self.table.request(batch.checks(), &prints);
        let epoch = epoch_of(&*self.store);
        if let Some(denial) = self.table.recall(print, epoch, now) {
            return StoreFuture::ready(Ok(denial.verdict(batch, now)));
        }
        let asked = self
            .table
            .asked(batch.checks(), &prints, print, (epoch, now));
        let table = Arc::clone(&self.table);
        self.store.decide(batch, now).map(move |answer| {
            let verdict = answer?;
            table.heard(&asked, &verdict);
            Ok(verdict)
        })
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.store.peek(batch, now)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let slots = self.table.slots(batch);
        self.change(slots, |store| store.record(batch, now))
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        let slots = self.table.slots(batch);
        self.change(slots, |store| store.refund(batch, charged_at, now))
    }

    fn health(&self) -> StoreHealth {
        self.store.health()
    }

    fn use_clock(&self, clock: &Arc<dyn Clock>) -> TimeSource {
        self.store.use_clock(clock)
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.store.admin()
    }

    #[inline]
    fn overrides(&self) -> Option<&dyn OverrideStore> {
        self.store.overrides()
    }
}

impl fmt::Debug for DenyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DenyCache")
            .field("store", &self.store)
            .field("remembered", &self.table.len())
            .field("answered", &self.answered())
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

    /// How many denials are kept at most; 65,536 by default.
    pub fn capacity(mut self, denials: usize) -> Self {
        self.capacity = denials;
        self
    }

    /// For how long a denial is remembered at most; a second by default, which is also how soon
    /// a fleet hears of overrides. It is how late this process may be to notice that another one
    /// has given something back.
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.max_ttl = max_ttl;
        self
    }

    /// Checks the settings and builds the store.
    pub fn build(self) -> Result<DenyCache, Invalid> {
        if !(1..=Self::MAX_CAPACITY).contains(&self.capacity) {
            let expected = format!("1 to {} denials", Self::MAX_CAPACITY);
            return Err(Invalid::new("deny cache capacity", self.capacity, expected));
        }
        if self.max_ttl.is_zero() || self.max_ttl > Self::LONGEST {
            let found = format!("{:?}", self.max_ttl);
            return Err(Invalid::new("deny cache time", found, "up to 60 seconds"));
        }
        Ok(self.create())
    }

    fn create(self) -> DenyCache {
        DenyCache {
            store: self.store,
            table: Arc::new(DenialTable::new(self.capacity, self.max_ttl)),
        }
    }
}
