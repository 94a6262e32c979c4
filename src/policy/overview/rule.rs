//! One rule of a policy.

use std::fmt;

use crate::policy::about::RuleKind;
use crate::policy::{Count, KeyBy, OnStoreFailure, Policy, Scaling};
use crate::quota::Quota;

/// One rule of a policy; see [`Overview`](super::Overview).
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct RuleView<'p> {
    /// Kind of the rule.
    pub kind: RuleKind,
    /// Name of the rule.
    pub name: &'p str,
    /// Path of the rule in a policy file: `categories.secrets`, `endpoints[3]`.
    pub path: &'p str,
    /// Key of the counters: `caller`, `ip`, `group+user`, or `all` for one shared counter.
    pub counted_per: &'p str,
    /// Quotas of each tier, the default tier first.
    pub tiers: Vec<TierQuotas<'p>>,
    /// Cost of each request; `None` if a closure computes it.
    pub cost: Option<u64>,
    /// Responses that count.
    pub count: &'p Count,
    /// Whether the rule is a dry run: it counts, but never denies.
    pub dry_run: bool,
    /// Whether responses to allowed requests report other rules; see [`Rule::quiet`](crate::policy::Rule::quiet).
    pub quiet: bool,
    /// Behaviour while the store is unavailable.
    pub on_store_failure: OnStoreFailure,
    /// Whether this is the global rule for unauthenticated callers.
    pub for_anonymous: bool,
    /// `counted_per` does not show whether callers without a dimension are counted.
    pub(super) key_by: &'p KeyBy,
    /// `scale` as the policy sets it.
    pub(super) scale: Option<bool>,
    /// `stack` as the policy sets it.
    pub(super) stack: Option<bool>,
}

/// Quotas of a rule for one tier.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TierQuotas<'p> {
    /// Name of the tier.
    pub tier: &'p str,
    /// Effect of the tier on the quotas.
    pub scaling: Scaling,
    /// Quotas for the tier.
    pub quotas: Vec<Quota>,
}

impl<'p> RuleView<'p> {
    pub(super) fn new(policy: &'p Policy, rule: usize) -> Self {
        let about = &policy.about.rules[rule];
        let settings = &policy.rules[about.settings];
        let [anonymous, _] = policy.about.globals;
        let for_anonymous = anonymous == Some(rule);
        let quotas = &policy.quotas[about.quotas.clone()];
        let tiers = (0..policy.tiers.len()).map(|tier| TierQuotas {
            tier: policy.tiers.name(tier),
            scaling: policy.scaling(about, tier),
            quotas: quotas.iter().map(|quota| *quota.quota(tier)).collect(),
        });
        Self {
            kind: about.kind,
            name: &settings.name,
            path: &settings.path,
            counted_per: match &about.key_by {
                KeyBy::Caller if for_anonymous => "ip",
                KeyBy::Caller => "caller",
                KeyBy::Dimensions { label, .. } => label,
            },
            tiers: tiers.collect(),
            cost: settings.cost.fixed(),
            count: &settings.count,
            dry_run: about.dry_run,
            quiet: about.quiet,
            on_store_failure: settings.on_store_failure,
            for_anonymous,
            key_by: &about.key_by,
            scale: about.scale,
            stack: about.stack,
        }
    }

    /// Returns the quotas for a tier, or those for the default tier if the name is unknown.
    #[must_use]
    pub fn quotas(&self, tier: &str) -> &[Quota] {
        let named = self.tiers.iter().find(|quotas| quotas.tier == tier);
        let tier = named.or(self.tiers.first());
        tier.map_or(&[], |tier| &tier.quotas)
    }
}

impl fmt::Debug for RuleView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RuleView({} {})", self.kind, self.name)
    }
}
