//! What a policy says altogether, for people who have to run it.

mod rule;
#[cfg(any(feature = "admin", feature = "config"))]
mod serial;
mod warning;

use super::about::EndpointAbout;
use super::{PlanKind, Policy, RuleKind};
use crate::clock::Timestamp;

pub use self::rule::RuleView;
pub use self::warning::Warning;

impl Policy {
    /// All that the policy says: tiers, rules, endpoints, exemptions.
    ///
    /// ```
    /// use tollgate::policy::{Policy, Rule, Tiers};
    ///
    /// let policy = Policy::builder()
    ///     .tiers(Tiers::new("free").tier("team", 5))
    ///     .everyone("1000/hour")
    ///     .endpoint("POST /reports", Rule::new("3/minute").name("reports"))
    ///     .build()?;
    /// let overview = policy.overview();
    ///
    /// let reports = overview.rules().find(|rule| rule.name() == "reports").unwrap();
    /// let of_team: Vec<String> = reports.quotas("team").map(ToString::to_string).collect();
    /// assert_eq!(of_team, ["15/1m"]);
    /// assert_eq!(overview.endpoints().next().unwrap().route(), "POST /reports");
    /// assert!(overview.warnings().is_empty());
    /// # Ok::<(), tollgate::ValidationErrors>(())
    /// ```
    #[must_use]
    pub const fn overview(&self) -> Overview<'_> {
        Overview { policy: self }
    }
}

/// All that a policy says; see [`Policy::overview`].
#[derive(Clone, Copy, Debug)]
pub struct Overview<'p> {
    policy: &'p Policy,
}

impl<'p> Overview<'p> {
    /// The tiers, the default one first.
    #[must_use]
    pub fn tiers(&self) -> impl ExactSizeIterator<Item = TierView<'p>> + use<'p> {
        let tiers = &self.policy.tiers;
        (0..tiers.len()).map(|index| TierView {
            name: tiers.name(index),
            multiplier: tiers.multiplier(index),
            is_default: index == 0,
        })
    }

    /// Every rule that has quotas: the global ones, categories, always-on rules, endpoints, each
    /// in the order of the policy.
    pub fn rules(&self) -> impl Iterator<Item = RuleView<'p>> + use<'p> {
        let policy = self.policy;
        let is_listed = move |rule: &usize| Some(*rule) != policy.about.preflight;
        let rules = (0..policy.about.rules.len()).filter(is_listed);
        rules.map(move |rule| RuleView::new(policy, rule))
    }

    /// Returns the rule that counts CORS preflights in place of the global rule for unauthenticated
    /// callers; `None` if preflights are counted like other requests. It is not among
    /// [`rules`](Self::rules).
    #[must_use]
    pub fn preflight(&self) -> Option<RuleView<'p>> {
        let rule = self.policy.about.preflight?;
        Some(RuleView::new(self.policy, rule))
    }

    /// Every endpoint, in the order of the policy.
    #[must_use]
    pub fn endpoints(&self) -> impl ExactSizeIterator<Item = EndpointView<'p>> + use<'p> {
        let policy = self.policy;
        (0..policy.about.endpoints.len()).map(move |number| EndpointView { policy, number })
    }

    /// Roles whose callers are not counted.
    #[must_use]
    pub fn exempt_roles(&self) -> impl ExactSizeIterator<Item = &'p str> + use<'p> {
        self.policy.exempt.roles.iter().map(|role| &**role)
    }

    /// Callers who are not counted: a dimension and its value.
    #[must_use]
    pub fn exempt_subjects(&self) -> impl ExactSizeIterator<Item = (&'p str, &'p str)> + use<'p> {
        let subjects = self.policy.exempt.subjects.iter();
        subjects.map(|(name, value)| (&**name, &**value))
    }

    /// Networks whose clients are not counted.
    #[must_use]
    pub fn exempt_networks(&self) -> impl ExactSizeIterator<Item = String> + use<'p> {
        self.policy.exempt.networks.iter().map(ToString::to_string)
    }

    /// Routes that are not counted.
    #[must_use]
    pub fn exempt_routes(&self) -> impl ExactSizeIterator<Item = &'p str> + use<'p> {
        self.policy.about.exempt_routes.iter().map(String::as_str)
    }

    /// Until when nobody is counted.
    #[must_use]
    pub const fn maintenance_until(&self) -> Option<Timestamp> {
        self.policy.maintenance_until
    }

    /// What is allowed, but is hardly what anybody wanted.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        warning::all(*self)
    }

    /// The global rule for authenticated callers, or the one for the others.
    fn global(self, authenticated: bool) -> Option<RuleView<'p>> {
        let rule = self.policy.about.globals[usize::from(authenticated)]?;
        Some(RuleView::new(self.policy, rule))
    }
}

/// One tier of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TierView<'p> {
    name: &'p str,
    multiplier: f64,
    is_default: bool,
}

impl<'p> TierView<'p> {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'p str {
        self.name
    }

    /// What it multiplies quotas by.
    #[must_use]
    pub const fn multiplier(&self) -> f64 {
        self.multiplier
    }

    /// Whether everybody has it of whom nothing else is known.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.is_default
    }
}

/// One endpoint of a policy.
#[derive(Clone, Copy, Debug)]
pub struct EndpointView<'p> {
    policy: &'p Policy,
    number: usize,
}

impl<'p> EndpointView<'p> {
    fn about(&self) -> &'p EndpointAbout {
        &self.policy.about.endpoints[self.number]
    }

    /// Its route: `GET /v1/secrets/{id}`.
    #[must_use]
    pub fn route(&self) -> &'p str {
        &self.about().route
    }

    /// The category that it is in.
    #[must_use]
    pub fn category(&self) -> Option<RuleView<'p>> {
        let rule = self.about().category?;
        Some(RuleView::new(self.policy, rule))
    }

    /// The rules that count it, without those that count everything.
    pub fn rules(&self) -> impl Iterator<Item = RuleView<'p>> + use<'p> {
        let (policy, about) = (self.policy, self.about());
        // Callers with and without an identity differ in their global rule only.
        let plan = policy.plan(self.number, PlanKind::Unauthenticated);
        let counts = move |rule: &RuleView<'p>| rule.is_in(plan);
        let rules = about.own.into_iter().chain(about.category);
        rules
            .map(move |rule| RuleView::new(policy, rule))
            .filter(counts)
    }

    /// Whether the global rules count it as well.
    #[must_use]
    pub fn is_counted_globally(&self) -> bool {
        !self.about().without_global
    }

    /// Whether its category counts it, and not only quotas of its own.
    fn counts_on_category(&self) -> bool {
        self.rules().any(|rule| rule.kind() == RuleKind::Category)
    }
}
