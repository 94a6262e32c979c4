//! One call of the user's closure, with a deadline. A panic of the closure is an error.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::failure_log::FailureLog;
use super::{FindTier, FindTierFuture, FindTierResult};
use crate::clock::Sleep;
use crate::identity_types::Identity;

/// Result of a look-up: a tier, no tier, or a failure that has been logged.
pub(super) type LookupResult = Result<Option<Arc<str>>, LookupFailed>;

#[derive(Clone, Copy, Debug)]
pub(super) struct LookupFailed;

pub(super) struct LookupCall {
    state: State,
    deadline: Sleep,
    failures: Arc<FailureLog>,
}

enum State {
    /// The closure is called at the first poll.
    NotStarted(Arc<FindTier>, Identity),
    Running(FindTierFuture),
}

impl LookupCall {
    pub(super) const fn new(
        find: Arc<FindTier>,
        identity: Identity,
        deadline: Sleep,
        failures: Arc<FailureLog>,
    ) -> Self {
        Self {
            state: State::NotStarted(find, identity),
            deadline,
            failures,
        }
    }

    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<FindTierResult> {
        if let State::NotStarted(find, identity) = &self.state {
            self.state = State::Running(find(identity.clone()));
        }
        match &mut self.state {
            State::Running(future) => future.as_mut().poll(cx),
            State::NotStarted(..) => Poll::Pending,
        }
    }
}

impl Future for LookupCall {
    type Output = LookupResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LookupResult> {
        let lookup = self.get_mut();
        // Unwind safe: a future that has panicked is never polled again.
        let advanced = catch_unwind(AssertUnwindSafe(|| lookup.advance(cx)));
        Poll::Ready(match advanced {
            Ok(Poll::Ready(Ok(tier))) => {
                lookup.failures.succeeded();
                Ok(tier.filter(|name| !name.is_empty()).map(Arc::from))
            }
            Ok(Poll::Ready(Err(error))) => {
                lookup.failures.failed(error);
                Err(LookupFailed)
            }
            Err(_) => {
                lookup.failures.failed("the look-up panicked");
                Err(LookupFailed)
            }
            Ok(Poll::Pending) => {
                if lookup.deadline.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                lookup
                    .failures
                    .failed("the look-up took longer than its deadline");
                Err(LookupFailed)
            }
        })
    }
}
