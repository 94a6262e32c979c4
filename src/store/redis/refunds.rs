//! Refunds that have no reply yet: [`PendingRefunds`].

use std::sync::Arc;

use tokio::sync::watch;

use super::RedisStore;
use super::script::Verb;
use crate::batch::Batch;
use crate::clock::Timestamp;
use crate::store::StoreFuture;

/// Counts refunds that were sent and have no reply yet, so that a shutdown can wait for them: a
/// refund is the only call whose future is usually dropped.
#[derive(Clone, Debug)]
pub(super) struct PendingRefunds(Arc<watch::Sender<usize>>);

/// Counts one refund until it is dropped.
#[derive(Debug)]
pub(super) struct PendingRefund(Arc<watch::Sender<usize>>);

impl PendingRefunds {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Counts a refund, until the guard is dropped.
    pub(super) fn begin(&self) -> PendingRefund {
        self.0.send_modify(|pending| *pending += 1);
        PendingRefund(Arc::clone(&self.0))
    }

    /// Waits until no refund is pending.
    pub(super) async fn completed(self) {
        // An error means that the sender is gone. It is in `self`.
        let _ = self.0.subscribe().wait_for(|pending| *pending == 0).await;
    }
}

impl Drop for PendingRefund {
    fn drop(&mut self) {
        self.0.send_modify(|pending| *pending -= 1);
    }
}

impl RedisStore {
    /// Sends a refund. A task waits for the reply, so that the refund is pending until then, also if
    /// the future is dropped.
    pub(super) fn send_refund(
        &self,
        batch: &Batch<'_>,
        charged_at: Timestamp,
        now: Timestamp,
    ) -> StoreFuture<()> {
        let pending = self.shared.refunds.begin();
        let instants = (now, charged_at);
        let sent = self.send(Verb::Refund, batch, instants, |_, _| Some(()), |_| ());
        match sent.try_ready() {
            Ok(nothing_to_send) => StoreFuture::ready(nothing_to_send),
            Err(sent) => self.spawn_call(async move {
                let refunded = sent.await;
                drop(pending);
                refunded
            }),
        }
    }
}
