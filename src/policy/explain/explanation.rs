//! What is answered.

use std::fmt;

use crate::clock::Timestamp;
use crate::policy::{Count, Exemption, OnStoreFailure, PathRejection, RuleKind};
use crate::quota::Quota;

/// How a policy counts a request, and why; see [`Policy::explain`](crate::policy::Policy::explain).
///
/// Its `Display` is for people; [`colored`](Self::colored) for those at a terminal. It names
/// whose counters are meant, which its `Debug` does not.
#[derive(Clone, PartialEq)]
pub struct Explanation {
    pub(super) request: String,
    pub(super) caller: String,
    pub(super) at: Option<Timestamp>,
    pub(super) tier: String,
    pub(super) multiplier: f64,
    pub(super) tier_source: TierSource,
    pub(super) endpoints: Vec<String>,
    pub(super) rejection: Option<PathRejection>,
    pub(super) exemption: Option<(Exemption, String)>,
    pub(super) counted_by: Vec<AppliedRule>,
    pub(super) not_counted_by: Vec<SkippedRule>,
}

/// Where a caller's tier comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TierSource {
    /// The policy's table gives it to the caller.
    Table,
    /// The identity says it.
    Identity,
    /// The identity says this one, which there is not; so it is the default one.
    Unknown(String),
    /// Nobody says any, so it is the default one.
    Default,
}

impl Explanation {
    /// What was asked for: `GET /v1/secrets/42`.
    #[must_use]
    pub fn request(&self) -> &str {
        &self.request
    }

    /// What the caller is known by: `user=alice`, `ip=203.0.113.9`.
    #[must_use]
    pub fn caller(&self) -> &str {
        &self.caller
    }

    /// The instant that was asked about.
    #[must_use]
    pub const fn at(&self) -> Option<Timestamp> {
        self.at
    }

    /// The caller's tier.
    #[must_use]
    pub fn tier(&self) -> &str {
        &self.tier
    }

    /// Where the tier comes from.
    #[must_use]
    pub const fn tier_source(&self) -> &TierSource {
        &self.tier_source
    }

    /// What the tier multiplies quotas by.
    #[must_use]
    pub const fn multiplier(&self) -> f64 {
        self.multiplier
    }

    /// The route of the endpoint, as the policy writes it; `None` if no endpoint matches. Of
    /// several, the one that statistics and metrics name.
    #[must_use]
    pub fn endpoint(&self) -> Option<&str> {
        self.endpoints.first().map(String::as_str)
    }

    /// The routes of all endpoints that a reading of the path reaches. The rules of all of them
    /// count the request.
    #[must_use]
    pub fn endpoints(&self) -> impl ExactSizeIterator<Item = &str> {
        self.endpoints.iter().map(String::as_str)
    }

    /// Why the request is rejected because of its path, with 400 or 414. Then nothing is counted.
    #[must_use]
    pub const fn rejection(&self) -> Option<PathRejection> {
        self.rejection
    }

    /// Whether, and by what kind of exemption, the request is not counted at all.
    #[must_use]
    pub fn exemption(&self) -> Option<Exemption> {
        self.exemption.as_ref().map(|(why, _)| *why)
    }

    /// What it is in the policy that exempts the request, for people.
    #[must_use]
    pub fn exempt_because(&self) -> Option<&str> {
        self.exemption.as_ref().map(|(_, because)| &**because)
    }

    /// Every quota that counts the request, the most specific rules first. Those that are only
    /// tried out are among them.
    #[must_use]
    pub fn counted_by(&self) -> impl ExactSizeIterator<Item = &AppliedRule> {
        self.counted_by.iter()
    }

    /// The rules that one could have thought of, and why they do not count the request.
    #[must_use]
    pub fn not_counted_by(&self) -> impl ExactSizeIterator<Item = &SkippedRule> {
        self.not_counted_by.iter()
    }
}

impl fmt::Debug for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Explanation")
            .field("endpoints", &self.endpoints)
            .field("rejection", &self.rejection)
            .field("exemption", &self.exemption())
            .field("counted_by", &self.counted_by)
            .field("not_counted_by", &self.not_counted_by)
            .finish_non_exhaustive()
    }
}

/// One quota that counts a request.
#[derive(Clone, PartialEq)]
pub struct AppliedRule {
    pub(super) kind: RuleKind,
    pub(super) rule: String,
    pub(super) policy: String,
    pub(super) counter: String,
    pub(super) quota: Quota,
    pub(super) base: Quota,
    pub(super) scaling: Scaling,
    pub(super) cost: u64,
    pub(super) count: Count,
    pub(super) dry_run: bool,
    pub(super) on_store_failure: OnStoreFailure,
    pub(super) message: Option<String>,
    pub(super) suggestion: Option<String>,
}

/// What a tier makes of a quota.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scaling {
    /// Nothing: it is the same for all tiers.
    Never,
    /// So many times as much.
    Times(f64),
    /// The rule has a number of its own for the tier.
    Own,
}

impl AppliedRule {
    /// What the rule is for.
    #[must_use]
    pub const fn kind(&self) -> RuleKind {
        self.kind
    }

    /// The name of the rule.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// What headers and logs call it: `user:secrets:1h`.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// The label of its counter: `user=alice`, `group=a, user=b`, `all callers`.
    #[must_use]
    pub fn counter(&self) -> &str {
        &self.counter
    }

    /// The quota, for this caller's tier.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// The quota as the rule says it.
    #[must_use]
    pub const fn base(&self) -> &Quota {
        &self.base
    }

    /// How the one is made from the other.
    #[must_use]
    pub const fn scaling(&self) -> Scaling {
        self.scaling
    }

    /// What the request costs.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Which responses count.
    #[must_use]
    pub const fn count(&self) -> &Count {
        &self.count
    }

    /// Whether it is only tried out: it counts, but denies nobody and shows in no header.
    #[must_use]
    pub const fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// What happens while the store cannot answer.
    #[must_use]
    pub const fn on_store_failure(&self) -> OnStoreFailure {
        self.on_store_failure
    }

    /// What the denied are told, if the rule says it, with places for what changes.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// What the denied could do about it.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }
}

/// Shows which quota, and not whose counter.
impl fmt::Debug for AppliedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AppliedRule({}, {})", self.policy, self.quota)
    }
}

/// A rule that does not count a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedRule {
    pub(super) kind: RuleKind,
    pub(super) rule: String,
    pub(super) why: SkipReason,
}

/// Why a rule does not count a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// The request is exempt.
    Exempt,
    /// The request is rejected because of its path.
    Rejected,
    /// The endpoint has quotas of its own, which replace those of its category.
    Replaced,
    /// The endpoint is not counted by the global rules.
    WithoutGlobal,
    /// It is for the anonymous, and the caller is not.
    OnlyAnonymous,
    /// It is for those who are authenticated, and the caller is not.
    OnlyAuthenticated,
    /// The request is a preflight: the rule is charged only if the response has no CORS headers.
    Preflight,
    /// It counts per something that the caller does not have.
    Lacks(String),
}

impl SkippedRule {
    /// What the rule is for.
    #[must_use]
    pub const fn kind(&self) -> RuleKind {
        self.kind
    }

    /// The name of the rule.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Why it does not count the request.
    #[must_use]
    pub const fn why(&self) -> &SkipReason {
        &self.why
    }
}
