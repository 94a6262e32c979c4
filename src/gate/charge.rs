//! Charging more once it is known what a request has cost.

use std::fmt;
use std::sync::Arc;

use super::Gate;
use super::case::Case;
use crate::error::{Error, Invalid};
use crate::store::Answer;

/// Charges a request more than it was charged on entry, once the handler knows: the tokens of
/// a language model, the rows of an export.
///
/// An extractor for axum handlers, and an extension of every request that was let through, if
/// the layer was built with `handlers_see_decision`. What is charged has happened, so it may
/// go over the limit; the next request pays for it. What was charged is never given back.
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
    gate: Arc<Gate>,
    case: Arc<Case>,
}

impl Charge {
    pub(super) fn new(gate: Arc<Gate>, case: Case) -> Self {
        Self {
            gate,
            case: Arc::new(case),
        }
    }

    /// Charges `cost` more to every quota that counted the request.
    pub fn more(&self, cost: u64) -> Answer<(), Error> {
        self.record(None, cost)
    }

    /// Charges `cost` more to one rule. It must be one that counts the request.
    pub fn to(&self, rule: &str, cost: u64) -> Answer<(), Error> {
        if self.case.has_rule(rule) {
            return self.record(Some(rule), cost);
        }
        let expected = "a rule that counts this request";
        Answer::ready(Err(Invalid::new("rule name", rule, expected).into()))
    }

    fn record(&self, rule: Option<&str>, cost: u64) -> Answer<(), Error> {
        let Gate { store, clock, .. } = &*self.gate;
        let answer = self.case.record(&**store, rule, cost, clock.now());
        answer.map(|verdict| verdict.map(drop).map_err(Error::from))
    }
}

impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge").finish_non_exhaustive()
    }
}
