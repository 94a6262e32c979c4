//! Snapshot that are tried out: they count and are told of, and deny nobody.

use http::StatusCode;

use super::context::RequestContext;
use super::tell::exceeded;
use super::{Admission, Evaluation, RequestPipeline};
use crate::clock::{Clock, SharedClock, Timestamp};
use crate::decision::Decision;
use crate::head::RequestHead;
use crate::headers::Standing;
use crate::observe::Watch;
use crate::response::Denial;
use crate::store::{OverrideStore, Store, StoreFuture};
use crate::usage::Usages;

/// One rule that is tried out on a request, and what the store says of it.
#[derive(Debug)]
pub(crate) struct DryRun {
    pub(super) case: RequestContext,
    pub(super) verdict: Usages,
}

/// Decides each on its own: what one would deny, another still counts. A store that cannot
/// answer has nothing to say of them.
pub(super) async fn decide(
    cases: Vec<RequestContext>,
    tier: usize,
    store: &dyn Store,
    clock: &SharedClock,
    watch: &Watch,
) -> Vec<DryRun> {
    let mut trials = Vec::with_capacity(cases.len());
    for mut case in cases {
        let now = clock.now();
        case.set_tier(tier);
        case.set_overrides(
            store.overrides().map(OverrideStore::table),
            clock.wall_at(now),
        );
        match case.decide(store, now).await {
            Ok(verdict) => trials.push(DryRun { case, verdict }),
            Err(error) => watch.store_failed(&error, now),
        }
    }
    trials
}

impl DryRun {
    /// Whether it has charged the request, and not only told that it would have denied it.
    pub(super) fn has_charged(&self) -> bool {
        self.verdict.is_allowed()
    }

    /// Tells those who watch that it would have denied the request.
    fn tell(&self, head: &RequestHead<'_>, watch: &Watch, now: Timestamp) {
        let Ok(decision) = self.case.decision(&self.verdict) else {
            return;
        };
        let case = &self.case;
        let found = case.binding(&decision).and_then(|bound| {
            let named = case.named(bound.1).ok()?;
            Some((case.label(bound).ok()?, named))
        });
        let Some((label, named)) = found else {
            return;
        };
        let standing = Standing::new(label, *decision.usage());
        let denial = Denial::limited(*head, standing, decision.at());
        let caller = case.caller().known_by();
        watch.would_deny(&named.tally, &caller, now, || {
            exceeded(&denial, case.endpoint())
        });
    }

    /// Gives back what does not count.
    pub(super) fn settle(
        &mut self,
        status: StatusCode,
        store: &dyn Store,
        clock: &dyn Clock,
    ) -> Option<StoreFuture<()>> {
        self.case
            .settle(&mut self.verdict, status, store, clock.now())
    }
}

impl RequestPipeline {
    /// Tells of the trials, and goes on with those that the response, or the handler, has
    /// something to say to.
    pub(super) fn with_trials(
        &self,
        asked: Evaluation,
        case: RequestContext,
        mut trials: Vec<DryRun>,
        head: &RequestHead<'_>,
    ) -> Evaluation {
        for trial in trials.iter().filter(|trial| !trial.has_charged()) {
            trial.tell(head, &self.watch, self.clock.now());
        }
        if !self.tells_handlers {
            trials.retain(|trial| trial.has_charged() && trial.case.is_by_outcome());
        }
        match asked {
            _ if trials.is_empty() => asked,
            Evaluation::Allowed(Some(mut admission)) => {
                admission.trials = trials;
                Evaluation::Allowed(Some(admission))
            }
            // Nothing else is to be done about the response.
            Evaluation::Allowed(None) => Evaluation::Allowed(Some(Box::new(Admission {
                case,
                verdict: None,
                decision: Decision::of_nothing(self.clock.wall_now()),
                trials,
            }))),
            other => other,
        }
    }
}
