//! Charging more once it is known what a request has cost.

use std::fmt;
use std::sync::Arc;

use super::case::Case;
use super::{Admission, Gate};
use crate::decision::Decision;
use crate::error::{Error, Invalid};
use crate::store::Answer;

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
    counted: Option<Arc<(Arc<Gate>, Case)>>,
}

impl Gate {
    /// What handlers are told of a request that goes on.
    pub(crate) fn for_handlers(
        self: &Arc<Self>,
        admission: Option<&Admission>,
    ) -> (Decision, Charge) {
        match admission {
            Some(admission) => {
                let charge = Charge::new(Arc::clone(self), admission.case.clone());
                (admission.decision.clone(), charge)
            }
            None => (Decision::of_nothing(self.clock.now()), Charge::nothing()),
        }
    }
}

impl Charge {
    fn new(gate: Arc<Gate>, case: Case) -> Self {
        Self {
            counted: Some(Arc::new((gate, case))),
        }
    }

    /// For requests that nothing counts: exempt ones, or while the store cannot answer.
    const fn nothing() -> Self {
        Self { counted: None }
    }

    /// Charges `cost` more to every quota that counted the request.
    pub fn more(&self, cost: u64) -> Answer<(), Error> {
        self.record(None, cost)
    }

    /// Charges `cost` more to one rule. It must be one that counts the request.
    pub fn to(&self, rule: &str, cost: u64) -> Answer<(), Error> {
        match &self.counted {
            Some(counted) if !counted.1.has_rule(rule) => {
                let expected = "a rule that counts this request";
                Answer::ready(Err(Invalid::new("rule name", rule, expected).into()))
            }
            _ => self.record(Some(rule), cost),
        }
    }

    fn record(&self, rule: Option<&str>, cost: u64) -> Answer<(), Error> {
        let Some((gate, case)) = self.counted.as_deref() else {
            return Answer::ready(Ok(()));
        };
        let answer = case.record(gate.store_of(case), rule, cost, gate.clock.now());
        answer.map(|verdict| verdict.map(drop).map_err(Error::from))
    }
}

impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge").finish_non_exhaustive()
    }
}
