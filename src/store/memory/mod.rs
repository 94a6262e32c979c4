//! Store in the memory of this process: sharded, bounded, swept by its own requests.

mod bucket;
mod builder;
mod cell;
mod decide;
mod evaluate;
mod evict;
mod heap;
mod room;
mod shards;
mod sweep;
mod table;

use std::fmt;
use std::sync::Arc;

pub use self::builder::MemoryStoreBuilder;
use self::evaluate::Mode;
use self::shards::{LockedShards, Shard};
use self::table::{CellTable, Common};
use super::epoch::Epoch;
use super::subject_hash::{Fingerprint, SubjectHasher};
use super::{
    MemoryStats, Override, OverrideStore, Overrides, Store, StoreAdmin, StoreFuture, TimeSource,
};
use crate::batch::{Batch, MAX_BATCH};
use crate::clock::{Clock, Timestamp};
use crate::key::Subject;
use crate::sync::{AtomicU64, AtomicUsize, Ordering, lock};
use crate::usage::Usages;

/// Store in the memory of this process. The default store.
///
/// # Memory
///
/// At most [`capacity`](MemoryStoreBuilder::capacity) counters (one quota of one subject each), of 40
/// to 50 bytes. A sliding log takes about 120 bytes more, and 16 for each request in its window; sliding
/// buckets take about 60 more, and 8 for each bucket. Subjects are stored as 128-bit fingerprints with a
/// random key.
///
/// No background task is needed: each call sweeps a few cells, and tables shrink after a flood.
///
/// # What a full store keeps
///
/// A new counter displaces an expired one, else an unprotected one. A counter is protected from
///
/// - each denial, also one because of the cost of the request;
/// - a charge after which it is used up;
/// - a charge after which it was used at least twice as much as that charge, and either eight times as
///   much or 1 % of its limit
///
/// until it expires or nothing is used any more. A protected counter is never displaced before it
/// expires. Of the unprotected counters nearby, the latest is displaced, so a flood of new keys displaces
/// its own counters first. A displaced counter starts again from zero: this is the one case in which more
/// is admitted than a quota allows. [`evicted`](MemoryStore::evicted) counts these.
///
/// If all counters nearby are protected, a new one is counted in the **overflow counter** of its quota
/// and shard, together with all others there. [`overflowed`](MemoryStore::overflowed) counts these
/// checks. Overflow counters exist beyond the capacity and admit at most one additional limit per quota
/// and shard. (A batch with the same quota for several subjects may use as many of them.)
///
/// To force other callers onto overflow counters, an attacker has to protect every counter, from as many
/// different keys. With requests of equal cost that takes, for each counter of capacity, 2 requests if
/// the limit is at most 200, 8 if it is more than 700, and `limit / 100` between. Requests of different
/// costs take at least 2. One request is enough if it can use up a limit alone, for instance a limit of
/// 1.
///
/// ```
/// use tollgate::{Limiter, MemoryStore};
///
/// let store = MemoryStore::builder().capacity(50_000).build()?;
/// let limiter = Limiter::builder().quota("100/minute").store(store).build()?;
/// assert!(limiter.check("alice").wait()?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MemoryStore {
    shards: Box<[Shard]>,
    hasher: SubjectHasher,
    /// Its place, in the bits that do not select the shard, is that of all overflow counters.
    overflow: Fingerprint,
    capacity: usize,
    common: Arc<Common>,
    /// Cells in all tables, and those that a batch is about to insert.
    keys: AtomicUsize,
    /// Shard that the next due sweep includes.
    next_to_sweep: AtomicUsize,
    evicted: AtomicU64,
    overflowed: AtomicU64,
    overrides: Overrides,
    epoch: Epoch,
}

impl MemoryStore {
    /// Returns a store for up to 1,000,000 counters.
    #[must_use]
    pub fn new() -> Self {
        MemoryStoreBuilder::default().create()
    }

    /// Returns a builder with the default settings.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder::default()
    }

    /// Returns the maximum number of counters.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns how many counters were displaced before they had expired.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Returns how many checks were counted in an overflow counter, because all counters nearby were
    /// protected.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    #[inline]
    fn shard_of(&self, print: Fingerprint) -> usize {
        // The low bits. The bucket within the shard follows from the high bits.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "masked to the number of shards"
        )]
        let shard = print.place as usize & (self.shards.len() - 1);
        shard
    }

    /// Calls `drop_cells` with each table, one lock at a time. It returns how many cells it has dropped;
    /// the sum is returned.
    fn each_shard(&self, mut drop_cells: impl FnMut(&mut CellTable) -> usize) -> usize {
        self.shards
            .iter()
            .map(|shard| {
                let dropped = drop_cells(&mut lock(&shard.0));
                self.subtract_keys(dropped);
                dropped
            })
            .sum()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("keys", &self.keys.load(Ordering::Relaxed))
            .field("capacity", &self.capacity)
            .field("evicted", &self.evicted())
            .field("overflowed", &self.overflowed())
            .finish_non_exhaustive()
    }
}

impl Store for MemoryStore {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.apply(batch, now, Mode::Decide)
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.apply(batch, now, Mode::Peek)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.apply(batch, now, Mode::Record)
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.refund_all(batch, charged_at, now);
        StoreFuture::ready(Ok(()))
    }

    fn use_clock(&self, clock: &Arc<dyn Clock>) -> TimeSource {
        self.common.wall.set(clock);
        TimeSource::Caller
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        Some(self)
    }

    #[inline]
    fn overrides(&self) -> Option<&dyn OverrideStore> {
        Some(self)
    }
}

impl StoreAdmin for MemoryStore {
    fn reset(&self, batch: &Batch<'_>) -> StoreFuture<()> {
        let _change = self.epoch.begin_change();
        let checks = batch.checks();
        let prints = self.hasher.fingerprints::<MAX_BATCH>(checks);
        let mut locked = LockedShards::<MAX_BATCH>::lock(self, &prints[..checks.len()]);
        for (index, (check, print)) in checks.iter().zip(prints).enumerate() {
            let table = locked.table(index);
            if let Some(cell) = table.find(print.tag(check.counter())) {
                table.remove(cell);
                self.subtract_keys(1);
            }
        }
        StoreFuture::ready(Ok(()))
    }

    fn reset_subject(&self, subject: &Subject<'_>) -> StoreFuture<()> {
        let _change = self.epoch.begin_change();
        let print = self.hasher.fingerprint(subject);
        let removed = lock(&self.shards[self.shard_of(print)].0).remove_subject(print.place);
        self.subtract_keys(removed);
        StoreFuture::ready(Ok(()))
    }

    fn clear(&self) -> StoreFuture<()> {
        let _change = self.epoch.begin_change();
        self.each_shard(|table| {
            let removed = table.len();
            table.clear();
            removed
        });
        StoreFuture::ready(Ok(()))
    }

    fn len(&self) -> StoreFuture<usize> {
        StoreFuture::ready(Ok(self.keys.load(Ordering::Relaxed)))
    }

    fn sweep(&self, now: Timestamp) -> StoreFuture<usize> {
        let now = now.min(Timestamp::MAX).as_micros();
        let dropped = self.each_shard(|table| {
            table.latest = table.latest.max(now);
            table.sweep_all()
        });
        StoreFuture::ready(Ok(dropped))
    }

    fn epoch(&self) -> u64 {
        self.epoch.current().wrapping_add(self.overrides.version())
    }

    fn memory_stats(&self) -> Option<MemoryStats> {
        let counters = self.keys.load(Ordering::Relaxed) as u64;
        let stats = MemoryStats::new(counters, self.evicted());
        Some(stats.with_overflowed(self.overflowed()))
    }
}

impl OverrideStore for MemoryStore {
    #[inline]
    fn table(&self) -> &Overrides {
        &self.overrides
    }

    fn set(&self, new: Override) -> StoreFuture<()> {
        self.overrides.set(new);
        StoreFuture::ready(Ok(()))
    }

    fn remove(&self, subject: &Subject<'_>, rule: &str) -> StoreFuture<bool> {
        StoreFuture::ready(Ok(self.overrides.remove(subject, rule)))
    }
}
