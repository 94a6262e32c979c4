//! Overview of a policy: tiers, rules, endpoints, exemptions and warnings.

mod rule;
mod serial;
mod warning;

use std::fmt;

use super::about::EndpointAbout;
use super::{PlanKind, Policy, RuleKind};
use crate::clock::Timestamp;

pub use self::rule::{RuleView, TierQuotas};
pub use self::warning::Warning;

impl Policy {
    /// Returns the tiers, rules, endpoints and exemptions of the policy.
    ///
    /// Each call collects them anew.
    ///
    /// ```
    /// use tollgate::policy::{Policy, Rule, Tiers};
    ///
    /// let policy = Policy::builder()
    ///     .tiers(Tiers::new("free").tier("team", 5))
    ///     .everyone("1000/hour")
    ///     .endpoint("POST /reports", Rule::new("30/minute").name("reports"))
    ///     .build()?;
    /// let overview = policy.overview();
    ///
    /// let reports = overview.rules.iter().find(|rule| rule.name == "reports").unwrap();
    /// assert_eq!(reports.quotas("team")[0].to_string(), "150/1m");
    /// assert_eq!(overview.endpoints[0].route, "POST /reports");
    /// assert!(overview.warnings().is_empty());
    /// # Ok::<(), tollgate::ValidationErrors>(())
    /// ```
    #[must_use]
    pub fn overview(&self) -> Overview<'_> {
        let (tiers, about, exempt) = (&self.tiers, &self.about, &self.exempt);
        let is_listed = |rule: &usize| Some(*rule) != about.preflight;
        let rules = (0..about.rules.len()).filter(is_listed);
        let endpoints = about.endpoints.iter().enumerate();
        let subjects = exempt.subjects.iter();
        Overview {
            tiers: (0..tiers.len())
                .map(|index| TierView {
                    name: tiers.name(index),
                    multiplier: tiers.multiplier(index),
                    default: index == 0,
                })
                .collect(),
            rules: rules.map(|rule| RuleView::new(self, rule)).collect(),
            preflight: about.preflight.map(|rule| RuleView::new(self, rule)),
            endpoints: endpoints
                .map(|(index, about)| EndpointView::new(self, index, about))
                .collect(),
            exempt_roles: exempt.roles.iter().map(|role| &**role).collect(),
            exempt_subjects: subjects.map(|(name, value)| (&**name, &**value)).collect(),
            exempt_networks: exempt.networks.iter().map(ToString::to_string).collect(),
            exempt_routes: about.exempt_routes.iter().map(String::as_str).collect(),
            maintenance_until: self.maintenance_until,
        }
    }
}

/// Tiers, rules, endpoints and exemptions of a policy; see [`Policy::overview`].
///
/// `Debug` and `Serialize` show the number of exempt subjects, and not the subjects.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Overview<'p> {
    /// Tiers, the default tier first.
    pub tiers: Vec<TierView<'p>>,
    /// Rules that have quotas, in the order of the policy: global rules, categories, always-on
    /// rules, endpoints.
    pub rules: Vec<RuleView<'p>>,
    /// Rule that counts CORS preflights in place of the global rule for unauthenticated callers;
    /// `None` if preflights are counted like other requests. It is not in [`rules`](Self::rules).
    pub preflight: Option<RuleView<'p>>,
    /// Endpoints, in the order of the policy.
    pub endpoints: Vec<EndpointView<'p>>,
    /// Roles whose callers are not counted.
    pub exempt_roles: Vec<&'p str>,
    /// Callers that are not counted: a dimension and its value.
    pub exempt_subjects: Vec<(&'p str, &'p str)>,
    /// Networks whose clients are not counted.
    pub exempt_networks: Vec<String>,
    /// Routes that are not counted.
    pub exempt_routes: Vec<&'p str>,
    /// End of the maintenance during which no request is counted.
    pub maintenance_until: Option<Timestamp>,
}

impl<'p> Overview<'p> {
    /// Returns warnings about valid settings that are probably mistakes.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        warning::all(self)
    }

    /// Returns the global rule for authenticated or for unauthenticated callers.
    fn global(&self, authenticated: bool) -> Option<&RuleView<'p>> {
        let mut rules = self.rules.iter();
        rules.find(|rule| rule.kind == RuleKind::Global && rule.for_anonymous != authenticated)
    }
}

/// Omits the exempt subjects.
impl fmt::Debug for Overview<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overview")
            .field("tiers", &self.tiers)
            .field("rules", &self.rules)
            .field("preflight", &self.preflight)
            .field("endpoints", &self.endpoints)
            .field("exempt_roles", &self.exempt_roles)
            .field("exempt_subjects", &self.exempt_subjects.len())
            .field("exempt_networks", &self.exempt_networks)
            .field("exempt_routes", &self.exempt_routes)
            .field("maintenance_until", &self.maintenance_until)
            .finish()
    }
}

/// One tier of a policy.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct TierView<'p> {
    /// Name of the tier.
    pub name: &'p str,
    /// Factor by which the tier multiplies quotas.
    pub multiplier: f64,
    /// Whether the tier applies to callers for which no other tier is known.
    pub default: bool,
}

/// One endpoint of a policy.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EndpointView<'p> {
    /// Route of the endpoint: `GET /v1/secrets/{id}`.
    pub route: &'p str,
    /// Category of the endpoint. It may have no effect; see [`rules`](Self::rules).
    pub category: Option<RuleView<'p>>,
    /// Rules of the endpoint and of its category that count its requests. Rules that count all
    /// requests are not included.
    pub rules: Vec<RuleView<'p>>,
    /// Whether the global rules count the endpoint as well.
    pub global: bool,
}

impl<'p> EndpointView<'p> {
    fn new(policy: &'p Policy, index: usize, about: &'p EndpointAbout) -> Self {
        // Plans of authenticated and unauthenticated callers differ only in the global rule.
        let plan = policy.plan(index, PlanKind::Unauthenticated);
        let is_planned = |rule: &usize| {
            let quotas = &policy.about.rules[*rule].quotas;
            let mut checks = plan.checks.iter();
            checks.any(|check| quotas.contains(&usize::from(check.quota)))
        };
        let rules = about.own.into_iter().chain(about.category);
        Self {
            route: &about.route,
            category: about.category.map(|rule| RuleView::new(policy, rule)),
            rules: rules
                .filter(is_planned)
                .map(|rule| RuleView::new(policy, rule))
                .collect(),
            global: !about.without_global,
        }
    }
}
