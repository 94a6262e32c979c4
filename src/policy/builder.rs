//! Builder of a policy.

use std::sync::Arc;

use super::Policy;
use super::compile;
use super::exempt::Exemptions;
use super::preflight::Preflight;
use super::rule::{IntoRule, OnStoreFailure, Rule};
use super::tiers::Tiers;
use crate::clock::Timestamp;
use crate::error::{ValidationError, ValidationErrors};
use crate::head::RequestHead;
use crate::identity_types::Identity;
use crate::network;
use crate::quota::{IntoQuota, Quota};

/// Builder of a [`Policy`].
///
/// [`build`](Self::build) checks all settings and reports all errors together.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct PolicyBuilder {
    pub(crate) tiers: Tiers,
    pub(crate) everyone: Option<Rule>,
    pub(crate) authenticated: Option<Rule>,
    pub(crate) anonymous: Option<Rule>,
    pub(crate) categories: Vec<(String, Rule)>,
    pub(crate) endpoints: Vec<(String, Rule)>,
    pub(crate) rules: Vec<(String, Rule)>,
    pub(crate) preflight: Preflight,
    pub(crate) preflight_quota: Option<Result<Quota, ValidationError>>,
    pub(crate) exempt: Exemptions,
    pub(crate) exempt_routes: Vec<String>,
    pub(crate) networks: Vec<String>,
    pub(crate) warn_at: Option<f64>,
    pub(crate) on_store_failure: OnStoreFailure,
    pub(crate) local_share: Option<f64>,
    pub(crate) maintenance_until: Option<Timestamp>,
}

impl PolicyBuilder {
    /// Sets the subscription tiers. Default: one tier, `default`.
    pub fn tiers(mut self, tiers: Tiers) -> Self {
        self.tiers = tiers;
        self
    }

    /// Sets the global rule for authenticated callers: per caller, on every request.
    ///
    /// If [`anonymous`](Self::anonymous) is not set, this rule also applies to unauthenticated
    /// callers, per client IP. A caller therefore gets no higher limit by leaving out its token.
    pub fn authenticated(mut self, rule: impl IntoRule) -> Self {
        self.authenticated = Some(rule.into_rule());
        self
    }

    /// Sets the global rule for unauthenticated callers: per client IP, on every request. Tiers do
    /// not multiply it.
    pub fn anonymous(mut self, rule: impl IntoRule) -> Self {
        self.anonymous = Some(rule.into_rule());
        self
    }

    /// Sets the global rule for authenticated and for unauthenticated callers.
    /// [`authenticated`](Self::authenticated) and [`anonymous`](Self::anonymous) take precedence.
    pub fn everyone(mut self, rule: impl IntoRule) -> Self {
        self.everyone = Some(rule.into_rule());
        self
    }

    /// Adds a rule for one route, such as `GET /v1/items/{id}`. Without a method it applies to all
    /// methods; `HEAD` follows `GET`.
    pub fn endpoint(mut self, route: impl Into<String>, rule: impl IntoRule) -> Self {
        self.endpoints.push((route.into(), rule.into_rule()));
        self
    }

    /// Adds a category: a rule whose counters several endpoints share. Endpoints join it with
    /// [`Rule::in_category`].
    pub fn category(mut self, name: impl Into<String>, rule: impl IntoRule) -> Self {
        self.categories.push((name.into(), rule.into_rule()));
        self
    }

    /// Adds an always-on rule, which counts every request: per tenant, per group and user, or, with
    /// [`per([])`](Rule::per), all requests together.
    pub fn rule(mut self, name: impl Into<String>, rule: impl IntoRule) -> Self {
        self.rules.push((name.into(), rule.into_rule()));
        self
    }

    /// Exempts callers that have this role.
    pub fn exempt_role(mut self, role: impl Into<String>) -> Self {
        self.exempt.roles.push(role.into().into());
        self
    }

    /// Exempts callers with this value of a dimension: one user, or all users of a tenant.
    pub fn exempt_subject(
        mut self,
        dimension: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        let subject = (dimension.into().into(), value.into().into());
        self.exempt.subjects.push(subject);
        self
    }

    /// Exempts clients in this network: `10.0.0.0/8`, or one address.
    ///
    /// A request of a trusted proxy in this network is counted if the proxy does not send the client
    /// IP.
    pub fn exempt_network(mut self, network: impl Into<String>) -> Self {
        self.networks.push(network.into());
        self
    }

    /// Exempts a route. A request is exempt if every
    /// [reading](crate::policy#which-endpoint-a-request-has) of its path reaches an exempt route.
    pub fn exempt_route(mut self, route: impl Into<String>) -> Self {
        self.exempt_routes.push(route.into());
        self
    }

    /// Exempts requests for which the closure returns `true`. If it panics, the request is counted.
    ///
    /// Do not decide by values that the caller controls, such as headers: any caller could then
    /// exempt itself.
    pub fn exempt_when(
        mut self,
        predicate: impl Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.exempt.predicates.push(Arc::new(predicate));
        self
    }

    /// Sets how CORS preflights are counted. Default: [`Preflight::Refund`].
    ///
    /// Choose [`Preflight::Count`] if no service behind the layer uses CORS.
    pub fn preflight(mut self, preflight: Preflight) -> Self {
        self.preflight = preflight;
        self
    }

    /// Sets how many preflights one client IP may send. Default: `600/minute`.
    ///
    /// Applies with [`Preflight::Refund`], where preflights do not count on the global rule. A handler
    /// that only the global rule covers, and that answers `OPTIONS` itself, can be reached by at most
    /// that many requests.
    pub fn preflight_quota(mut self, quota: impl IntoQuota) -> Self {
        self.preflight_quota = Some(quota.into_quota());
        self
    }

    /// Sets the share of a limit from which on responses carry a warning and `rate_limit_warning` is
    /// logged. Default: `0.8`. Above 1, there are no warnings.
    pub fn warn_at(mut self, share: f64) -> Self {
        self.warn_at = Some(share);
        self
    }

    /// Sets what happens while the store is unavailable, for rules that do not set it. Default:
    /// [`OnStoreFailure::Local`].
    pub fn on_store_failure(mut self, outcome: OnStoreFailure) -> Self {
        self.on_store_failure = outcome;
        self
    }

    /// Sets the share of each limit that one process may admit while the store is unavailable.
    /// Default: `1.0`.
    ///
    /// With four processes, `0.25` keeps the limits as they are for all of them together. A process
    /// admits at least one request per window.
    ///
    /// ```
    /// use tollgate::policy::Policy;
    ///
    /// let policy = Policy::builder().everyone("100/minute").local_share(0.25).build()?;
    /// # let _ = policy;
    /// # Ok::<(), tollgate::ValidationErrors>(())
    /// ```
    pub fn local_share(mut self, share: f64) -> Self {
        self.local_share = Some(share);
        self
    }

    /// Switches all limits off until this instant. After it, they apply again without a reload.
    ///
    /// Each request that is exempt because of it is logged with the target `tollgate::audit`.
    pub fn disabled_until(mut self, until: Timestamp) -> Self {
        self.maintenance_until = Some(until);
        self
    }

    /// Builds the policy.
    ///
    /// # Errors
    ///
    /// Returns all errors of all settings together.
    pub fn build(mut self) -> Result<Policy, ValidationErrors> {
        let mut problems = ValidationErrors::default();
        let instead = "to exempt all requests, call exempt_when(|_| true)";
        for (index, text) in std::mem::take(&mut self.networks).into_iter().enumerate() {
            let network = network::parse("exempt network", &text, instead)
                .map_err(|error| error.at(format!("exempt.networks[{index}]")));
            if let Some(network) = problems.note(network) {
                self.exempt.networks.push(network);
            }
        }
        for (index, role) in self.exempt.roles.iter().enumerate() {
            if role.trim().is_empty() {
                let error = ValidationError::new("exempt role", role, "the name of a role");
                problems.push(error.at(format!("exempt.roles[{index}]")));
            }
        }
        // An identity has no dimension `ip`, so this would exempt no caller.
        for (dimension, value) in &self.exempt.subjects {
            if **dimension == *Identity::IP {
                let expected = "addresses among the exempt networks";
                let error = ValidationError::new("exempt subject", format!("ip={value}"), expected);
                problems.push(error.at("exempt.subjects.ip"));
            }
        }
        if let Some(share) = self.warn_at.filter(|share| !(0.0..=1e6).contains(share)) {
            let expected = "a share of the limit such as `0.8`; above 1 for never";
            let error = ValidationError::new("warn_at", share, expected);
            problems.push(error.at("defaults.warn_at"));
        }
        let is_share = |share: f64| share > 0.0 && share <= 1.0;
        if let Some(share) = self.local_share.filter(|share| !is_share(*share)) {
            let expected = "a share of the limit above 0 and up to 1, such as `0.25`";
            let error = ValidationError::new("local_share", share, expected);
            problems.push(error.at("defaults.local_share"));
        }
        compile::compile(self, problems)
    }
}
