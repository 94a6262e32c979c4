//! Results of an evaluation.

use std::sync::Arc;

use bytes::Bytes;
use http::{Extensions, HeaderMap, Response};

use super::context::RequestContext;
use super::tier::TierName;
use super::{RequestPipeline, Snapshot};
use crate::clock::Timestamp;
use crate::decision::Decision;
use crate::headers::{self, QuotaUsage, Report};
use crate::store::StoreFuture;
use crate::usage::Usages;

/// Result of an evaluation.
#[expect(
    clippy::large_enum_variant,
    reason = "the service boxes a pending decision together with its request"
)]
pub(crate) enum Evaluation {
    /// The request is admitted. Without an admission, its response stays as it is.
    Pass(Option<Box<Admission>>),
    Reject(Rejection),
    Pending(PendingDecision),
}

/// An admitted request whose response gets headers or settles charges, or whose handler receives the
/// decision.
///
/// Boxed, because it moves with the response future, which services box more than once.
pub(crate) struct Admission {
    /// Only if charges depend on the response.
    pub(super) pipeline: Option<Arc<RequestPipeline>>,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) context: RequestContext,
    pub(super) usages: Usages,
    pub(super) decision: Decision,
}

/// The response to a request that is not admitted.
pub(crate) struct Rejection {
    pub(crate) response: Response<Bytes>,
    /// For layers further out that read the extensions of the response.
    pub(super) decision: Option<Decision>,
}

/// An evaluation that waits for a tier or for the store.
pub(crate) struct PendingDecision {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) context: RequestContext,
    /// When the wait began.
    pub(super) started_at: Timestamp,
    pub(super) waits_for: WaitsFor,
}

pub(super) enum WaitsFor {
    Tier(TierName),
    /// The first load of the overrides.
    Overrides(StoreFuture<()>),
    Store(StoreFuture<Usages>),
}

impl Admission {
    /// Adds the rate-limit headers to a response.
    ///
    /// Not generic over the response: a generic function is compiled in the crate of the user, where
    /// the small functions that it calls are not inlined (150 instructions).
    pub(crate) fn annotate(&self, headers: &mut HeaderMap) {
        let Self {
            snapshot,
            context,
            usages,
            decision,
            ..
        } = self;
        let style = snapshot.style();
        let binding = decision.binding().filter(|_| !style.is_none());
        let Some(Ok(name)) = binding.map(|index| context.quota_name(snapshot, index)) else {
            return;
        };
        let binding = QuotaUsage::new(name, *decision.usage());
        let warn = snapshot.policy.warns(decision.usage());
        let report = Report::new(binding, decision.at()).with_warning(warn);
        let quotas = context.quota_usages(snapshot, usages, decision.wall_offset());
        headers::annotate(style, headers, &report, quotas);
    }
}

impl Rejection {
    /// Moves the decision into the extensions of the response. `extensions` are those of the request,
    /// whose memory is used again: allocating a map costs most here.
    #[inline]
    pub(crate) fn extend_response(&mut self, extensions: &mut Extensions) {
        if let Some(decision) = self.decision.take() {
            let own = self.response.extensions_mut();
            // A renderer may have added some.
            if own.is_empty() {
                std::mem::swap(own, extensions);
                own.clear();
            }
            own.insert(decision);
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
