//! Requests that a quota turns away.

use super::{Rejection, RequestPipeline, Snapshot};
use crate::clock::Timestamp;
use crate::decision::Decision;
use crate::head::RequestHead;
use crate::headers::{Label, Standing};
use crate::observe::{Denied, Tally};
use crate::policy::{Caller, PlannedCheck};
use crate::response::{Denial, Terms};

/// Whom a quota turns away, and what is known of it.
pub(super) struct DenialContext<'a> {
    pub(super) rules: &'a Snapshot,
    pub(super) entry: &'a PlannedCheck,
    pub(super) label: &'a Label,
    pub(super) policy: &'a Tally,
    pub(super) endpoint: &'a Tally,
    pub(super) caller: Caller<'a>,
    pub(super) tier: usize,
}

impl RequestPipeline {
    /// What those are told who are turned away. `several` are all quotas of the request; without
    /// them, it is about the one that turns it away.
    pub(super) fn reject_by_quota(
        &self,
        bound: &DenialContext<'_>,
        several: &[Standing<'_>],
        decision: Decision,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Rejection {
        let DenialContext { rules, entry, .. } = *bound;
        let binding = Standing::new(bound.label, *decision.usage());
        let terms = Terms {
            quotas: several,
            tier: Some(rules.policy.tiers().name(bound.tier)),
            suggestion: rules.policy.terms(entry).suggestion.as_deref(),
            message: rules.messages[entry.terms].as_ref(),
        };
        let denial = Denial::by_rule(*head, binding, decision.at(), terms);
        let denied = Denied {
            endpoint: bound.endpoint,
            policy: bound.policy,
            caller: bound.caller.known_by(),
            address: bound.caller.ip,
            counter: rules.policy.line(entry).counter.id(),
            until: until(&decision, now),
            now,
        };
        Rejection {
            response: self.reject_denied(&denial, &denied, rules.style()),
            decision: Some(decision),
        }
    }
}

/// When whoever is turned away may come back, by this clock: the store may have another.
fn until(decision: &Decision, now: Timestamp) -> Option<Timestamp> {
    let (at, reset_at) = (decision.at().as_micros(), decision.reset_at().as_micros());
    let wait = reset_at.saturating_sub(at);
    let is_hopeless = decision.is_hopeless();
    (!is_hopeless).then(|| Timestamp::from_micros(now.as_micros().saturating_add(wait)))
}
