//! One rule, as its policy understands it.

use std::fmt;

use crate::policy::about::{RuleAbout, RuleKind};
use crate::policy::cost::Cost;
use crate::policy::{Count, KeyBy, OnStoreFailure, Plan, Policy, RuleSettings, Scaling};
use crate::quota::Quota;

/// One rule of a policy; see [`Overview`](super::Overview).
#[derive(Clone, Copy)]
pub struct RuleView<'p> {
    policy: &'p Policy,
    rule: usize,
}

impl<'p> RuleView<'p> {
    pub(super) const fn new(policy: &'p Policy, rule: usize) -> Self {
        Self { policy, rule }
    }

    #[cfg(any(feature = "admin", feature = "config"))]
    pub(super) const fn policy(&self) -> &'p Policy {
        self.policy
    }

    pub(super) fn about(&self) -> &'p RuleAbout {
        &self.policy.about.rules[self.rule]
    }

    pub(super) fn settings(&self) -> &'p RuleSettings {
        &self.policy.rules[self.about().settings]
    }

    /// What it is for.
    #[must_use]
    pub fn kind(&self) -> RuleKind {
        self.about().kind
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'p str {
        &self.settings().name
    }

    /// Where a policy file has it: `categories.secrets`, `endpoints[3]`.
    #[must_use]
    pub fn path(&self) -> &'p str {
        &self.settings().path
    }

    /// What it counts per: `caller`, `ip`, `group+user`, or `all` for the whole instance.
    #[must_use]
    pub fn counted_per(&self) -> &'p str {
        match &self.about().key_by {
            KeyBy::Caller if self.is_for_anonymous() => "ip",
            KeyBy::Caller => "caller",
            KeyBy::Dimensions { who, .. } => who,
        }
    }

    /// Its quotas for a tier; for the default one, if there is none of this name.
    #[must_use]
    pub fn quotas(&self, tier: &str) -> impl ExactSizeIterator<Item = &'p Quota> + use<'p> {
        let tier = self.tier(tier);
        let quotas = &self.policy.quotas[self.about().quotas.clone()];
        quotas.iter().map(move |quota| quota.quota(tier))
    }

    /// What a tier makes of its quotas.
    #[must_use]
    pub fn scaling(&self, tier: &str) -> Scaling {
        self.policy.scaling(self.about(), self.tier(tier))
    }

    fn tier(&self, name: &str) -> usize {
        self.policy.tiers.index(name).unwrap_or_default()
    }

    /// What each request costs; `None` if a closure says it.
    #[must_use]
    pub fn cost(&self) -> Option<u64> {
        match self.settings().cost {
            Cost::Fixed(cost) => Some(cost),
            Cost::Of(_) => None,
        }
    }

    /// Which responses count.
    #[must_use]
    pub fn count(&self) -> &'p Count {
        &self.settings().count
    }

    /// Whether it is only tried out.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.about().dry_run
    }

    /// What happens while the store cannot answer.
    #[must_use]
    pub fn on_store_failure(&self) -> OnStoreFailure {
        self.settings().on_store_failure
    }

    /// Whether it is the global rule for those who are not authenticated.
    #[must_use]
    pub fn is_for_anonymous(&self) -> bool {
        let [anonymous, _] = self.policy.about.globals;
        anonymous == Some(self.rule)
    }

    /// Whether it is in a plan, in force or tried out.
    pub(super) fn is_in(&self, plan: &Plan) -> bool {
        let quotas = &self.about().quotas;
        let mut checks = plan.checks.iter();
        checks.any(|check| quotas.contains(&usize::from(check.quota)))
    }
}

impl PartialEq for RuleView<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.policy, other.policy) && self.rule == other.rule
    }
}

impl Eq for RuleView<'_> {}

impl fmt::Debug for RuleView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RuleView({} {})", self.kind(), self.name())
    }
}
