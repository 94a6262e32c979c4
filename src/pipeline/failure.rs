//! What happens to a request while the store cannot answer.

use super::Snapshot;
use super::context::{CountedIn, RequestContext};
use crate::batch::Group;
use crate::error::{StoreError, StoreErrorKind};
use crate::policy::{OnStoreFailure, PlannedCheck};
use crate::store::AppliedOverride;

/// What follows from a failure of the store for one request.
pub(super) enum FailurePlan {
    /// A rule requires the store.
    Reject,
    PassUncounted,
    /// The context has been reduced to the checks that are counted in this process.
    CountLocally,
}

impl RequestContext {
    /// Applies the failure modes of the rules: the strictest of them decides.
    ///
    /// Dry runs are not evaluated meanwhile.
    #[cold]
    pub(super) fn on_store_failure(
        &mut self,
        snapshot: &Snapshot,
        error: &StoreError,
    ) -> FailurePlan {
        if self.counted_in == CountedIn::LocalFallback {
            return FailurePlan::PassUncounted;
        }
        let policy = &snapshot.policy;
        let mode = |check: &PlannedCheck| policy.on_store_failure(&self.planned, check);
        let is_local = |check: &PlannedCheck| match mode(check) {
            OnStoreFailure::Local => true,
            // Passing uncounted is for outages. A permanent error, such as a wrong password, would
            // switch the limits off until an operator reads the log. A store that is full may
            // have been filled by the callers themselves.
            OnStoreFailure::Allow => error.kind() != StoreErrorKind::Unavailable,
            OnStoreFailure::Deny => false,
        };
        let mut live = self.checks().iter();
        if live.any(|check| check.group == Group::Live && mode(check) == OnStoreFailure::Deny) {
            return FailurePlan::Reject;
        }
        let mut shares = Vec::new();
        let mut kept = smallvec::SmallVec::new();
        for (index, check) in self.checks().iter().enumerate() {
            let quota = self.quota(snapshot, index);
            // A blocked caller stays blocked, whatever the failure mode.
            if check.group == Group::Live && (quota.is_blocked() || is_local(check)) {
                let share = AppliedOverride {
                    quota: policy.local_share_of(quota),
                    blocked_until: self.blocked_until(index),
                };
                shares.push(self.quota_override_of(snapshot, check, share));
                kept.push(*check);
            }
        }
        let recorded = self.planned.recorded.iter().copied().filter(is_local);
        let recorded: Vec<PlannedCheck> = recorded.collect();
        if kept.is_empty() {
            return FailurePlan::PassUncounted;
        }
        self.planned.checks = kept;
        self.planned.recorded = recorded;
        self.overrides = Some(shares.into());
        self.counted_in = CountedIn::LocalFallback;
        FailurePlan::CountLocally
    }
}
