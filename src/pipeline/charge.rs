//! Charging more once it is known what a request has cost.

use std::fmt;
use std::iter;
use std::sync::Arc;

use super::context::RequestContext;
use super::{Admission, RequestPipeline};
use crate::decision::Decision;
use crate::error::{Error, Invalid};
use crate::store::StoreFuture;

/// Charges a request more than it was charged on entry, once the handler knows: the tokens of
/// a language model, the rows of an export.
///
/// An extractor for axum handlers, and an extension of every request that was let through, if
/// the layer was built with `handlers_see_decision`. What is charged has happened, so it may
/// go over the limit; the next request pays for it. What was charged is never given back. Where
/// nothing counts the request, there is nothing to charge, and that is fine.
///
/// ```
/// # #[cfg(feature = "axum")] {
/// use tollgate::Charge;
///
/// async fn complete(charge: Charge) -> &'static str {
///     let tokens = 1_200;
///     if let Err(error) = charge.to("tokens", tokens).await {
///         eprintln!("not charged: {error}");
///     }
///     "Once upon a time"
/// }
/// # let _ = complete;
/// # }
/// ```
#[derive(Clone)]
pub struct Charge {
    /// None, if nothing counts the request.
    counted: Option<Arc<Counted>>,
}

/// What a request is counted by.
struct Counted {
    pipeline: Arc<RequestPipeline>,
    /// First by the rules that are in force, then by those that are tried out.
    cases: Vec<RequestContext>,
    /// Those that are tried out and would have denied it: they are charged no more.
    idle: Vec<RequestContext>,
}

impl Counted {
    fn has_rule(&self, rule: &str) -> bool {
        let mut all = self.cases.iter().chain(&self.idle);
        all.any(|case| case.has_rule(rule))
    }
}

impl RequestPipeline {
    /// What handlers are told of a request that goes on.
    pub(crate) fn for_handlers(
        self: &Arc<Self>,
        admission: Option<&Admission>,
    ) -> (Decision, Charge) {
        match admission {
            Some(admission) => {
                let tried = admission.trials.iter();
                let (charged, idle): (Vec<_>, Vec<_>) =
                    tried.partition(|trial| trial.has_charged());
                let tried = charged.into_iter().map(|trial| &trial.case);
                let counted = Counted {
                    pipeline: Arc::clone(self),
                    cases: iter::once(&admission.case).chain(tried).cloned().collect(),
                    idle: idle.into_iter().map(|trial| trial.case.clone()).collect(),
                };
                let counted = Some(Arc::new(counted));
                (admission.decision.clone(), Charge { counted })
            }
            None => (
                Decision::of_nothing(self.clock.wall_now()),
                Charge::nothing(),
            ),
        }
    }
}

impl Charge {
    /// For requests that nothing counts: exempt ones, or while the store cannot answer.
    const fn nothing() -> Self {
        Self { counted: None }
    }

    /// Charges `cost` more to every quota that counted the request.
    pub fn more(&self, cost: u64) -> StoreFuture<(), Error> {
        self.record(None, cost)
    }

    /// Charges `cost` more to one rule. It must be one that counts the request.
    pub fn to(&self, rule: &str, cost: u64) -> StoreFuture<(), Error> {
        match &self.counted {
            Some(counted) if !counted.has_rule(rule) => {
                let expected = "a rule that counts this request";
                StoreFuture::ready(Err(Invalid::new("rule name", rule, expected).into()))
            }
            _ => self.record(Some(rule), cost),
        }
    }

    fn record(&self, rule: Option<&str>, cost: u64) -> StoreFuture<(), Error> {
        let Some(Counted {
            pipeline, cases, ..
        }) = self.counted.as_deref()
        else {
            return StoreFuture::ready(Ok(()));
        };
        let now = pipeline.clock.now();
        let meant = cases
            .iter()
            .filter(|case| rule.is_none_or(|rule| case.has_rule(rule)));
        let answers = meant.map(|case| case.record(pipeline.store_of(case), rule, cost, now));
        StoreFuture::all(answers.map(|answer| answer.map(|verdict| Ok(verdict.map(drop)?))))
    }
}

impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge").finish_non_exhaustive()
    }
}
