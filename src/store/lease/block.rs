//! Permits that were charged ahead, and those that are about to be.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::eligibility::span;
use super::request::LeaseRequest;
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::store::{Store, StoreFuture};
use crate::usage::{Usage, Usages};

/// Requests that are asked about at once do not come in the order of their instants. One that is
/// earlier than this comes from a clock that went back.
const AT_ONCE: Duration = Duration::from_millis(1);

/// What is spent in less than this part of its time is hot: twice as much of twice the size would
/// be spent in time, too.
const HOT_PART: u64 = 4;

/// Permits that were charged and not yet spent.
pub(super) struct Block {
    request: Arc<LeaseRequest>,
    credits: u64,
    charge: Arc<Charge>,
    /// Until when it can be spent, by the caller's clock.
    until: Timestamp,
}

/// What the store has said when a block was charged.
struct Charge {
    /// How each counter stood, and what a round costs it.
    usages: Box<[(Usage, u64)]>,
    at: Timestamp,
    /// The same by the caller's clock: since when time has passed.
    asked: Timestamp,
}

impl Charge {
    /// When a round is spent, by the store's clock.
    #[inline]
    fn at(&self, now: Timestamp) -> Timestamp {
        let passed = now.as_micros().saturating_sub(self.asked.as_micros());
        Timestamp::end(self.at.as_micros() + passed)
    }

    /// What is told to somebody who spends a round and leaves so many.
    #[inline]
    fn tell(&self, left: u64, now: Timestamp) -> Usages {
        let usages = self.usages.iter().map(|(usage, cost)| {
            // What is left of the block was charged, and is used by nobody.
            let used = usage.used().saturating_sub(cost.saturating_mul(left));
            Usage::new(usage.limit(), used, usage.reset_at(), usage.outcome())
        });
        let mut told = Usages::with_live(self.usages.len(), self.at(now));
        usages.for_each(|usage| told.push(usage));
        told
    }
}

/// A round that was taken out of a block, for somebody who has yet to come for it.
pub(super) struct Credit {
    charge: Arc<Charge>,
    left: u64,
    now: Timestamp,
}

impl Credit {
    pub(super) fn tell(&self) -> Usages {
        self.charge.tell(self.left, self.now)
    }

    /// When it is spent, by the store's clock.
    pub(super) fn at(&self) -> Timestamp {
        self.charge.at(self.now)
    }
}

impl Block {
    /// Takes a round out of it, if one can be spent.
    #[inline]
    pub(super) fn take(&mut self, now: Timestamp) -> bool {
        let can_be_spent = self.credits > 0 && now < self.until;
        self.credits -= u64::from(can_be_spent);
        can_be_spent
    }

    /// What is told to whom it was taken for.
    #[inline]
    pub(super) fn tell(&self, now: Timestamp) -> Usages {
        self.charge.tell(self.credits, now)
    }

    /// The same for somebody who has yet to come.
    pub(super) fn permit(&self, now: Timestamp) -> Credit {
        Credit {
            charge: Arc::clone(&self.charge),
            left: self.credits,
            now,
        }
    }

    pub(super) const fn credits(&self) -> u64 {
        self.credits
    }

    /// How many more credits there were when it was charged.
    pub(super) fn room(&self) -> u64 {
        room(
            self.charge
                .usages
                .iter()
                .map(|(usage, cost)| (usage, *cost)),
        )
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.until <= now
    }

    /// Whether it was spent so quickly that the next one can be taken before it is needed.
    pub(super) fn was_hot(&self, now: Timestamp) -> bool {
        let asked = self.charge.asked.as_micros();
        let (took, time) = (
            now.as_micros().saturating_sub(asked),
            self.until.as_micros().saturating_sub(asked),
        );
        took <= time / HOT_PART
    }

    /// Whether the clock has gone back since, so that it does not say how old this is.
    pub(super) fn is_to_come(&self, now: Timestamp) -> bool {
        now.saturating_add(AT_ONCE) < self.charge.asked
    }

    /// Gives back what was not spent.
    pub(super) fn end(self, store: &dyn Store, now: Timestamp) -> StoreFuture<()> {
        match self.credits {
            0 => StoreFuture::ready(Ok(())),
            credits => self.request.refund(store, credits, self.charge.at, now),
        }
    }

    /// The same when nobody says what time it is.
    pub(super) fn end_early(self, store: &dyn Store) -> StoreFuture<()> {
        let now = self.charge.asked;
        self.end(store, now)
    }
}

/// Permits that are on their way.
pub(super) struct PendingBlock {
    answer: StoreFuture<Usages>,
    request: Arc<LeaseRequest>,
    credits: u64,
    asked: Timestamp,
}

impl PendingBlock {
    pub(super) fn new(
        request: &Arc<LeaseRequest>,
        credits: u64,
        store: &dyn Store,
        asked: Timestamp,
    ) -> Self {
        Self {
            answer: request.decide(store, credits, asked),
            request: Arc::clone(request),
            credits,
            asked,
        }
    }

    pub(super) const fn credits(&self) -> u64 {
        self.credits
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Usages, StoreError>> {
        Pin::new(&mut self.answer).poll(context)
    }

    /// What has come, if the store has charged it: for each counter.
    pub(super) fn came(self, verdict: &Usages, max_ttl: Duration) -> Option<Block> {
        let usages = verdict.usages();
        if !verdict.is_allowed() || usages.len() != self.request.costs().count() {
            return None;
        }
        let span = span(self.request.quotas(), usages, verdict.at(), max_ttl);
        Some(Block {
            credits: self.credits,
            charge: Arc::new(Charge {
                usages: usages.iter().copied().zip(self.request.costs()).collect(),
                at: verdict.at(),
                asked: self.asked,
            }),
            until: self.asked.saturating_add(span),
            request: self.request,
        })
    }

    /// Gives back what comes.
    pub(super) async fn end(self, store: Arc<dyn Store>) -> Result<(), StoreError> {
        let verdict = self.answer.await?;
        if !verdict.is_allowed() {
            return Ok(());
        }
        let (credits, asked) = (self.credits, self.asked);
        let given_back = self.request.refund(&*store, credits, verdict.at(), asked);
        given_back.await
    }
}

/// How many more credits there are in what is left, of counters and what a round costs them.
pub(super) fn room<'u>(counters: impl Iterator<Item = (&'u Usage, u64)>) -> u64 {
    let credits = counters.map(|(usage, cost)| usage.remaining() / cost.max(1));
    credits.min().unwrap_or(0)
}
