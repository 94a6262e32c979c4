//! Decorators of stores.

mod circuit_breaker;
mod contract;
mod deny_cache;
pub(crate) mod faulty;
mod gate;
mod groups;
mod held;
mod lease;
mod lease_ahead;
mod lease_ends;
mod lease_limits;
mod stack;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::{
    Batch, Check, Counter, MemoryStore, OverrideStore, Store, StoreAdmin, StoreFuture, Subject,
    Timestamp, Usage, Usages,
};

/// 2025-01-01 00:00:00 UTC, a start of windows of every length.
pub(crate) const START: u64 = 1_735_689_600_000_000;

pub(crate) fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros)
}

pub(crate) fn counter(rule: &str, quota: &str) -> Counter {
    Counter::new(rule, quota.parse().unwrap()).unwrap()
}

pub(crate) fn user(name: &str) -> Subject<'_> {
    Subject::from([("user", name)])
}

/// Decides one check.
pub(crate) fn take(store: &dyn Store, check: Check<'_>, now: u64) -> Usage {
    let batch = Batch::new(std::slice::from_ref(&check)).unwrap();
    store.decide(&batch, at(now)).wait().unwrap().usages()[0]
}

/// Memory store that counts its decisions.
#[derive(Clone, Default)]
pub(crate) struct Counted {
    store: Arc<MemoryStore>,
    decisions: Arc<AtomicU64>,
}

impl Counted {
    pub(crate) fn decisions(&self) -> u64 {
        self.decisions.load(Ordering::SeqCst)
    }

    fn count(&self) {
        self.decisions.fetch_add(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counted")
    }
}

impl Store for Counted {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.count();
        self.store.decide(batch, now)
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.store.peek(batch, now)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.store.record(batch, now)
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.store.refund(batch, charged_at, now)
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.store.admin()
    }

    fn overrides(&self) -> Option<&dyn OverrideStore> {
        self.store.overrides()
    }
}
