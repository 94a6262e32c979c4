//! A store that holds back its replies.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;
use tollgate::{Batch, Check, Counter, Store, StoreAdmin, StoreFuture, Subject, Timestamp, Usages};

use super::{START, at};
use crate::support::scripted_store::ScriptedStore;

/// Decides at once, and replies when the test allows it. A refund takes effect when its future is
/// polled.
#[derive(Clone)]
pub(crate) struct Held {
    counted: ScriptedStore,
    replies: watch::Sender<bool>,
    refunds: Arc<AtomicU64>,
}

impl Held {
    pub(crate) fn new() -> Self {
        Self {
            counted: ScriptedStore::default(),
            replies: watch::Sender::new(true),
            refunds: Arc::default(),
        }
    }

    /// Lets the store reply, or holds its replies back.
    pub(crate) fn set_replying(&self, now: bool) {
        self.replies.send_replace(now);
    }

    /// Returns what was charged and not refunded.
    pub(crate) fn used(&self, subject: &Subject<'_>, counter: &Counter) -> u64 {
        let checks = [Check::new(subject, counter)];
        let batch = Batch::new(&checks).unwrap();
        let usages = self.counted.peek(&batch, at(START)).wait().unwrap();
        usages.usages()[0].used() - self.refunded()
    }

    pub(crate) fn refunded(&self) -> u64 {
        self.refunds.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}

impl Store for Held {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let usages = self.counted.decide(batch, now).wait();
        let mut replies = self.replies.subscribe();
        StoreFuture::pending(async move {
            let _ = replies.wait_for(|replies| *replies).await;
            usages
        })
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.counted.peek(batch, now)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.counted.record(batch, now)
    }

    fn refund(&self, batch: &Batch<'_>, _: Timestamp, _: Timestamp) -> StoreFuture<()> {
        let cost = batch.checks().iter().map(Check::cost).sum();
        let refunds = Arc::clone(&self.refunds);
        StoreFuture::pending(async move {
            refunds.fetch_add(cost, Ordering::SeqCst);
            Ok(())
        })
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.counted.admin()
    }
}
