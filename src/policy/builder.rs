//! A policy, said rule by rule.

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

/// Settings of a [`Policy`].
#[derive(Clone, Debug)]
#[must_use]
pub struct PolicyBuilder {
    pub(crate) tiers: Tiers,
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
    pub(crate) warn_at: f64,
    pub(crate) on_store_failure: OnStoreFailure,
    pub(crate) local_share: f64,
    pub(crate) maintenance_until: Option<Timestamp>,
}

impl Default for PolicyBuilder {
    fn default() -> Self {
        Self {
            tiers: Tiers::default(),
            authenticated: None,
            anonymous: None,
            categories: Vec::new(),
            endpoints: Vec::new(),
            rules: Vec::new(),
            preflight: Preflight::default(),
            preflight_quota: None,
            exempt: Exemptions::default(),
            exempt_routes: Vec::new(),
            networks: Vec::new(),
            warn_at: 0.8,
            on_store_failure: OnStoreFailure::default(),
            local_share: 1.0,
            maintenance_until: None,
        }
    }
}

impl PolicyBuilder {
    /// The subscription tiers.
    pub fn tiers(mut self, tiers: Tiers) -> Self {
        self.tiers = tiers;
        self
    }

    /// The global rule for callers whose identity is verified: per caller, on every request.
    ///
    /// Where [`anonymous`](Self::anonymous) is not said, those who are get the same, per address:
    /// nobody is better off by leaving out the token.
    pub fn authenticated(mut self, rule: impl IntoRule) -> Self {
        self.authenticated = Some(rule.into_rule());
        self
    }

    /// The global rule for everybody else: per address, on every request. Tiers do not multiply
    /// it.
    pub fn anonymous(mut self, rule: impl IntoRule) -> Self {
        self.anonymous = Some(rule.into_rule());
        self
    }

    /// The global rule for both.
    pub fn everyone(self, rule: impl IntoRule) -> Self {
        let rule = rule.into_rule();
        self.authenticated(rule.clone()).anonymous(rule)
    }

    /// A rule for one route, such as `GET /v1/items/{id}`. Without a method it is for all of
    /// them; `HEAD` follows `GET`.
    pub fn endpoint(mut self, route: impl Into<String>, rule: impl IntoRule) -> Self {
        self.endpoints.push((route.into(), rule.into_rule()));
        self
    }

    /// A rule that endpoints share, with one counter for all of them: see
    /// [`Rule::in_category`].
    pub fn category(mut self, name: impl Into<String>, rule: impl IntoRule) -> Self {
        self.categories.push((name.into(), rule.into_rule()));
        self
    }

    /// A rule that counts every request: per tenant, per group and user, or, with
    /// [`per([])`](Rule::per), for the whole instance.
    pub fn rule(mut self, name: impl Into<String>, rule: impl IntoRule) -> Self {
        self.rules.push((name.into(), rule.into_rule()));
        self
    }

    /// Callers with this role are not counted.
    pub fn exempt_role(mut self, role: impl Into<String>) -> Self {
        self.exempt.roles.push(role.into().into());
        self
    }

    /// This caller, or everybody of this tenant, is not counted.
    pub fn exempt_subject(
        mut self,
        dimension: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        let subject = (dimension.into().into(), value.into().into());
        self.exempt.subjects.push(subject);
        self
    }

    /// Clients from this network are not counted: `10.0.0.0/8`, or one address. A trusted proxy
    /// in it that does not tell whom it has seen is counted.
    pub fn exempt_network(mut self, network: impl Into<String>) -> Self {
        self.networks.push(network.into());
        self
    }

    /// Requests are not counted if every [reading](crate::policy#which-endpoint-a-request-has) of
    /// their path takes an exempt route.
    pub fn exempt_route(mut self, route: impl Into<String>) -> Self {
        self.exempt_routes.push(route.into());
        self
    }

    /// Requests of which the closure says so are not counted. What it looks at must not be up
    /// to the caller: a header is.
    pub fn exempt_when(
        mut self,
        predicate: impl Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.exempt.predicates.push(Arc::new(predicate));
        self
    }

    /// How CORS preflights are counted. Default: [`Preflight::Refund`].
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

    /// From which share of a limit on a warning is sent; 0.8 if nothing is said, and above 1
    /// for never.
    pub fn warn_at(mut self, share: f64) -> Self {
        self.warn_at = share;
        self
    }

    /// What happens while the store cannot answer, where a rule does not say otherwise.
    pub fn on_store_failure(mut self, outcome: OnStoreFailure) -> Self {
        self.on_store_failure = outcome;
        self
    }

    /// How much of each limit one process may admit on its own while the store cannot answer: with
    /// four processes, `0.25` keeps the limits as they are for all of them together. The whole
    /// limit, if nothing is said; never less than one request.
    ///
    /// ```
    /// use tollgate::policy::Policy;
    ///
    /// let policy = Policy::builder().everyone("100/minute").local_share(0.25).build()?;
    /// # let _ = policy;
    /// # Ok::<(), tollgate::ValidationErrors>(())
    /// ```
    pub fn local_share(mut self, share: f64) -> Self {
        self.local_share = share;
        self
    }

    /// Nobody is counted or denied before this instant; then the limits are back by themselves.
    /// Every request that goes on because of it leaves an event for the audit.
    pub fn maintenance_until(mut self, until: Timestamp) -> Self {
        self.maintenance_until = Some(until);
        self
    }

    /// Checks everything and builds the policy.
    pub fn build(mut self) -> Result<Policy, ValidationErrors> {
        let mut problems = ValidationErrors::default();
        let instead = "to exempt all requests, call exempt_when(|_| true)";
        for (index, text) in std::mem::take(&mut self.networks).into_iter().enumerate() {
            let network = network::parse("exempt network", &text, instead)
                .map_err(|wrong| wrong.at(format!("exempt.networks[{index}]")));
            if let Some(network) = problems.note(network) {
                self.exempt.networks.push(network);
            }
        }
        for (index, role) in self.exempt.roles.iter().enumerate() {
            if role.trim().is_empty() {
                let wrong = ValidationError::new("exempt role", role, "the name of a role");
                problems.push(wrong.at(format!("exempt.roles[{index}]")));
            }
        }
        // An address is nothing that callers are, so nobody would be exempt by it.
        for (dimension, value) in &self.exempt.subjects {
            if **dimension == *Identity::IP {
                let expected = "addresses among the exempt networks";
                let wrong = ValidationError::new("exempt subject", format!("ip={value}"), expected);
                problems.push(wrong.at("exempt.subjects.ip"));
            }
        }
        if !(0.0..=1e6).contains(&self.warn_at) {
            let expected = "a share of the limit such as `0.8`; above 1 for never";
            let wrong = ValidationError::new("warn_at", self.warn_at, expected);
            problems.push(wrong.at("defaults.warn_at"));
        }
        if !(self.local_share > 0.0 && self.local_share <= 1.0) {
            let expected = "a share of the limit above 0 and up to 1, such as `0.25`";
            let wrong = ValidationError::new("local_share", self.local_share, expected);
            problems.push(wrong.at("defaults.local_share"));
        }
        compile::compile(self, problems)
    }
}
