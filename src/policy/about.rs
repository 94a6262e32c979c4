//! Description of a policy for explanations and overviews. Not used while requests are evaluated.

use std::ops::Range;

use super::key_by::KeyBy;
use crate::error::named;

/// Kind of a rule, by the requests that it applies to. The most specific kind comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleKind {
    /// One route.
    Endpoint,
    /// All endpoints of a category, which share its counters.
    Category,
    /// All requests of authenticated callers, or all requests of unauthenticated callers.
    Global,
    /// CORS preflights, in place of the global rule.
    Preflight,
    /// All requests, in addition to the other rules.
    AlwaysOn,
}

named!(RuleKind {
    Endpoint => "endpoint",
    Category => "category",
    Global => "global",
    Preflight => "preflight",
    AlwaysOn => "always-on",
});

/// Description of all rules and endpoints of a policy. Fields refer to them by index.
#[derive(Debug)]
pub(super) struct About {
    pub(super) rules: Box<[RuleAbout]>,
    /// In the order of their indexes.
    pub(super) endpoints: Box<[EndpointAbout]>,
    /// Index of the global rule for unauthenticated callers, and for authenticated ones.
    pub(super) globals: [Option<usize>; 2],
    pub(super) preflight: Option<usize>,
    pub(super) always_on: Box<[usize]>,
    pub(super) exempt_routes: Box<[String]>,
}

/// Description of one rule that has quotas.
#[derive(Debug)]
pub(super) struct RuleAbout {
    pub(super) kind: RuleKind,
    /// Indexes of its quotas.
    pub(super) quotas: Range<usize>,
    pub(super) settings: usize,
    pub(super) key_by: KeyBy,
    /// Whether tiers do not multiply the quotas.
    pub(super) unscaled: bool,
    /// `scale` as the policy sets it.
    pub(super) scale: Option<bool>,
    /// `stack` as the policy sets it.
    pub(super) stack: Option<bool>,
    /// Whether the rule has its own quotas, by tier.
    pub(super) has_tier_quotas: Box<[bool]>,
    pub(super) dry_run: bool,
    pub(super) quiet: bool,
}

/// Description of one endpoint.
#[derive(Debug)]
pub(super) struct EndpointAbout {
    pub(super) route: Box<str>,
    /// Index of the rule with the endpoint's own quotas.
    pub(super) own: Option<usize>,
    pub(super) category: Option<usize>,
    pub(super) without_global: bool,
}
