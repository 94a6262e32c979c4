//! A store that answers later.

use std::future::poll_fn;
use std::task::Poll;

use tollgate::{Batch, MemoryStore, Store, StoreAdmin, StoreError, StoreFuture, Timestamp, Usages};

/// Decides when it is called, and is pending for this many polls: like a store behind a network,
/// where the call charges, not the reply.
#[derive(Debug)]
pub(super) struct Slow {
    store: MemoryStore,
    polls: usize,
}

impl Slow {
    pub(super) fn new(store: MemoryStore, polls: usize) -> Self {
        Self { store, polls }
    }

    fn late<T: Unpin + Send + 'static>(&self, answer: StoreFuture<T>) -> StoreFuture<T> {
        let mut left = self.polls;
        if left == 0 {
            return answer;
        }
        let mut result = Some(answer.wait());
        StoreFuture::pending(poll_fn(move |context| {
            if left == 0 {
                return Poll::Ready(
                    result
                        .take()
                        .unwrap_or_else(|| Err(StoreError::new("polled again"))),
                );
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }
}

impl Store for Slow {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.late(self.store.decide(batch, now))
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.late(self.store.peek(batch, now))
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.late(self.store.record(batch, now))
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.late(self.store.refund(batch, charged_at, now))
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.store.admin()
    }
}
