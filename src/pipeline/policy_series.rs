//! Metric series of quotas, registered with 0 before their first request.

use std::collections::HashSet;

use super::Snapshot;
use crate::headers::QuotaName;
use crate::identity::Chain;
use crate::identity_types::Identity;
use crate::observe::Telemetry;
use crate::policy::{PlanKind, Policy};

impl Snapshot {
    /// Registers the series of all quotas of the policy: for the client IP, for the dimensions of the
    /// identity sources, and for those that the rules name. The first event of a series is an
    /// increase then.
    pub(super) fn register_series(&self, telemetry: &Telemetry) {
        let names = quota_names(&self.policy, self.chain());
        telemetry.register_policies(names.iter().map(QuotaName::as_str));
    }
}

/// Returns the names of the quotas, each once, in the order of the plans.
fn quota_names(policy: &Policy, chain: &Chain) -> Vec<QuotaName> {
    let mut authenticated: Vec<&str> = chain.dimensions().collect();
    authenticated.dedup();
    let (mut checks, mut known, mut names) = (HashSet::new(), HashSet::new(), Vec::new());
    for (kind, check) in policy.all_checks() {
        if !checks.insert((kind, check.quota, check.key_by)) {
            continue;
        }
        let primary = match kind {
            PlanKind::Authenticated => &*authenticated,
            PlanKind::Unauthenticated | PlanKind::Preflight => &[Identity::IP],
        };
        let quota = policy.quota(check);
        for label in policy.key_by(check).possible_labels(primary) {
            for tier in 0..policy.tiers().len() {
                let name = QuotaName::new(label, &quota.counter, quota.quota(tier));
                names.extend(name.ok().filter(|name| known.insert(name.to_string())));
            }
        }
    }
    names
}
