//! Rules, before they are compiled.

use std::sync::Arc;

use super::cost::Cost;
use super::count::Count;
use crate::error::{ValidationError, named};
use crate::head::RequestHead;
use crate::quota::{IntoQuota, Quota};

/// Rule of an endpoint or a category, global rule, or always-on rule.
///
/// A rule has quotas, the dimensions that they count per, quotas for tiers, which responses count,
/// the cost of a request, and the message of a denial.
///
/// ```
/// use tollgate::policy::{Count, Rule};
///
/// // Ten failed logins an hour per client IP, for every tier.
/// let login = Rule::new("10/hour").name("login").per(["ip"]).scale(false).count(Count::failure());
///
/// // Two windows, and separate quotas for two tiers.
/// let search = Rule::new("10/minute")
///     .limit("200/hour")
///     .tier("team", ["50/minute", "1000/hour"])
///     .tier("enterprise", ["500/minute", "unlimited"])
///     .message("Slow down: try again in {retry_in}.");
/// # let _ = (login, search);
/// ```
///
/// Settings are checked when the policy is built. All errors are reported together.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Rule {
    pub(crate) name: Option<String>,
    pub(crate) category: Option<String>,
    pub(crate) quotas: Vec<Result<Quota, ValidationError>>,
    pub(crate) tiers: Vec<(String, Vec<Result<Quota, ValidationError>>)>,
    pub(crate) per: Option<Vec<String>>,
    /// `None` if not set. Then it is `true`.
    pub(crate) scale: Option<bool>,
    pub(crate) count: Option<Count>,
    pub(crate) cost: Option<Cost>,
    pub(crate) message: Option<String>,
    pub(crate) suggestion: Option<String>,
    pub(crate) on_store_failure: Option<OnStoreFailure>,
    pub(crate) without_global: bool,
    /// `None` if not set. Then it is `false`.
    pub(crate) stack: Option<bool>,
    pub(crate) dry_run: bool,
    pub(crate) quiet: bool,
}

/// What happens to requests while the store is unavailable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnStoreFailure {
    /// Requests are counted in the memory of this process. Limits then hold for each process, not
    /// for all processes together. This is the default.
    #[default]
    Local,
    /// Requests are allowed and not counted.
    Allow,
    /// Requests get 503 with `Retry-After`. Use it for requests that must not pass uncounted, such
    /// as logins.
    Deny,
}

impl OnStoreFailure {
    /// Returns a number that orders the outcomes. A higher number allows fewer requests.
    pub(super) const fn strictness(self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Local => 1,
            Self::Deny => 2,
        }
    }
}

/// Whether a rule is enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleMode {
    /// Requests over the limit are denied. This is the default.
    #[default]
    Enforce,
    /// Dry run: the rule counts, and logs the requests that it would have denied. It never denies,
    /// and is in no header.
    DryRun,
}

named!(RuleMode, "mode" {
    Enforce => "enforce",
    DryRun => "dry-run",
});

named!(OnStoreFailure, "on_store_failure" {
    Local => "local",
    Allow => "allow",
    Deny => "deny",
});

impl Rule {
    /// Creates a rule with one quota.
    pub fn new(quota: impl IntoQuota) -> Self {
        Self::default().limit(quota)
    }

    /// Creates a rule that shares the counters of a category.
    ///
    /// A quota that is added with [`limit`](Rule::limit) replaces the quotas of the category, unless
    /// the category has [`stack(true)`](Rule::stack).
    pub fn in_category(category: impl Into<String>) -> Self {
        Self::default().category(category)
    }

    /// Sets the category whose counters the rule shares. Endpoints only.
    pub fn category(mut self, name: impl Into<String>) -> Self {
        self.category = Some(name.into());
        self
    }

    /// Returns whether the global rule does not count the endpoint of this rule. A dry run never
    /// replaces the global rule.
    pub(super) const fn replaces_global(&self) -> bool {
        self.without_global && !self.dry_run
    }

    /// Adds a quota. A request is denied if any quota of the rule is exhausted.
    pub fn limit(mut self, quota: impl IntoQuota) -> Self {
        self.quotas.push(quota.into_quota());
        self
    }

    /// Sets the name in policy strings, headers and logs. Default: the route. Endpoints only.
    ///
    /// The name is part of the keys of the counters: a rule with a new name starts with new
    /// counters.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the dimensions to count per: `["ip"]`, `["tenant"]`, `["group", "user"]`. With `[]`, all
    /// requests share one counter. Default: the primary dimension of the identity, usually `user`,
    /// or the client IP of an unauthenticated caller. As in policy files, `["instance"]` is the same as
    /// `[]`, and `["caller"]` is the default.
    ///
    /// A caller cannot avoid a limit by leaving out a dimension. Without `user`, the client IP
    /// counts in its place. Without another dimension, the rule counts as by default. Only always-on
    /// rules do not count callers that lack a dimension: a rule per tenant applies to tenants.
    pub fn per<'a>(mut self, dimensions: impl IntoIterator<Item = &'a str>) -> Self {
        self.per = Some(dimensions.into_iter().map(str::to_owned).collect());
        self
    }

    /// Sets the quotas of a tier, one for each quota of the rule and in the same order. They replace
    /// the tier's multiplier. Window and algorithm must be those of the rule, so that a caller keeps
    /// its counter when its tier changes.
    pub fn tier<Q: IntoQuota>(
        mut self,
        name: impl Into<String>,
        quotas: impl IntoIterator<Item = Q>,
    ) -> Self {
        let quotas = quotas.into_iter().map(IntoQuota::into_quota).collect();
        self.tiers.push((name.into(), quotas));
        self
    }

    /// Sets whether tiers multiply the quotas. Default: `true`. Use `false` for logins, sign-ups
    /// and recovery. A rule for the whole instance ([`per([])`](Self::per)) is never scaled.
    pub fn scale(mut self, scale: bool) -> Self {
        self.scale = Some(scale);
        self
    }

    /// Sets which responses count. Default: [`Count::all`].
    pub fn count(mut self, count: Count) -> Self {
        self.count = Some(count);
        self
    }

    /// Sets the cost of each request. Default: `1`.
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = Some(Cost::Fixed(cost));
        self
    }

    /// Sets a closure that returns the cost of a request. If it panics, the cost is 1.
    ///
    /// ```
    /// # use tollgate::policy::Rule;
    /// let export = Rule::new("100/hour").cost_with(|head| if head.path().ends_with(".pdf") { 5 } else { 1 });
    /// # let _ = export;
    /// ```
    pub fn cost_with(
        mut self,
        cost: impl Fn(&RequestHead<'_>) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.cost = Some(Cost::Of(Arc::new(cost)));
        self
    }

    /// Sets the message of a denial. `{limit}`, `{used}`, `{window}`, `{retry_after}`, `{retry_in}`,
    /// `{policy}` and `{tier}` in it are replaced by their values.
    pub fn message(mut self, template: impl Into<String>) -> Self {
        self.message = Some(template.into());
        self
    }

    /// Sets a suggestion for denied callers, which is sent beside the message.
    pub fn suggestion(mut self, text: impl Into<String>) -> Self {
        self.suggestion = Some(text.into());
        self
    }

    /// Sets what happens while the store is unavailable. Default:
    /// [`PolicyBuilder::on_store_failure`](super::PolicyBuilder::on_store_failure).
    pub fn on_store_failure(mut self, outcome: OnStoreFailure) -> Self {
        self.on_store_failure = Some(outcome);
        self
    }

    /// Sets whether the global rule counts this endpoint as well. Default: `true`. Endpoints only.
    ///
    /// The global rule always counts the endpoint of a [dry run](RuleMode::DryRun).
    pub fn global(mut self, global: bool) -> Self {
        self.without_global = !global;
        self
    }

    /// Sets whether the rule is enforced. Default: [`RuleMode::Enforce`].
    pub fn mode(mut self, mode: RuleMode) -> Self {
        self.dry_run = mode == RuleMode::DryRun;
        self
    }

    /// Sets whether responses report the rule only when it denies. Default: `false`, so that they
    /// report the quota with the least remaining.
    ///
    /// The header `RateLimit-Policy` lists the rule in any case. If all rules of a request are quiet, the
    /// tightest is reported.
    ///
    /// For a burst beside a window: callers see what remains of the window.
    ///
    /// ```
    /// # use tollgate::{Algorithm, Quota, Window, policy::{Policy, Rule}};
    /// let burst = Quota::builder(60, Window::MINUTE).algorithm(Algorithm::TokenBucket).burst(10);
    /// let policy = Policy::builder()
    ///     .everyone("60/minute, sliding-log")
    ///     .endpoint("POST /chat", Rule::new(burst.build()?).name("burst").quiet(true))
    ///     .build()?;
    /// # let _ = policy;
    /// # Ok::<(), tollgate::ValidationErrors>(())
    /// ```
    pub fn quiet(mut self, quiet: bool) -> Self {
        self.quiet = quiet;
        self
    }

    /// Sets whether the category also counts endpoints that have quotas of their own. Default:
    /// `false`. Categories only.
    ///
    /// If most endpoints of a category have quotas of their own, `tollgate check` warns unless this
    /// is set.
    pub fn stack(mut self, stack: bool) -> Self {
        self.stack = Some(stack);
        self
    }

    pub(super) fn is_unscaled(&self) -> bool {
        self.scale == Some(false)
    }

    pub(super) fn is_stacked(&self) -> bool {
        self.stack == Some(true)
    }
}

/// Value that can be converted into a rule: a rule, or one quota.
pub trait IntoRule {
    /// Converts the value.
    fn into_rule(self) -> Rule;
}

impl IntoRule for Rule {
    fn into_rule(self) -> Rule {
        self
    }
}

impl<Q: IntoQuota> IntoRule for Q {
    fn into_rule(self) -> Rule {
        Rule::new(self)
    }
}
