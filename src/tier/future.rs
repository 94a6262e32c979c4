//! Result of a tier look-up: [`TierFuture`].

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The name of a tier, cached or pending. `None` is the default tier.
///
/// The future never fails: after an error it returns the last known tier, see
/// [`TierResolver`](super::TierResolver).
#[must_use = "futures do nothing unless polled"]
pub enum TierFuture {
    /// The tier is cached.
    Ready(Option<Arc<str>>),
    /// The tier is being looked up.
    Pending(Pin<Box<dyn Future<Output = Option<Arc<str>>> + Send>>),
}

impl Future for TierFuture {
    type Output = Option<Arc<str>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Ready(tier) => Poll::Ready(tier.clone()),
            Self::Pending(future) => future.as_mut().poll(cx),
        }
    }
}

impl fmt::Debug for TierFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(tier) => f.debug_tuple("Ready").field(tier).finish(),
            Self::Pending(_) => f.write_str("Pending"),
        }
    }
}
