//! A tier that is there already, or has to be waited for.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The name of a tier, now or later. `None` stands for the default tier.
///
/// It never fails: see [`TierResolver`](super::TierResolver).
#[must_use = "await the answer"]
pub enum TierAnswer {
    /// It is known.
    Ready(Option<Arc<str>>),
    /// It is being looked up.
    Pending(Pin<Box<dyn Future<Output = Option<Arc<str>>> + Send>>),
}

impl Future for TierAnswer {
    type Output = Option<Arc<str>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Ready(tier) => Poll::Ready(tier.clone()),
            Self::Pending(future) => future.as_mut().poll(cx),
        }
    }
}

impl fmt::Debug for TierAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(tier) => f.debug_tuple("Ready").field(tier).finish(),
            Self::Pending(_) => f.write_str("Pending"),
        }
    }
}
