//! A store that does as it is told: answers, fails, or says nothing.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use tollgate::{
    Batch, MemoryStore, Store, StoreAdmin, StoreError, StoreErrorKind, StoreFuture, Timestamp,
    Usages,
};

#[derive(Clone, Default)]
pub(crate) struct Faulty {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    memory: MemoryStore,
    mood: AtomicU8,
    calls: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mood {
    Well,
    Down,
    Refusing,
    Silent,
}

impl Faulty {
    pub(crate) fn is(&self, mood: Mood) {
        self.shared.mood.store(mood as u8, Ordering::SeqCst);
    }

    /// How often it was asked.
    pub(crate) fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::SeqCst)
    }

    fn answer<T: Send + 'static>(
        &self,
        well: impl FnOnce(&MemoryStore) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        self.shared.calls.fetch_add(1, Ordering::SeqCst);
        let fails =
            |kind, words: &'static str| StoreFuture::ready(Err(StoreError::of_kind(kind, words)));
        match self.shared.mood.load(Ordering::SeqCst) {
            mood if mood == Mood::Well as u8 => well(&self.shared.memory),
            mood if mood == Mood::Down as u8 => fails(StoreErrorKind::Unavailable, "it is down"),
            mood if mood == Mood::Refusing as u8 => {
                fails(StoreErrorKind::Permanent, "wrong password; check the URL")
            }
            _ => StoreFuture::pending(pending()),
        }
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

impl Store for Faulty {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.answer(|memory| memory.decide(batch, now))
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.answer(|memory| memory.peek(batch, now))
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.answer(|memory| memory.record(batch, now))
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.answer(|memory| memory.refund(batch, charged_at, now))
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.shared.memory.admin()
    }
}
