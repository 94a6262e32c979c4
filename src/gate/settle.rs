//! What counts by outcome, once the outcome is known.

use http::StatusCode;

use super::{Admission, Gate, of_one};
use crate::error::StoreError;
use crate::observe;
use crate::store::Answer;

impl Gate {
    /// Gives back what does not count, now that the response is known. If it has to be waited
    /// for, the answer comes back.
    #[inline]
    pub(crate) fn settle(
        &self,
        admission: &mut Admission,
        status: StatusCode,
    ) -> Option<Answer<()>> {
        let Admission {
            case,
            verdict,
            decision,
        } = admission;
        if !case.is_by_outcome() {
            return None;
        }
        let mut one = of_one(*decision.usage(), decision.at());
        let usages = verdict.as_deref_mut().unwrap_or(&mut one);
        let answer = case.settle(usages, status, &*self.store, self.clock.now())?;
        if let Ok(settled) = case.decision(usages) {
            *decision = settled;
        }
        match answer.try_ready() {
            Ok(result) => {
                settled(result);
                None
            }
            Err(pending) => Some(pending),
        }
    }
}

/// A charge could not be given back: the caller has one less. That is no reason to fail.
pub(crate) fn settled(result: Result<(), StoreError>) {
    if let Err(error) = result {
        observe::store_failed(&error);
    }
}
