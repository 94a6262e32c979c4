//! A limit that goes on without the store.

use tollgate::{Decision, Error, Invalid, Limiter, Quota, Subject};

use crate::service;

/// One limit, counted where all instances count. While that place cannot be asked, each counts by
/// itself: so nobody has to be turned away, and nobody goes on uncounted. A `RateLimitLayer` does
/// that of its own accord; whoever asks a `Limiter` is told of the failure, and decides.
#[derive(Clone)]
pub(crate) struct Counted {
    pub(crate) together: Limiter,
    alone: Limiter,
}

impl Counted {
    pub(crate) fn new(rule: &str, quota: Quota, prefix: &str) -> Result<Self, Invalid> {
        let limiter = || Limiter::builder().name(rule).quota(quota);
        Ok(Self {
            together: limiter().store(service::store(prefix)).build()?,
            alone: limiter().build()?,
        })
    }

    pub(crate) async fn check<'a>(&self, who: impl Into<Subject<'a>>) -> Result<Decision, Error> {
        let who = who.into();
        match self.together.check(who).await {
            Err(Error::Store(error)) => {
                tracing::error!(%error, "the store cannot be asked, so this instance counts alone");
                // Limits that were set at run time are known here, wherever they are kept.
                for set in self.together.overrides() {
                    self.alone.set_override(set).await?;
                }
                self.alone.check(who).await
            }
            answer => answer,
        }
    }
}
