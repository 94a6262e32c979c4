//! Refunds that have no reply yet: [`PendingRefunds`].

use std::sync::Arc;

use tokio::sync::watch;

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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::clock::Timestamp;
    use crate::store::redis::error::{ErrorCause, RedisStoreError};
    use crate::store::redis::queue::{QueuedCommand, QueuedRequest};

    #[test]
    fn refund_is_pending_until_its_reply_although_the_future_was_dropped() {
        let refunds = PendingRefunds::new();
        let is_pending = || refunds.clone().completed().now_or_never().is_none();
        let place = "host".into();
        let queued = || {
            let due = (Timestamp::EPOCH, Duration::ZERO);
            let (request, _) = QueuedRequest::new(QueuedCommand::Probe, 0, due, &place);
            request.with_refund(Some(refunds.begin()))
        };
        let late = || {
            Err(RedisStoreError::new(
                &place,
                ErrorCause::Late(Duration::ZERO),
            ))
        };
        assert!(!is_pending());
        let mut completed = queued();
        assert!(is_pending());
        completed.complete(late());
        assert!(!is_pending(), "it has its reply");
        let mut expired = queued();
        let reply = expired.take_reply().expect("pending");
        assert!(is_pending());
        reply.send(late());
        assert!(
            !is_pending(),
            "the rest of the entry is kept until its call ends"
        );
        let dropped = queued();
        assert!(is_pending());
        drop(dropped);
        assert!(!is_pending());
    }
}
