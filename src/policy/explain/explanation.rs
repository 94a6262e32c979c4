//! Result of [`Policy::explain`](crate::policy::Policy::explain).

use std::fmt;

use crate::clock::Timestamp;
use crate::policy::{Count, Exemption, OnStoreFailure, PathRejection, RuleKind};
use crate::quota::Quota;

/// Rules that count a request, and rules that do not, with reasons; see
/// [`Policy::explain`](crate::policy::Policy::explain).
///
/// `Display` writes several lines of text; [`colored`](Self::colored) adds terminal colours.
/// `Display` and `Serialize` show the subjects of the counters. `Debug` does not.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// Method and path of the request: `GET /v1/secrets/42`.
    pub request: String,
    /// Label of the caller: `user=alice`, `ip=203.0.113.9`.
    pub caller: String,
    /// Time of the request, if it was given.
    pub at: Option<Timestamp>,
    /// Tier of the caller.
    pub tier: String,
    /// Factor by which the tier multiplies quotas.
    pub multiplier: f64,
    /// Source of the tier.
    pub tier_source: TierSource,
    /// Routes of all endpoints that a reading of the path reaches, as the policy writes them. The
    /// rules of all of them count the request.
    pub endpoints: Vec<String>,
    /// Reason for a rejection of the path with 400 or 414. A rejected request is not counted.
    pub rejection: Option<PathRejection>,
    /// Kind of exemption. An exempt request is not counted.
    pub exemption: Option<Exemption>,
    /// Part of the policy that exempts the request, as text. `Some` if `exemption` is.
    pub exempt_because: Option<String>,
    /// Every quota that counts the request, the most specific rules first. Includes dry runs.
    pub counted_by: Vec<AppliedRule>,
    /// Rules for the endpoint or for all requests that do not count this request.
    pub not_counted_by: Vec<SkippedRule>,
}

/// Source of a caller's tier.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TierSource {
    /// The policy assigns the tier to the caller.
    Table,
    /// The identity names the tier.
    Identity,
    /// The identity names this tier, which the policy does not have. The default tier applies.
    Unknown(String),
    /// Neither the policy nor the identity names a tier. The default tier applies.
    Default,
}

impl Explanation {
    /// Returns the route of the endpoint, as the policy writes it; `None` if no endpoint matches.
    ///
    /// Of several [`endpoints`](Self::endpoints), this is the one in statistics and metrics.
    #[must_use]
    pub fn endpoint(&self) -> Option<&str> {
        self.endpoints.first().map(String::as_str)
    }
}

/// Omits the request, the caller and the subjects of the counters.
impl fmt::Debug for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `exempt_because` can contain a subject.
        f.debug_struct("Explanation")
            .field("endpoints", &self.endpoints)
            .field("rejection", &self.rejection)
            .field("exemption", &self.exemption)
            .field("counted_by", &self.counted_by)
            .field("not_counted_by", &self.not_counted_by)
            .finish_non_exhaustive()
    }
}

/// One quota that counts a request.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct AppliedRule {
    /// Kind of the rule.
    pub kind: RuleKind,
    /// Name of the rule.
    pub rule: String,
    /// Name of the quota in headers and logs: `user:secrets:1h`.
    pub policy: String,
    /// Label of the counter: `user=alice`, `group=a, user=b`, `all callers`.
    pub counter: String,
    /// Quota for the caller's tier.
    pub quota: Quota,
    /// Quota of the rule, before the tier is applied.
    pub base: Quota,
    /// How `quota` is derived from `base`.
    pub scaling: Scaling,
    /// Cost of the request.
    pub cost: u64,
    /// Responses that count.
    pub count: Count,
    /// Whether the rule is a dry run: it counts, but never denies and adds no headers.
    pub dry_run: bool,
    /// Whether responses to allowed requests report other rules; see [`Rule::quiet`](crate::policy::Rule::quiet).
    pub quiet: bool,
    /// Behaviour while the store is unavailable.
    pub on_store_failure: OnStoreFailure,
    /// Template of the message in a denial, if the rule sets one.
    pub message: Option<String>,
    /// Suggestion in a denial, if the rule sets one.
    pub suggestion: Option<String>,
}

/// Effect of a tier on a quota.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scaling {
    /// None: the quota is the same for all tiers.
    Never,
    /// The limit is multiplied by this factor.
    Times(f64),
    /// The rule has its own quotas for the tier.
    Own,
}

/// Shows the quota without the subject of the counter.
impl fmt::Debug for AppliedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AppliedRule({}, {})", self.policy, self.quota)
    }
}

/// Rule that does not count a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedRule {
    /// Kind of the rule.
    pub kind: RuleKind,
    /// Name of the rule.
    pub rule: String,
    /// Reason why the rule does not count the request.
    pub why: SkipReason,
}

/// Reason why a rule does not count a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// The request is exempt.
    Exempt,
    /// The request is rejected because of its path.
    Rejected,
    /// The endpoint has its own quotas, which replace those of its category.
    Replaced,
    /// The endpoint is not counted by the global rules.
    WithoutGlobal,
    /// The rule is for unauthenticated callers, and the caller is authenticated.
    OnlyAnonymous,
    /// The rule is for authenticated callers, and the caller is unauthenticated.
    OnlyAuthenticated,
    /// The request is a preflight: the rule is charged only if the response has no CORS headers.
    Preflight,
    /// The rule counts per this dimension, which the caller does not have.
    Lacks(String),
}
