//! The one route of a request: evaluate, decide, conclude.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::admission::WaitsFor;
use super::context::{CountedIn, RequestContext};
use super::failure::FailurePlan;
use super::resolve::Resolution;
use super::tier::TierLookup;
use super::{Admission, Evaluation, PendingDecision, Rejection, RequestPipeline, Snapshot};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::head::RequestHead;
use crate::policy::PlannedCheck;
use crate::store;
use crate::usage::Usages;

impl RequestPipeline {
    /// Decides whether a request is admitted, and charges it if so.
    pub(crate) fn evaluate(self: &Arc<Self>, head: &RequestHead<'_>) -> Evaluation {
        // A guard without a reference count: most requests need nothing of it afterwards.
        let snapshot = &self.snapshot.load();
        let now = self.now();
        if self.telemetry.is_due(now) {
            self.tick(now);
        }
        // Passed by reference, because it is large. Moved only if the request needs it later.
        let context = &mut RequestContext::default();
        match self.resolve(snapshot, head, now, context) {
            Resolution::Exempt(reason, identity) => {
                return self.pass_exempt(snapshot, reason, identity.as_deref(), head, now);
            }
            Resolution::Reject(rejection) => return Evaluation::Reject(*rejection),
            Resolution::Limited => {}
        }
        match self.look_up_tier(snapshot, context.identity.as_ref(), now) {
            TierLookup::Known(tier) => {
                context.tier = tier;
                self.decide(snapshot, context, head, now)
            }
            TierLookup::Pending(name) => pending(snapshot, context, now, WaitsFor::Tier(name)),
        }
    }

    /// Passes the checks of a request to the store. Takes the context if the request needs it later.
    fn decide(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        context: &mut RequestContext,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Evaluation {
        // For the local fallback, the quotas were computed with the overrides.
        if context.counted_in == CountedIn::Store
            && let Some(overrides) = self.override_store()
        {
            if overrides.table().is_loading() {
                return pending(
                    snapshot,
                    context,
                    now,
                    WaitsFor::Overrides(overrides.loaded()),
                );
            }
            self.apply_overrides(overrides.table(), snapshot, context, now);
        }
        let store = self.store_of(context);
        let full_cost = |_, check: &PlannedCheck| Some(check.cost);
        let reply = context.with_batch(snapshot, full_cost, |batch| store.decide(batch, now));
        match reply.as_ready() {
            Some(result) => self.conclude(snapshot, context, result, head, now),
            None => pending(snapshot, context, now, WaitsFor::Store(reply)),
        }
    }

    /// Turns the reply of the store into the result of the evaluation. Takes the context if the
    /// response needs it.
    fn conclude(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        context: &mut RequestContext,
        result: &Result<Usages, StoreError>,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Evaluation {
        let usages = match result {
            Ok(usages) => usages,
            Err(error) => return self.decide_without_store(snapshot, context, error, head, now),
        };
        if let Err(error) = store::expect_len(usages, context.checks().len()) {
            return self.decide_without_store(snapshot, context, &error, head, now);
        }
        if context.counted_in == CountedIn::Store {
            self.store_answered(now);
        }
        let wall_offset = self.wall_offset(context.counted_in);
        let usages = &*context.with_block_ends(usages, wall_offset);
        let decision = context.decision(snapshot, usages).on_wall(wall_offset);
        if decision.is_denied() {
            let rejection = self.reject(snapshot, context, usages, decision, head, now);
            return Evaluation::Reject(rejection);
        }
        self.report_allowed(snapshot, context, &decision, head, now);
        self.report_dry_runs(snapshot, context, usages, head, now);
        let depends_on_response = context.depends_on_response();
        if snapshot.style().is_none() && !self.inserts_extensions && !depends_on_response {
            return Evaluation::Pass(None);
        }
        Evaluation::Pass(Some(Box::new(Admission {
            // Otherwise every request would change the reference count.
            pipeline: depends_on_response.then(|| Arc::clone(self)),
            snapshot: Arc::clone(snapshot),
            context: std::mem::take(context),
            usages: usages.clone(),
            decision,
        })))
    }

    /// Applies the failure modes of the rules after a failure of the store.
    #[cold]
    fn decide_without_store(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        context: &mut RequestContext,
        error: &StoreError,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Evaluation {
        self.store_failed(error, now);
        match context.on_store_failure(snapshot, error) {
            FailurePlan::Reject => Evaluation::Reject(self.reject_unavailable(snapshot, head, now)),
            FailurePlan::PassUncounted => self.pass_uncounted(),
            FailurePlan::CountLocally => self.decide(snapshot, context, head, now),
        }
    }

    /// Continues an evaluation that waits. `pending` is taken when it is complete.
    pub(crate) fn poll_pending(
        self: &Arc<Self>,
        pending: &mut Option<PendingDecision>,
        head: &RequestHead<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Box<Admission>>, Rejection>> {
        loop {
            let Some(waiting) = pending else {
                #[expect(clippy::panic, reason = "as every future may; the alternative hangs")]
                {
                    panic!("a decision was polled after its completion");
                }
            };
            let result = match &mut waiting.waits_for {
                WaitsFor::Tier(name) => {
                    let name = ready!(name.as_mut().poll(cx));
                    waiting.context.tier = waiting.snapshot.tier(name.as_deref(), &self.telemetry);
                    None
                }
                WaitsFor::Overrides(loading) => ready!(Pin::new(loading).poll(cx)).err().map(Err),
                WaitsFor::Store(future) => Some(ready!(Pin::new(future).poll(cx))),
            };
            let Some(waiting) = pending.take() else {
                continue;
            };
            let PendingDecision {
                snapshot,
                mut context,
                ..
            } = waiting;
            let now = self.now();
            let evaluation = match result {
                None => self.decide(&snapshot, &mut context, head, now),
                Some(result) => {
                    let took = now.duration_since(waiting.started_at);
                    self.telemetry.record_duration(took, true);
                    self.conclude(&snapshot, &mut context, &result, head, now)
                }
            };
            match evaluation {
                Evaluation::Pending(next) => *pending = Some(next),
                Evaluation::Pass(admission) => return Poll::Ready(Ok(admission)),
                Evaluation::Reject(rejection) => return Poll::Ready(Err(rejection)),
            }
        }
    }
}

/// Stores what is needed to continue, with the snapshot that the request began with.
fn pending(
    snapshot: &Arc<Snapshot>,
    context: &mut RequestContext,
    started_at: Timestamp,
    waits_for: WaitsFor,
) -> Evaluation {
    Evaluation::Pending(PendingDecision {
        snapshot: Arc::clone(snapshot),
        context: std::mem::take(context),
        started_at,
        waits_for,
    })
}
