//! Responses to requests that are not admitted.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use smallvec::SmallVec;

use super::context::RequestContext;
use super::report::exceeded;
use super::{Rejection, RequestPipeline, Snapshot};
use crate::clock::Timestamp;
use crate::decision::Decision;
use crate::head::RequestHead;
use crate::headers::QuotaUsage;
use crate::observe::{Denied, Rejected};
use crate::policy::{Caller, PathRejection};
use crate::response::{Denial, DenialContext, respond};
use crate::usage::Usages;

/// `Retry-After` of responses while the store, or the keys of tokens, are unavailable.
pub(crate) const UNAVAILABLE_FOR: Duration = Duration::from_secs(1);

impl RequestPipeline {
    /// Rejects a request that a quota denies.
    #[inline(never)]
    pub(super) fn reject(
        &self,
        snapshot: &Snapshot,
        context: &RequestContext,
        usages: &Usages,
        decision: Decision,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Rejection {
        let binding = decision.binding().and_then(|index| {
            let metadata = context.metadata(snapshot, index).ok()?;
            Some((index, context.quota_name(snapshot, index).ok()?, metadata))
        });
        let Some((index, name, metadata)) = binding else {
            return self.reject_unavailable(snapshot, head, now);
        };
        let (policy, check) = (&snapshot.policy, &context.checks()[index]);
        let quota_usages = context.quota_usages(snapshot, usages, decision.wall_offset());
        let quota_usages: SmallVec<[QuotaUsage<'_>; 4]> = quota_usages.collect();
        let details = DenialContext {
            quotas: &quota_usages,
            tier: Some(policy.tiers().name(context.tier)),
            suggestion: policy.rule(check).suggestion.as_deref(),
            message: snapshot.messages[usize::from(check.rule)].as_ref(),
        };
        let binding = QuotaUsage::new(name, *decision.usage());
        let denial = Denial::by_rule(*head, binding, decision.at(), details)
            .with_jitter(snapshot.retry_after_jitter());
        let caller = context.caller();
        let denied = Denied {
            endpoint: context.endpoint(snapshot),
            policy: &metadata.counters,
            caller: caller.subject(),
            address: caller.ip,
            #[cfg(feature = "admin")]
            tier: context.named_tier(snapshot),
            counter: policy.quota(check).counter.id(),
            cost: check.cost,
            until: until(&decision, now),
            now,
        };
        Rejection {
            response: self.respond_denied(snapshot, &denial, &denied),
            decision: Some(decision),
        }
    }

    /// Rejects a request because the store cannot answer and a rule requires it.
    pub(super) fn reject_unavailable(
        &self,
        snapshot: &Snapshot,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Rejection {
        self.telemetry.unavailable();
        let denial = Denial::unavailable(*head, UNAVAILABLE_FOR, self.wall_at(now));
        render(snapshot, &denial).into()
    }

    /// Rejects a request because of its path.
    #[cold]
    pub(super) fn reject_path(
        &self,
        snapshot: &Snapshot,
        rejection: PathRejection,
        client_ip: Option<IpAddr>,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Rejection {
        let (message, at) = (rejection.message(), self.wall_at(now));
        let denial = match rejection {
            PathRejection::TooLong => Denial::path_too_long(*head, message, at),
            _ => Denial::invalid_path(*head, message, at),
        };
        let reason = rejection.reason();
        self.reject_uncounted(snapshot, &denial, reason, client_ip, now)
            .into()
    }

    /// Reports and renders the rejection of a request that is not counted. `client_ip` is the
    /// network that counts as one client, `now` an instant of the monotonic clock.
    #[cold]
    pub(super) fn reject_uncounted(
        &self,
        snapshot: &Snapshot,
        denial: &Denial<'_>,
        reason: &'static str,
        client_ip: Option<IpAddr>,
        now: Timestamp,
    ) -> Response<Bytes> {
        let caller = Caller {
            identity: None,
            ip: client_ip,
        };
        self.telemetry.rejected(&Rejected {
            reason,
            head: denial.head(),
            caller: caller.subject(),
            request_id: denial.request_id().as_str(),
            now,
        });
        render(snapshot, denial)
    }

    /// Reports and renders a denial.
    pub(super) fn respond_denied(
        &self,
        snapshot: &Snapshot,
        denial: &Denial<'_>,
        denied: &Denied<'_>,
    ) -> Response<Bytes> {
        self.telemetry
            .denied(denied, || exceeded(denial, denied.endpoint, denied.cost));
        render(snapshot, denial)
    }
}

/// Returns the response of the snapshot's renderer.
pub(super) fn render(snapshot: &Snapshot, denial: &Denial<'_>) -> Response<Bytes> {
    respond(snapshot.renderer(), snapshot.style(), denial)
}

/// Returns when the request would be admitted, on this process's clock: the store may have another.
/// `None` if that is never.
fn until(decision: &Decision, now: Timestamp) -> Option<Timestamp> {
    let (at, reset_at) = (decision.at().as_micros(), decision.reset_at().as_micros());
    let wait = reset_at.saturating_sub(at);
    let can_never_succeed = decision.can_never_succeed();
    (!can_never_succeed).then(|| Timestamp::from_micros(now.as_micros().saturating_add(wait)))
}
