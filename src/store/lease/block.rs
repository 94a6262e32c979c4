//! Credits that were charged in advance: [`CreditBlock`], [`Credit`] and [`PendingBlock`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::eligibility::time_to_live;
use super::request::LeaseRequest;
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::store::{Store, StoreFuture, epoch_of};
use crate::usage::{Usage, Usages};

/// Concurrent requests do not arrive in the order of their instants. An instant that is earlier
/// than a block by more than this is from a clock that went back.
const REORDERING: Duration = Duration::from_millis(1);

/// A block is hot if it was spent within this part of its time to live: two blocks of twice the
/// size would have been spent in time.
const HOT_PART: u64 = 4;

/// Charge of a block, as the store has confirmed it.
struct BlockCharge {
    request: Arc<LeaseRequest>,
    /// Usages after the charge of the whole block.
    usages: Box<[Usage]>,
    /// Instant of the charge, by the clock of the store.
    charged_at: Timestamp,
    /// Instant of the call, by the clock of the caller.
    requested_at: Timestamp,
    /// Epoch of the store before the call. Under another epoch the charge may have been reset, so
    /// the block is void.
    epoch: u64,
}

impl BlockCharge {
    /// Returns the usages of a request that leaves `unspent` credits in the block.
    #[inline]
    fn usages(&self, unspent: u64, now: Timestamp) -> Usages {
        let age = now
            .as_micros()
            .saturating_sub(self.requested_at.as_micros());
        let spent_at = Timestamp::end(self.charged_at.as_micros() + age);
        let mut usages = Usages::with_live(self.usages.len(), spent_at);
        for (usage, cost) in self.usages.iter().zip(self.request.costs()) {
            let used = usage.used().saturating_sub(cost.saturating_mul(unspent));
            let usage = Usage::new(usage.limit(), used, usage.reset_at(), usage.outcome());
            usages.push(usage);
        }
        usages
    }

    /// Refunds credits. A void block never refunds: its charge is no longer in the counters.
    fn refund(&self, store: &dyn Store, credits: u64, now: Timestamp) -> StoreFuture<()> {
        if credits == 0 || epoch_of(store) != self.epoch {
            return StoreFuture::ready(Ok(()));
        }
        self.request.refund(store, credits, self.charged_at, now)
    }
}

/// One credit that was taken out of a block for a request.
pub(super) struct Credit {
    charge: Arc<BlockCharge>,
    unspent: u64,
    now: Timestamp,
}

impl Credit {
    pub(super) fn to_usages(&self) -> Usages {
        self.charge.usages(self.unspent, self.now)
    }

    /// Refunds the credit of a request that was dropped before it received it.
    pub(super) fn refund(self, store: &dyn Store) -> StoreFuture<()> {
        self.charge.refund(store, 1, self.now)
    }
}

/// Unspent credits of one charge.
pub(super) struct CreditBlock {
    charge: Arc<BlockCharge>,
    credits: u64,
    /// By the clock of the caller.
    expires_at: Timestamp,
}

impl CreditBlock {
    /// Takes a credit. Returns `None` if the block is empty, expired or void.
    #[inline]
    pub(super) fn take_credit(&mut self, epoch: u64, now: Timestamp) -> Option<Credit> {
        if self.credits == 0 || self.is_expired(now) || self.charge.epoch != epoch {
            return None;
        }
        self.credits -= 1;
        Some(Credit {
            charge: Arc::clone(&self.charge),
            unspent: self.credits,
            now,
        })
    }

    pub(super) const fn credits(&self) -> u64 {
        self.credits
    }

    /// Returns how many more credits the counters had room for after the charge.
    pub(super) fn remaining(&self) -> u64 {
        remaining_credits(&self.charge.usages, self.charge.request.costs())
    }

    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }

    /// Returns whether the block was spent fast enough to request the next one in advance.
    pub(super) fn is_hot(&self, now: Timestamp) -> bool {
        let requested_at = self.charge.requested_at.as_micros();
        let age = now.as_micros().saturating_sub(requested_at);
        age <= self.expires_at.as_micros().saturating_sub(requested_at) / HOT_PART
    }

    /// Returns whether the clock went back since the block was requested. Its age is unknown then.
    pub(super) fn is_from_future(&self, now: Timestamp) -> bool {
        now.saturating_add(REORDERING) < self.charge.requested_at
    }

    /// Refunds the unspent credits at `now`. Default: the instant at which the block was requested.
    pub(super) fn refund(self, store: &dyn Store, now: Option<Timestamp>) -> StoreFuture<()> {
        let now = now.unwrap_or(self.charge.requested_at);
        self.charge.refund(store, self.credits, now)
    }
}

/// A block that was requested from the store.
pub(super) struct PendingBlock {
    reply: StoreFuture<Usages>,
    request: Arc<LeaseRequest>,
    credits: u64,
    requested_at: Timestamp,
    epoch: u64,
}

impl PendingBlock {
    pub(super) fn new(
        request: &Arc<LeaseRequest>,
        credits: u64,
        store: &dyn Store,
        now: Timestamp,
    ) -> Self {
        // Read before the call: a reset between the call and the reply makes the block void.
        let epoch = epoch_of(store);
        Self {
            reply: request.decide(store, credits, now),
            request: Arc::clone(request),
            credits,
            requested_at: now,
            epoch,
        }
    }

    pub(super) const fn credits(&self) -> u64 {
        self.credits
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Usages, StoreError>> {
        Pin::new(&mut self.reply).poll(context)
    }

    /// Returns the block if the store has charged it.
    pub(super) fn into_block(self, reply: &Usages, max_ttl: Duration) -> Option<CreditBlock> {
        let usages = reply.usages();
        if !reply.is_allowed() || usages.len() != self.request.costs().count() {
            return None;
        }
        let ttl = time_to_live(self.request.quotas(), usages, reply.at(), max_ttl);
        Some(CreditBlock {
            charge: Arc::new(BlockCharge {
                usages: usages.into(),
                charged_at: reply.at(),
                requested_at: self.requested_at,
                epoch: self.epoch,
                request: self.request,
            }),
            credits: self.credits,
            expires_at: self.requested_at.saturating_add(ttl),
        })
    }

    /// Awaits the block and refunds it.
    pub(super) async fn cancel(mut self, store: Arc<dyn Store>) -> Result<(), StoreError> {
        let reply = (&mut self.reply).await?;
        match self.into_block(&reply, Duration::ZERO) {
            Some(block) => block.refund(&*store, None).await,
            None => Ok(()),
        }
    }
}

/// Returns how many more requests with these costs the counters have room for.
pub(super) fn remaining_credits(usages: &[Usage], costs: impl Iterator<Item = u64>) -> u64 {
    let credits = usages.iter().zip(costs);
    let credits = credits.map(|(usage, cost)| usage.remaining() / cost.max(1));
    credits.min().unwrap_or(0)
}
