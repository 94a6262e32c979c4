//! A custom store: counters in a `HashMap` behind one lock, with the arithmetic of the crate.
//!
//! ```sh
//! cargo run --example custom_store
//! ```
//!
//! The algorithms are in the crate, so a store for a database or a cache needs no more than this.
//! `tests/it/examples/custom_store.rs` runs the contract suite of the feature `test-util` on it. Do the
//! same with yours.

#![expect(clippy::print_stdout, reason = "the example prints its results")]

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate::algorithm::State;
use tollgate::{
    Batch, Check, Group, Limiter, Override, OverrideStore, Overrides, Quota, Store, StoreAdmin,
    StoreFuture, Subject, Timestamp, Usages,
};

/// 128-bit keyed hash of the subject, and id of the counter. Subjects themselves are not stored.
type Key = ([u64; 2], u64);

#[derive(Debug, Default)]
pub(crate) struct MapStore {
    hashers: [RandomState; 2],
    table: Mutex<Table>,
    overrides: Overrides,
    /// Changes with every reset and every override.
    epoch: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    counters: HashMap<Key, (Quota, State)>,
    /// Latest instant so far. Time never goes back in a store.
    now: Timestamp,
}

impl MapStore {
    fn fingerprint(&self, subject: &Subject<'_>) -> [u64; 2] {
        self.hashers
            .each_ref()
            .map(|hasher| hasher.hash_one(subject))
    }

    fn key(&self, check: &Check<'_>) -> Key {
        (self.fingerprint(check.subject()), check.counter().id())
    }

    /// Locks the table. One lock for a whole batch makes it atomic.
    fn lock(&self, now: Timestamp) -> MutexGuard<'_, Table> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.now = table.now.max(now);
        table
    }

    fn usages(&self, table: &Table, batch: &Batch<'_>, now: Timestamp) -> Usages {
        let mut usages = Usages::new(batch, now);
        for check in batch.checks() {
            let state = table.state(&self.key(check), check.quota());
            usages.push(state.peek(check.quota(), now, check.cost()));
        }
        usages
    }
}

impl Table {
    /// Returns the state of a counter, or a new one.
    fn state(&self, key: &Key, quota: &Quota) -> State {
        let known = self.counters.get(key).map(|(_, state)| state.clone());
        known.unwrap_or_else(|| State::fresh(quota))
    }

    /// Changes a counter. If its limit has changed, usage continues.
    fn change(&mut self, key: Key, quota: &Quota, change: impl FnOnce(&mut State)) {
        let mut state = self.state(&key, quota);
        change(&mut state);
        self.counters.insert(key, (*quota, state));
    }
}

impl Store for MapStore {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let mut table = self.lock(now);
        let now = table.now;
        let mut usages = Usages::new(batch, now);
        let mut is_live_admitted = true;
        for (group, range) in batch.groups() {
            let checks = &batch.checks()[range];
            let has_room = checks.iter().all(|check| {
                let state = table.state(&self.key(check), check.quota());
                state.assess(check.quota(), now, check.cost()).is_allowed()
            });
            if group == Group::Live {
                is_live_admitted = has_room;
            }
            for check in checks {
                let (key, quota) = (self.key(check), check.quota());
                let mut state = table.state(&key, quota);
                if has_room && is_live_admitted {
                    usages.push(state.assess(quota, now, check.cost()));
                    state.charge(quota, now, check.cost());
                    table.counters.insert(key, (*quota, state));
                } else {
                    // Nothing is charged, so counters with room report what they had before.
                    usages.push(state.peek(quota, now, check.cost()));
                }
            }
        }
        StoreFuture::ready(Ok(usages))
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        // A peek changes nothing, not even the latest instant.
        let table = self.lock(Timestamp::EPOCH);
        StoreFuture::ready(Ok(self.usages(&table, batch, table.now.max(now))))
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let mut table = self.lock(now);
        let now = table.now;
        let mut usages = Usages::new(batch, now);
        for check in batch.checks() {
            table.change(self.key(check), check.quota(), |state| {
                state.charge(check.quota(), now, check.cost());
                usages.push(state.assess(check.quota(), now, 0));
            });
        }
        StoreFuture::ready(Ok(usages))
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        let mut table = self.lock(now);
        let now = table.now;
        for check in batch.checks() {
            table.change(self.key(check), check.quota(), |state| {
                state.refund(check.quota(), charged_at, now, check.cost());
            });
        }
        StoreFuture::ready(Ok(()))
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        Some(self)
    }

    fn overrides(&self) -> Option<&dyn OverrideStore> {
        Some(self)
    }
}

impl StoreAdmin for MapStore {
    fn reset(&self, batch: &Batch<'_>) -> StoreFuture<()> {
        let mut table = self.lock(Timestamp::EPOCH);
        for check in batch.checks() {
            table.counters.remove(&self.key(check));
        }
        self.epoch.fetch_add(1, Ordering::AcqRel);
        StoreFuture::ready(Ok(()))
    }

    fn reset_subject(&self, subject: &Subject<'_>) -> StoreFuture<()> {
        let of = self.fingerprint(subject);
        let mut table = self.lock(Timestamp::EPOCH);
        table.counters.retain(|(subject, _), _| *subject != of);
        self.epoch.fetch_add(1, Ordering::AcqRel);
        StoreFuture::ready(Ok(()))
    }

    fn clear(&self) -> StoreFuture<()> {
        self.lock(Timestamp::EPOCH).counters.clear();
        self.epoch.fetch_add(1, Ordering::AcqRel);
        StoreFuture::ready(Ok(()))
    }

    fn len(&self) -> StoreFuture<usize> {
        StoreFuture::ready(Ok(self.lock(Timestamp::EPOCH).counters.len()))
    }

    /// Call it periodically: without it, an attacker with many keys fills the memory. (The crate's
    /// `MemoryStore` sweeps during decisions and is bounded.)
    fn sweep(&self, now: Timestamp) -> StoreFuture<usize> {
        let mut table = self.lock(now);
        let (now, before) = (table.now, table.counters.len());
        let counts = |(quota, state): &mut (Quota, State)| state.expires_at(quota) > now;
        table.counters.retain(|_, counter| counts(counter));
        StoreFuture::ready(Ok(before - table.counters.len()))
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
}

impl OverrideStore for MapStore {
    fn table(&self) -> &Overrides {
        &self.overrides
    }

    fn set(&self, new: Override) -> StoreFuture<()> {
        self.overrides.set(new);
        self.epoch.fetch_add(1, Ordering::AcqRel);
        StoreFuture::ready(Ok(()))
    }

    fn remove(&self, subject: &Subject<'_>, rule: &str) -> StoreFuture<bool> {
        let removed = self.overrides.remove(subject, rule);
        self.epoch.fetch_add(1, Ordering::AcqRel);
        StoreFuture::ready(Ok(removed))
    }
}

pub(crate) fn main() -> Result<(), tollgate::Error> {
    let messages = Limiter::builder()
        .quota("3/minute")
        .quota("100/day, fixed-window")
        .store(MapStore::default())
        .build()?;
    for number in 1..=4 {
        let decision = messages.check("alice").wait()?;
        let answer = if decision.is_allowed() {
            "sent"
        } else {
            "too many"
        };
        println!("message {number}: {answer}, {} left", decision.remaining());
    }
    println!("{} counters are kept", messages.len().wait()?);
    Ok(())
}
