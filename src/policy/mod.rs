//! Which rules apply to a request, and with which numbers.
//!
//! A [`Policy`] is all rules together, checked and compiled once:
//!
//! ```
//! use tollgate::policy::{Count, Policy, Rule, Tiers};
//!
//! let policy = Policy::builder()
//!     .tiers(Tiers::new("free").tier("team", 5).tier("enterprise", 10))
//!     .authenticated("1000/hour")
//!     .anonymous("100/hour")
//!     .category("secrets", Rule::new("500/hour").suggestion("Team has 2,500 an hour."))
//!     .endpoint("GET /v1/secrets/{id}", Rule::in_category("secrets"))
//!     .endpoint("PUT /v1/secrets/{id}", Rule::in_category("secrets"))
//!     .endpoint("POST /login", Rule::new("10/hour").name("login").per(["ip"]).scale(false))
//!     .rule("tenant", Rule::new("100_000/day").per(["tenant"]))
//!     .exempt_route("GET /health")
//!     .build()?;
//! # let _ = policy;
//! # Ok::<(), tollgate::ValidationErrors>(())
//! ```
//!
//! # Which rules count a request
//!
//! 1. None, if the request is exempt.
//! 2. The rule of its endpoint: the endpoint's own quotas, or else those of its category. (Both,
//!    if the category has [`stack(true)`](Rule::stack).)
//! 3. The global rule: [`authenticated`](PolicyBuilder::authenticated) per caller, or
//!    [`anonymous`](PolicyBuilder::anonymous) per client IP; unless the endpoint has
//!    [`global(false)`](Rule::global).
//! 4. Every always-on [`rule`](PolicyBuilder::rule).
//!
//! All their quotas are decided at one instant: all are charged, or none. A request that matches no
//! endpoint, such as a scan that gets a 404, counts on the caller's global rule.
//!
//! # CORS preflights
//!
//! A preflight is an `OPTIONS` request with `Origin` and `Access-Control-Request-Method`, without a
//! body, `Authorization` or `Cookie`, of an unauthenticated caller. It is charged on entry, and
//! refunded if the response has `Access-Control-Allow-Methods` or `Access-Control-Allow-Headers`. In
//! place of the global rule, [`preflight_quota`](PolicyBuilder::preflight_quota) applies per client
//! IP: a caller without quota keeps its preflights. Without these headers the global rule is charged
//! as well. So a handler that only the global rule covers, and that answers `OPTIONS` itself, can be
//! reached by at most `preflight_quota`. With [`Preflight::Count`], preflights are counted like other
//! requests.
//!
//! # Dry runs and maintenance
//!
//! A rule that is a [dry run](RuleMode::DryRun) counts and is logged as `rate_limit_dry_run`, but never
//! denies and is in no header. Each is decided in the same store call as the live rules, and charged
//! only if these admit the request. An endpoint's own quota replaces nothing as long as it is a dry
//! run: category and global rule still count. One request has at most 8 live quotas, and 24 with
//! those of dry runs.
//!
//! [`disabled_until`](PolicyBuilder::disabled_until) switches all limits off for a while.
//! Requests that are exempt by maintenance, by role or by subject are logged for the audit (target
//! `tollgate::audit`).
//!
//! An [`Override`](crate::Override) sets a limit for one subject at run time.
//!
//! # Which endpoint a request has
//!
//! Routes are matched with the matcher of axum: literal segments before parameters before
//! wildcards. `HEAD` follows `GET`. A parameter can have a prefix (`/user_{name}`), not a suffix.
//!
//! A path can have several readings: percent-encoded or decoded, with doubled or trailing slashes
//! or without, with a wildcard or mount that matches nothing. The rules of **all** endpoints that
//! a reading reaches are charged, in one batch. An exempt route applies only if every reading is
//! exempt. Paths with dot segments get 400. The [security
//! guide](crate::docs::security#paths-with-several-readings) has the details and the limits.
//!
//! A rule can also be for a part of what one handler serves, such as `POST /v1/auth/login` where
//! the router has only `/v1/{service}/{action}`. In `Router::layer`, the rules of the pattern
//! and of the path as it is written are charged. `log%69n` is another path there, although the
//! handler decodes it to `login`: give such a handler a route of its own.
//!
//! # Why a request is counted as it is
//!
//! [`Policy::explain`] returns the rules that count a request, with quotas and counters, and why
//! other rules do not. [`Policy::overview`] returns all rules of the policy, and warnings about
//! probable mistakes. The program [`tollgate`](crate::docs::command_line) does both for policy files.

mod about;
mod builder;
mod compile;
mod cost;
mod count;
#[cfg(feature = "admin")]
mod counters;
mod exempt;
mod explain;
mod into_policy;
mod key_by;
mod local_share;
mod overview;
mod plan;
mod preflight;
mod resolve;
mod route;
mod rule;
mod rule_settings;
mod tiers;

use std::fmt;
use std::net::IpAddr;

use self::about::About;
use self::exempt::Exemptions;
use self::local_share::LocalShare;
use self::route::Routes;
use crate::clock::Timestamp;
use crate::head::RequestHead;
use crate::identity_types::Identity;
use crate::key::Counter;
use crate::quota::Quota;
use crate::usage::Usage;

pub use self::about::RuleKind;
pub use self::builder::PolicyBuilder;
pub use self::count::Count;
#[cfg(feature = "admin")]
pub(crate) use self::counters::CounterOf;
pub use self::exempt::Exemption;
#[cfg(feature = "admin")]
pub(crate) use self::explain::dimensions;
pub use self::explain::{
    AppliedRule, ExplainRequest, Explanation, Scaling, SkipReason, SkippedRule, TierSource,
};
pub use self::into_policy::IntoPolicy;
pub(crate) use self::key_by::{Caller, KeyBy};
pub use self::overview::{EndpointView, Overview, RuleView, TierQuotas, TierView, Warning};
pub(crate) use self::plan::{Plan, PlanKind, PlannedCheck, RequestChecks};
pub use self::preflight::Preflight;
pub use self::route::PathRejection;
pub(crate) use self::route::RoutedPath;
pub use self::rule::{IntoRule, OnStoreFailure, Rule, RuleMode};
pub(crate) use self::rule_settings::RuleSettings;
pub use self::tiers::Tiers;
pub(crate) use self::tiers::{TierOf, TierTable};

/// Compiled set of all rules; see [the module](self).
pub struct Policy {
    tiers: TierTable,
    quotas: Box<[CompiledQuota]>,
    rules: Box<[RuleSettings]>,
    key_bys: Box<[KeyBy]>,
    plans: Box<[Plan]>,
    /// The plans of each endpoint, in the order of [`PlanKind`]; the last are those of requests that
    /// match no endpoint.
    by_endpoint: Box<[[usize; PlanKind::COUNT]]>,
    routes: Routes,
    exempt: Exemptions,
    /// The quota of preflights; `None` if they are counted like other requests.
    preflight: Option<u16>,
    warn_thousandths: u64,
    local_share: LocalShare,
    maintenance_until: Option<Timestamp>,
    about: About,
}

/// One quota of one rule.
#[derive(Debug)]
pub(crate) struct CompiledQuota {
    pub(crate) counter: Counter,
    /// The quota of each tier.
    by_tier: Box<[Quota]>,
    /// How specific the rule is; 0 is the most specific.
    pub(crate) rank: u8,
}

impl Policy {
    /// Returns a builder without rules.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }

    /// Returns why a request is exempt by its client IP or by its head, if it is.
    #[inline]
    pub(crate) fn exempts(&self, head: &RequestHead<'_>, ip: Option<IpAddr>) -> Option<Exemption> {
        self.exempt.by_head(head, ip)
    }

    /// Returns whether the limits are switched off at wall-clock time `now`.
    #[inline]
    pub(crate) fn in_maintenance(&self, now: Timestamp) -> bool {
        self.maintenance_until.is_some_and(|until| now < until)
    }

    /// Returns the end of the maintenance that the policy sets, even if it is over.
    pub(crate) const fn maintenance_until(&self) -> Option<Timestamp> {
        self.maintenance_until
    }

    /// Returns why a caller is exempt by its identity, if it is.
    #[inline]
    pub(crate) fn exempts_identity(&self, identity: Option<&Identity>) -> Option<Exemption> {
        self.exempt.by_identity(identity?)
    }

    /// Returns the role that exempts a caller.
    pub(crate) fn exempt_role<'a>(&self, identity: Option<&'a Identity>) -> Option<&'a str> {
        self.exempt.role_of(identity?)
    }

    /// Returns whether the policy has endpoints or exempt routes.
    #[inline]
    pub(crate) const fn has_routes(&self) -> bool {
        !self.routes.is_empty()
    }

    #[inline]
    pub(crate) fn quota(&self, check: &PlannedCheck) -> &CompiledQuota {
        &self.quotas[usize::from(check.quota)]
    }

    #[inline]
    pub(crate) fn rule(&self, check: &PlannedCheck) -> &RuleSettings {
        &self.rules[usize::from(check.rule)]
    }

    #[inline]
    pub(crate) fn key_by(&self, check: &PlannedCheck) -> &KeyBy {
        &self.key_bys[usize::from(check.key_by)]
    }

    pub(crate) fn quotas(&self) -> &[CompiledQuota] {
        &self.quotas
    }

    pub(crate) fn rules(&self) -> &[RuleSettings] {
        &self.rules
    }

    /// Returns the routes of the endpoints by index. The last is `*`, for requests that match none.
    pub(crate) fn endpoint_names(&self) -> impl Iterator<Item = &str> {
        let routes = self.about.endpoints.iter();
        routes.map(|endpoint| &*endpoint.route).chain(["*"])
    }

    pub(crate) const fn tiers(&self) -> &TierTable {
        &self.tiers
    }

    /// Returns the part of a quota that one process may admit while the store is unavailable.
    pub(crate) fn local_share_of(&self, quota: &Quota) -> Quota {
        self.local_share.of(quota)
    }

    /// Returns the used share of a limit from which on responses have a warning.
    #[cfg(feature = "admin")]
    #[expect(clippy::cast_precision_loss, reason = "at most 1,000")]
    pub(crate) const fn warn_at(&self) -> f64 {
        self.warn_thousandths as f64 / 1_000.0
    }

    /// Returns whether the usage has reached the share set by [`PolicyBuilder::warn_at`].
    #[inline]
    pub(crate) fn warns(&self, usage: &Usage) -> bool {
        let (used, limit) = (u128::from(usage.used()), u128::from(usage.limit()));
        used * 1_000 >= limit * u128::from(self.warn_thousandths)
    }
}

impl CompiledQuota {
    /// Returns the quota for a tier.
    #[inline]
    pub(crate) fn quota(&self, tier: usize) -> &Quota {
        self.by_tier
            .get(tier)
            .unwrap_or_else(|| self.counter.quota())
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<&str> = self.rules.iter().map(|rule| &*rule.name).collect();
        f.debug_struct("Policy")
            .field("rules", &rules)
            .finish_non_exhaustive()
    }
}
