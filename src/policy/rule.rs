//! One rule, as its author says it.

use std::sync::Arc;

use super::cost::Cost;
use super::count::Count;
use crate::error::ValidationError;
use crate::head::RequestHead;
use crate::quota::{IntoQuota, Quota};

/// What an endpoint, a category or an always-on rule allows: quotas, what they count per, which
/// tiers get other numbers, what counts, what the denied are told.
///
/// ```
/// use tollgate::policy::{Count, Rule};
///
/// // Ten failed logins an hour from one address, whatever the caller pays.
/// let login = Rule::new("10/hour").name("login").per(["ip"]).scale(false).count(Count::failure());
///
/// // Two windows, and numbers of their own for two tiers.
/// let search = Rule::new("10/minute")
///     .quota("200/hour")
///     .tier("team", ["50/minute", "1000/hour"])
///     .tier("enterprise", ["500/minute", "unlimited"])
///     .message("Slow down: try again in {retry_in}.");
/// # let _ = (login, search);
/// ```
///
/// Nothing is checked before the policy is built, and then everything at once.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own"
)]
#[must_use]
pub struct Rule {
    pub(crate) name: Option<String>,
    pub(crate) category: Option<String>,
    pub(crate) quotas: Vec<Result<Quota, ValidationError>>,
    pub(crate) tiers: Vec<(String, Vec<Result<Quota, ValidationError>>)>,
    pub(crate) per: Option<Vec<String>>,
    pub(crate) unscaled: bool,
    pub(crate) count: Option<Count>,
    pub(crate) cost: Option<Cost>,
    pub(crate) message: Option<String>,
    pub(crate) suggestion: Option<String>,
    pub(crate) on_store_failure: Option<OnStoreFailure>,
    pub(crate) without_global: bool,
    pub(crate) stacked: bool,
    pub(crate) dry_run: bool,
}

/// What happens to requests while the store cannot answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnStoreFailure {
    /// They are counted in the memory of this process until it answers again: the limits hold
    /// for each process, not for all of them together. The default.
    #[default]
    Local,
    /// They go on, uncounted.
    Allow,
    /// They get a 503 with `Retry-After`: for what must never go on uncounted, such as logins.
    Deny,
}

impl OnStoreFailure {
    /// What policy files call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }

    /// Orders the outcomes: the higher, the fewer requests go on.
    pub(super) const fn strictness(self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Local => 1,
            Self::Deny => 2,
        }
    }
}

impl Rule {
    /// A rule with one quota.
    pub fn new(quota: impl IntoQuota) -> Self {
        Self::default().quota(quota)
    }

    /// A rule that shares the counters of a category.
    ///
    /// Add a quota of its own with [`quota`](Rule::quota), and it replaces the category's, unless
    /// the category has [`stack(true)`](Rule::stack).
    pub fn in_category(category: impl Into<String>) -> Self {
        Self::default().category(category)
    }

    /// Sets the category whose counters the rule shares. Endpoints only.
    pub fn category(mut self, name: impl Into<String>) -> Self {
        self.category = Some(name.into());
        self
    }

    /// Whether it says more than its quotas, and whom and when they are for.
    pub(super) const fn says_terms(&self) -> bool {
        self.count.is_some()
            || self.cost.is_some()
            || self.message.is_some()
            || self.suggestion.is_some()
            || self.on_store_failure.is_some()
    }

    /// Whether the global rule does not count what it counts. What is only tried out replaces
    /// nothing.
    pub(super) const fn replaces_global(&self) -> bool {
        self.without_global && !self.dry_run
    }

    /// One more quota. All must have room.
    pub fn quota(mut self, quota: impl IntoQuota) -> Self {
        self.quotas.push(quota.into_quota());
        self
    }

    /// The name in policy strings, headers and logs. Counters are found by it. For an endpoint
    /// it defaults to its route.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// What is counted per: `["ip"]`, `["tenant"]`, `["group", "user"]`, or nothing for the
    /// whole instance. If it is not said: per caller, who is whatever the identity is known by
    /// (mostly a user), or else the address.
    ///
    /// A limit that can be shed by leaving something out is none, so `user` is the address of
    /// those who are anonymous, and whoever lacks another dimension is counted per caller. Only
    /// always-on rules do not count those who lack one: a rule for tenants is for tenants.
    pub fn per<'a>(mut self, dimensions: impl IntoIterator<Item = &'a str>) -> Self {
        self.per = Some(dimensions.into_iter().map(str::to_owned).collect());
        self
    }

    /// Numbers of its own for a tier, one for each quota and in the same order. They win over
    /// the tier's multiplier. Windows stay the same, so that nobody gets a fresh one by
    /// changing the tier.
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
        self.unscaled = !scale;
        self
    }

    /// Which responses count.
    pub fn count(mut self, count: Count) -> Self {
        self.count = Some(count);
        self
    }

    /// What each request costs, instead of 1.
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = Some(Cost::Fixed(cost));
        self
    }

    /// What a request costs, by its head.
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

    /// What the denied are told, with `{limit} {used} {window} {retry_after} {retry_in}
    /// {policy} {tier}` filled in.
    pub fn message(mut self, template: impl Into<String>) -> Self {
        self.message = Some(template.into());
        self
    }

    /// What the denied could do about it, shown beside the message.
    pub fn suggestion(mut self, text: impl Into<String>) -> Self {
        self.suggestion = Some(text.into());
        self
    }

    /// What happens while the store cannot answer.
    pub fn on_store_failure(mut self, outcome: OnStoreFailure) -> Self {
        self.on_store_failure = Some(outcome);
        self
    }

    /// Sets whether the global rule counts this endpoint as well. Default: `true`. Endpoints only.
    ///
    /// A [dry run](Self::dry_run) replaces nothing: the global rule counts its endpoint always.
    pub fn global(mut self, global: bool) -> Self {
        self.without_global = !global;
        self
    }

    /// Tries the rule out: it counts, and tells those who watch whom it would have denied, but
    /// denies nobody and shows in no header.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Sets whether the category also counts endpoints that have quotas of their own. Default:
    /// `false`. Categories only.
    pub fn stack(mut self, stack: bool) -> Self {
        self.stacked = stack;
        self
    }
}

/// A rule, or just its quota.
pub trait IntoRule {
    /// The rule.
    fn into_rule(self) -> Rule;
}

impl IntoRule for Rule {
    fn into_rule(self) -> Rule {
        self
    }
}

impl IntoRule for Quota {
    fn into_rule(self) -> Rule {
        Rule::new(self)
    }
}

impl IntoRule for &str {
    fn into_rule(self) -> Rule {
        Rule::new(self)
    }
}

impl IntoRule for String {
    fn into_rule(self) -> Rule {
        Rule::new(self)
    }
}
