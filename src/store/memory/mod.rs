//! Counters in this process: sharded, bounded, swept as it goes.

mod bucket;
mod cell;
mod decide;
mod heap;
mod locked;
mod room;
mod several;
mod table;
mod weigh;

use std::fmt;
use std::sync::Arc;
use std::thread;

use self::locked::{Locked, Tables as _};
use self::table::{Common, Table};
use self::weigh::Mode;
use super::epoch::Epoch;
use super::fingerprint::{Fingerprint, Secret};
use super::wall::WallTime;
use super::{
    MemoryStats, Override, OverrideStore, Overrides, Store, StoreAdmin, StoreFuture, TimeSource,
};
use crate::batch::{Batch, MAX_CHECKS};
use crate::clock::{Clock, Timestamp};
use crate::error::Invalid;
use crate::key::Subject;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use crate::usage::Usages;

/// Counters in this process. The default store.
///
/// - **Bounded.** At most [`capacity`](MemoryStoreBuilder::capacity) counters (one quota of
///   one subject each), in 40 to 50 bytes apiece. A sliding log takes about 100 more, and 16
///   for each request in its window; sliding buckets take about 60 more, and 8 for each
///   bucket. So the bound is one of counters: of logs and buckets it is as many times their
///   size. Names are not kept, only 128-bit fingerprints under a random key.
/// - **No background task.** Every call sweeps a little; what has expired goes first when
///   room is needed, and the tables shrink again after a flood.
/// - **A flood frees nobody.** When it is full, a newcomer takes the place of an expired
///   counter, else of the one that forgives least: the least used, and among equals the
///   latest. Whoever had used that little starts afresh: that is the one case in which more
///   is admitted than a quota says, and [`evicted`](MemoryStore::evicted) counts it. A
///   counter with nothing left is never dropped before it is whole again.
/// - **Full of blocked counters**, there is no place to give. Newcomers then share one
///   counter per quota, so that together they get what one of them would: nothing leaks, and
///   nobody who is blocked is freed. [`overflowed`](MemoryStore::overflowed) counts them.
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
    secret: Secret,
    /// Where newcomers are counted when there is no place for them. Always the first, unless
    /// two of one batch would meet on the same counter there.
    overflow: [Fingerprint; MAX_CHECKS],
    capacity: usize,
    common: Arc<Common>,
    keys: AtomicUsize,
    /// The shard whose turn it is to be swept by whoever comes along.
    next_to_sweep: AtomicUsize,
    evicted: AtomicU64,
    overflowed: AtomicU64,
    overrides: Overrides,
    epoch: Epoch,
}

/// On a cache line of its own, so that neighbours do not disturb each other.
#[repr(align(64))]
struct Shard(Mutex<Table>);

impl MemoryStore {
    /// A store for up to a million counters.
    #[must_use]
    pub fn new() -> Self {
        MemoryStoreBuilder::default().create()
    }

    /// A store with settings.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder::default()
    }

    /// The most counters it keeps.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many counters were dropped before they had expired, to make room for others.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// How many times a counter had no place and its check fell back to a shared one, because
    /// every counter around that could have made room was blocked.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    #[inline]
    fn shard_of(&self, print: Fingerprint) -> usize {
        // The low bits; the bucket within the shard follows from the high ones.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "masked to the number of shards"
        )]
        let shard = print.place as usize & (self.shards.len() - 1);
        shard
    }

    fn each_shard(&self, mut act: impl FnMut(&mut Table) -> usize) -> usize {
        self.shards
            .iter()
            .map(|shard| {
                let gone = act(&mut lock(&shard.0));
                self.keys.fetch_sub(gone, Ordering::Relaxed);
                gone
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
        StoreFuture::ready(Ok(self.charge(batch, last_of(now), Mode::IfRoom)))
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        StoreFuture::ready(Ok(self.look(batch, last_of(now))))
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        StoreFuture::ready(Ok(self.charge(batch, last_of(now), Mode::Always)))
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.discharge(batch, charged_at, last_of(now));
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
        let prints = self.secret.fingerprints(batch.checks());
        let checks = batch.checks();
        let mut locked = Locked::none();
        locked.lock(self, &prints[..checks.len()]);
        let mut gone = 0;
        for (index, (check, print)) in checks.iter().zip(prints).enumerate() {
            let table = locked.table(index);
            if let Some(place) = table.find(print.tag(check.counter())) {
                table.remove(place);
                gone += 1;
            }
        }
        self.keys.fetch_sub(gone, Ordering::Relaxed);
        StoreFuture::ready(Ok(()))
    }

    fn reset_subject(&self, subject: &Subject<'_>) -> StoreFuture<()> {
        let _change = self.epoch.begin_change();
        let print = self.secret.fingerprint(subject);
        let gone = lock(&self.shards[self.shard_of(print)].0).remove_subject(print.place);
        self.keys.fetch_sub(gone, Ordering::Relaxed);
        StoreFuture::ready(Ok(()))
    }

    fn clear(&self) -> StoreFuture<()> {
        let _change = self.epoch.begin_change();
        self.each_shard(|table| {
            let gone = table.len();
            table.clear();
            gone
        });
        StoreFuture::ready(Ok(()))
    }

    fn len(&self) -> StoreFuture<usize> {
        StoreFuture::ready(Ok(self.keys.load(Ordering::Relaxed)))
    }

    fn sweep(&self, now: Timestamp) -> StoreFuture<usize> {
        let now = last_of(now);
        let gone = self.each_shard(|table| {
            table.latest = table.latest.max(now.as_micros());
            table.sweep_all()
        });
        StoreFuture::ready(Ok(gone))
    }

    fn epoch(&self) -> u64 {
        self.epoch.current().wrapping_add(self.overrides.version())
    }

    fn memory_stats(&self) -> Option<MemoryStats> {
        let counters = self.keys.load(Ordering::Relaxed) as u64;
        Some(MemoryStats::new(counters, self.evicted()))
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

/// An end that was told may lie past the last instant, and somebody may ask then. Cells have no room
/// for what comes after that.
#[inline]
fn last_of(now: Timestamp) -> Timestamp {
    now.min(Timestamp::MAX)
}

/// Settings of a [`MemoryStore`].
#[derive(Clone, Debug)]
#[must_use]
pub struct MemoryStoreBuilder {
    capacity: usize,
    shards: Option<usize>,
    keys: Option<(u64, u64)>,
}

impl Default for MemoryStoreBuilder {
    fn default() -> Self {
        Self {
            capacity: 1_000_000,
            shards: None,
            keys: None,
        }
    }
}

impl MemoryStoreBuilder {
    const MAX_CAPACITY: usize = u32::MAX as usize;

    /// The most counters it keeps; a million by default.
    ///
    /// A counter is one quota of one subject: ten thousand users under three quotas each make
    /// thirty thousand.
    pub fn capacity(mut self, counters: usize) -> Self {
        self.capacity = counters;
        self
    }

    /// Places that are the same in every run, for model checks and measurements. Whoever
    /// knows the keys can choose where a counter lands: not for production.
    #[doc(hidden)]
    pub fn insecure_fixed_layout(mut self, shards: usize, keys: (u64, u64)) -> Self {
        self.shards = Some(shards.next_power_of_two());
        self.keys = Some(keys);
        self
    }

    /// Checks the settings and builds the store. Memory is taken as it is needed.
    pub fn build(self) -> Result<MemoryStore, Invalid> {
        if !(1..=Self::MAX_CAPACITY).contains(&self.capacity) {
            return Err(Invalid::new(
                "store capacity",
                self.capacity,
                format!("1 to {} counters", Self::MAX_CAPACITY),
            ));
        }
        Ok(self.create())
    }

    fn create(self) -> MemoryStore {
        let shards = self.shards.unwrap_or_else(|| shards_for(self.capacity));
        let secret = self
            .keys
            .map_or_else(Secret::random, |(a, b)| Secret::from_keys(a, b));
        let mean = self.capacity.div_ceil(shards);
        // Keys fall on shards by chance: eight standard deviations, and a little more.
        let slack = if shards == 1 {
            0
        } else {
            mean / 16 + 8 * mean.isqrt()
        };
        let common = Arc::new(Common {
            limit: mean + slack,
            wall: WallTime::default(),
        });
        let shard = || Shard(Mutex::new(Table::new(Arc::clone(&common))));
        MemoryStore {
            shards: (0..shards).map(|_| shard()).collect(),
            overflow: std::array::from_fn(|number| secret.reserved(number as u64)),
            secret,
            capacity: self.capacity,
            common,
            keys: AtomicUsize::new(0),
            next_to_sweep: AtomicUsize::new(0),
            evicted: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
            overrides: Overrides::new(),
            epoch: Epoch::default(),
        }
    }
}

/// Enough shards that threads seldom meet and that growing one is quick; few enough that a
/// small store stays small.
fn shards_for(capacity: usize) -> usize {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let wanted = (threads * 16).max(capacity / 16_384).min(capacity / 512);
    wanted.clamp(1, 4_096).next_power_of_two()
}
