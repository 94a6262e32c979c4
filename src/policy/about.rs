//! What a policy is made of, for people who ask. No request looks at it.

use std::fmt;
use std::ops::Range;

use super::key_by::KeyBy;

/// What a rule is for. The more specific comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleKind {
    /// One route.
    Endpoint,
    /// All endpoints of a category, which share its counters.
    Category,
    /// All requests of callers who are authenticated, or of those who are not.
    Global,
    /// CORS preflights, in place of the global rule.
    Preflight,
    /// All requests, whatever else counts them.
    AlwaysOn,
}

impl RuleKind {
    /// Returns the name: `endpoint`, `category`, `global`, `preflight`, `always-on`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Endpoint => "endpoint",
            Self::Category => "category",
            Self::Global => "global",
            Self::Preflight => "preflight",
            Self::AlwaysOn => "always-on",
        }
    }
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// All rules and endpoints, by number.
#[derive(Debug)]
pub(super) struct About {
    pub(super) rules: Box<[RuleAbout]>,
    /// By number.
    pub(super) endpoints: Box<[EndpointAbout]>,
    /// The rules for unauthenticated and for authenticated callers.
    pub(super) globals: [Option<usize>; 2],
    pub(super) preflight: Option<usize>,
    pub(super) always_on: Box<[usize]>,
    pub(super) exempt_routes: Box<[String]>,
}

/// One rule that has quotas.
#[derive(Debug)]
pub(super) struct RuleAbout {
    pub(super) kind: RuleKind,
    /// Its quotas.
    pub(super) quotas: Range<usize>,
    pub(super) settings: usize,
    pub(super) key_by: KeyBy,
    /// Tiers do not multiply it.
    pub(super) unscaled: bool,
    /// Whether the rule has its own quotas, by tier.
    pub(super) has_tier_quotas: Box<[bool]>,
    pub(super) dry_run: bool,
}

/// One endpoint.
#[derive(Debug)]
pub(super) struct EndpointAbout {
    pub(super) route: Box<str>,
    /// The rule that it has for itself.
    pub(super) own: Option<usize>,
    pub(super) category: Option<usize>,
    pub(super) without_global: bool,
}
