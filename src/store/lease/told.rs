//! The two forms of an answer: to a batch, and to a single check.

use crate::batch::Batch;
use crate::clock::Timestamp;
use crate::decision::{Usage, Usages};
use crate::error::StoreError;
use crate::store::{Store, StoreFuture, only};

/// What somebody is told.
///
/// Most requests have but one quota, and what is told to them is a tenth of a [`Usages`]. Served
/// from a block, that is a good part of the price.
pub(super) trait Told: Sized + Send + Unpin + 'static {
    /// Told from what is known here, at this instant.
    fn from_usages(usages: impl Iterator<Item = Usage>, at: Timestamp) -> Self;

    /// From what the store has said to a request that was kept.
    fn from_verdict(verdict: Usages) -> Result<Self, StoreError>;

    /// Asks about a request by itself.
    fn ask(store: &dyn Store, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Self>;

    fn usages(&self) -> &[Usage];
}

impl Told for Usages {
    #[inline]
    fn from_usages(usages: impl Iterator<Item = Usage>, at: Timestamp) -> Self {
        let mut verdict = Self::new(at);
        usages.for_each(|usage| verdict.push(usage));
        verdict
    }

    fn from_verdict(verdict: Usages) -> Result<Self, StoreError> {
        Ok(verdict)
    }

    fn ask(store: &dyn Store, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Self> {
        store.decide(batch, now)
    }

    fn usages(&self) -> &[Usage] {
        self.usages()
    }
}

impl Told for (Usage, Timestamp) {
    #[inline]
    fn from_usages(mut usages: impl Iterator<Item = Usage>, at: Timestamp) -> Self {
        // There is one: blocks are kept only if the store has answered every check.
        (usages.next().unwrap_or_default(), at)
    }

    fn from_verdict(verdict: Usages) -> Result<Self, StoreError> {
        only(&verdict)
    }

    fn ask(store: &dyn Store, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Self> {
        match batch.checks() {
            [check] => store.decide_one(check, now),
            _ => store.decide(batch, now).map(|verdict| only(&verdict?)),
        }
    }

    fn usages(&self) -> &[Usage] {
        std::slice::from_ref(&self.0)
    }
}
