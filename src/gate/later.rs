//! Requests that have to wait before it is known what becomes of them.

use std::sync::Arc;

use super::case::Case;
use super::tier::{self, Asked as TierAsked};
use super::{Asked, Gate, Judged, Pending, trial};
use crate::head::RequestHead;
use crate::store::OverrideStore;

impl Gate {
    /// Puts a case to the store once its tier is known, and then the rules that are tried out.
    pub(super) fn judge_later(&self, mut case: Case, trials: Vec<Case>, tier: TierAsked) -> Asked {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let watch = Arc::clone(&self.watch);
        Asked::Pending(Box::new(Pending::Several(Box::pin(async move {
            let tier = match tier {
                TierAsked::Known(tier) => tier,
                TierAsked::Pending(name) => {
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
                    trial::decide(trials, tier, &*store, &clock, &watch).await
                }
                // Whoever is turned away anyway is not counted by what is tried out either.
                _ => Vec::new(),
            };
            Judged {
                case,
                verdict,
                trials,
                asked_at,
            }
        }))))
    }

    /// What follows from what the store has said.
    pub(crate) fn conclude(&self, judged: Judged, head: &RequestHead<'_>) -> Asked {
        let Judged {
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
