//! Work of decorators on completion of a store call: [`CompletionHook`].
//!
//! A decorator around a store that replies later would have to box a future of its own. It adds a
//! hook to the [`StoreFuture`](super::StoreFuture) of the store instead, so that a decision
//! allocates one future, whatever the number of decorators.

use super::circuit_breaker::AdmittedCall;
use super::deny_cache::{CacheMiss, InvalidationGuard};
use super::lease::SingleDecision;
use crate::error::StoreError;
use crate::usage::Usages;

/// What a decorator does with the result of a call. Dropped without a result if the caller drops
/// the future.
#[expect(
    clippy::large_enum_variant,
    reason = "inline in the allocation of the future, so that a decision allocates once"
)]
pub(super) enum CompletionHook {
    /// Reports the result to the circuit breaker.
    CircuitBreaker(AdmittedCall),
    /// Stores a denial, or invalidates denials after a charge.
    DenyCache(CacheMiss),
    /// Invalidates denials after `record` or `refund`, also if dropped.
    Invalidate(InvalidationGuard),
    /// Adapts the size of the next block.
    Lease(SingleDecision),
}

impl CompletionHook {
    #[inline]
    pub(super) fn run<T: StoreReply>(self, result: &Result<T, StoreError>) {
        let usages = result.as_ref().ok().and_then(StoreReply::usages);
        match self {
            Self::CircuitBreaker(mut call) => call.report(result),
            Self::Invalidate(guard) => drop(guard),
            Self::DenyCache(miss) => {
                if let Some(usages) = usages {
                    miss.complete(usages);
                }
            }
            Self::Lease(decision) => {
                if let Some(usages) = usages {
                    decision.complete(usages);
                }
            }
        }
    }
}

/// Reply that hooks can read.
pub(super) trait StoreReply {
    /// Returns the usages of a decision; `None` for other replies.
    fn usages(&self) -> Option<&Usages>;
}

impl StoreReply for Usages {
    fn usages(&self) -> Option<&Usages> {
        Some(self)
    }
}

impl StoreReply for () {
    fn usages(&self) -> Option<&Usages> {
        None
    }
}
