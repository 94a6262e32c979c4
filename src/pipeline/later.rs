//! Requests that have to wait before it is known what becomes of them.

use std::sync::Arc;

use super::context::RequestContext;
use super::tier::{self, TierLookup};
use super::{Evaluation, Pending, RequestPipeline, StoreOutcome, dry_run};
use crate::head::RequestHead;
use crate::store::OverrideStore;

impl RequestPipeline {
    /// Puts a case to the store once its tier is known, and then the rules that are tried out.
    pub(super) fn decide_later(
        &self,
        mut case: RequestContext,
        trials: Vec<RequestContext>,
        tier: TierLookup,
    ) -> Evaluation {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let watch = Arc::clone(&self.watch);
        Evaluation::Pending(Box::new(Pending::Several(Box::pin(async move {
            let tier = match tier {
                TierLookup::Known(tier) => tier,
                TierLookup::Pending(name) => {
                    tier::number(case.rules(), name.await.as_deref(), &watch)
                }
            };
            let asked_at = clock.now();
            case.set_tier(tier);
            case.set_overrides(
                store.overrides().map(OverrideStore::table),
                clock.wall_at(asked_at),
            );
            let answer = case.decide(&*store, asked_at);
            let verdict = answer.await;
            let trials = match &verdict {
                Ok(verdict) if verdict.is_allowed() => {
                    dry_run::decide(trials, tier, &*store, &clock, &watch).await
                }
                // Whoever is turned away anyway is not counted by what is tried out either.
                _ => Vec::new(),
            };
            StoreOutcome {
                case,
                verdict,
                trials,
                asked_at,
            }
        }))))
    }

    /// What follows from what the store has said.
    pub(crate) fn conclude(&self, judged: StoreOutcome, head: &RequestHead<'_>) -> Evaluation {
        let StoreOutcome {
            case,
            verdict,
            trials,
            asked_at,
        } = judged;
        let now = self.clock.now();
        self.watch.took(now.duration_since(asked_at), true);
        let asked = self.judged(&case, verdict, (head, now), || case.clone());
        self.with_trials(asked, case, trials, head)
    }
}
