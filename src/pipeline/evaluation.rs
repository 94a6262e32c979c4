//! What is known of a request after it was asked about, now or later.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Extensions, Response};

use super::context::RequestContext;
use super::dry_run::DryRun;
use crate::clock::Timestamp;
use crate::decision::Decision;
use crate::error::StoreError;
use crate::store::StoreFuture;
use crate::usage::Usages;

/// What is known of a request after it was asked about.
pub(crate) enum Evaluation {
    /// It goes on. Without an admission, nothing is to be done about its response.
    Allowed(Option<Box<Admission>>),
    /// It is turned away with this.
    Denied(Rejection),
    /// It is not known yet.
    Pending(Box<Pending>),
}

/// What a request is turned away with.
pub(crate) struct Rejection {
    pub(crate) response: Response<Bytes>,
    /// For those further out who look at the response.
    pub(super) decision: Option<Decision>,
}

impl Rejection {
    /// Puts the decision on the response to the request with these extensions.
    ///
    /// Nobody will ask for them any more, but the memory that they are in is good for what the
    /// response says: to give it back and to ask for as much again is what would cost most here.
    #[inline]
    pub(crate) fn tell_decision(&mut self, extensions: &mut Extensions) {
        if let Some(decision) = self.decision.take() {
            let told = self.response.extensions_mut();
            // A renderer may have put something there.
            if told.is_empty() {
                std::mem::swap(told, extensions);
                told.clear();
            }
            told.insert(decision);
        }
    }
}

impl From<Response<Bytes>> for Rejection {
    fn from(response: Response<Bytes>) -> Self {
        Self {
            response,
            decision: None,
        }
    }
}

/// A request that goes on and whose response has to be seen to.
///
/// On the heap, since it goes from hand to hand with the response: services box their futures,
/// and axum more than once.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(super) case: RequestContext,
    /// Usages of the quotas; `None` if nothing is counted but dry runs.
    pub(super) verdict: Option<Usages>,
    pub(super) decision: Decision,
    /// Snapshot that are tried out, as far as the response matters to them.
    pub(super) trials: Vec<DryRun>,
}

/// An answer that has to be waited for.
#[expect(clippy::large_enum_variant, reason = "it is boxed as a whole")]
pub(crate) enum Pending {
    /// For more than one thing: the tier, rules that are tried out.
    Several(Pin<Box<dyn Future<Output = StoreOutcome> + Send>>),
    /// Only for the store.
    Store(Option<RequestContext>, StoreFuture<Usages>, Timestamp),
}

/// A case and what the store says of it.
pub(crate) struct StoreOutcome {
    pub(super) case: RequestContext,
    pub(super) verdict: Result<Usages, StoreError>,
    pub(super) trials: Vec<DryRun>,
    /// When the store was asked.
    pub(super) asked_at: Timestamp,
}

impl Admission {
    /// Whether something depends on how the response turns out.
    #[inline]
    pub(crate) fn awaits_outcome(&self) -> bool {
        self.case.is_by_outcome() || !self.trials.is_empty()
    }
}

impl Future for Pending {
    type Output = StoreOutcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<StoreOutcome> {
        match self.get_mut() {
            Self::Several(future) => future.as_mut().poll(context),
            Self::Store(case, answer, asked_at) => {
                let verdict = ready!(Pin::new(answer).poll(context));
                #[expect(clippy::panic, reason = "as every future may; the alternative hangs")]
                let Some(case) = case.take() else {
                    panic!("a request was polled after it was judged");
                };
                let trials = Vec::new();
                Poll::Ready(StoreOutcome {
                    case,
                    verdict,
                    trials,
                    asked_at: *asked_at,
                })
            }
        }
    }
}
