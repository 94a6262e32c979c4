//! Charges after the decision.

use std::fmt;
use std::sync::Arc;

use http::Extensions;

use super::context::RequestContext;
use super::{Admission, RequestPipeline, Snapshot};
use crate::decision::Decision;
use crate::error::{Error, ValidationError};
use crate::policy::PlannedCheck;
use crate::store::StoreFuture;
use crate::usage::Usages;

/// Charges a request more than on entry, with an amount that is only known in the handler: the tokens of
/// a language model, the rows of an export.
///
/// An extractor for axum handlers, and an extension of every admitted request, if the layer was built
/// with `insert_extensions`. The charge may exceed the limit; then the next requests are denied.
/// It is never refunded. If nothing counts the request, nothing is charged.
///
/// ```
/// # #[cfg(feature = "axum")] {
/// use tollgate::Charge;
///
/// async fn complete(charge: Charge) -> &'static str {
///     let tokens = 1_200;
///     if let Err(error) = charge.charge_rule("tokens", tokens).await {
///         eprintln!("not charged: {error}");
///     }
///     "Once upon a time"
/// }
/// # let _ = complete;
/// # }
/// ```
#[derive(Clone)]
pub struct Charge {
    /// The snapshot that the request was decided with; if nothing counts it, the current one.
    snapshot: Arc<Snapshot>,
    /// `None` if nothing counts the request.
    request: Option<Arc<ChargedRequest>>,
}

/// A request that can be charged more.
struct ChargedRequest {
    pipeline: Arc<RequestPipeline>,
    context: RequestContext,
    /// Dry runs that were not charged on entry are not charged later either.
    usages: Usages,
}

impl RequestPipeline {
    /// Inserts decision and charge into the extensions of an admitted request, if handlers use them.
    #[inline]
    pub(crate) fn extend_request(
        self: &Arc<Self>,
        admission: Option<&Admission>,
        extensions: &mut Extensions,
    ) {
        if !self.inserts_extensions {
            return;
        }
        let decision = match admission {
            Some(admission) => admission.decision.clone(),
            None => Decision::of_nothing(self.wall_now()),
        };
        let request = admission.map(|admission| {
            Arc::new(ChargedRequest {
                pipeline: Arc::clone(self),
                context: admission.context.clone(),
                usages: admission.usages.clone(),
            })
        });
        let snapshot = match admission {
            Some(admission) => Arc::clone(&admission.snapshot),
            None => self.snapshot.load_full(),
        };
        extensions.insert(decision);
        extensions.insert(Charge { snapshot, request });
    }
}

impl Charge {
    /// Charges `cost` more to every quota that counted the request.
    pub fn charge(&self, cost: u64) -> StoreFuture<(), Error> {
        self.record(None, cost)
    }

    /// Charges `cost` more to one rule. It must be one that counts the request.
    pub fn charge_rule(&self, rule: &str, cost: u64) -> StoreFuture<(), Error> {
        if let Some(request) = &self.request
            && !request.context.has_rule(&self.snapshot, rule)
        {
            let expected = "a rule that counts this request";
            return StoreFuture::ready(Err(
                ValidationError::new("rule name", rule, expected).into()
            ));
        }
        self.record(Some(rule), cost)
    }

    /// Returns the snapshot that the request was decided with. If nothing counts the request, returns the
    /// one that was current on entry.
    #[cfg(feature = "axum")]
    pub(crate) const fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    fn record(&self, rule: Option<&str>, cost: u64) -> StoreFuture<(), Error> {
        let Some(request) = self.request.as_deref() else {
            return StoreFuture::ready(Ok(()));
        };
        let ChargedRequest {
            pipeline,
            context,
            usages,
        } = request;
        let snapshot = &self.snapshot;
        let is_meant = |check: &PlannedCheck| {
            rule.is_none_or(|rule| *snapshot.policy.rule(check).name == *rule)
        };
        let answer = context.with_batch(
            snapshot,
            |index, check| (is_meant(check) && context.is_charged(usages, index)).then_some(cost),
            |batch| pipeline.store_of(context).record(batch, pipeline.now()),
        );
        answer.map(|recorded| Ok(recorded.map(drop)?))
    }
}

impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge").finish_non_exhaustive()
    }
}
