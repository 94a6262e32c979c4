//! Compiles a policy from its builder.

mod plan;
mod rule;

use std::collections::HashMap;

use self::plan::PlanKey;
use self::rule::{CompiledRule, RuleLocation};
use super::about::{About, RuleAbout, RuleKind};
use super::builder::PolicyBuilder;
use super::key_by::KeyBy;
use super::local_share::LocalShare;
use super::preflight::Preflight;
use super::route::{Route, RouteTarget, Routes};
use super::rule::{OnStoreFailure, Rule};
use super::tiers::TierTable;
use super::{CompiledQuota, Plan, Policy, RuleSettings};
use crate::error::{ValidationError, ValidationErrors};
use crate::identity_types::Identity;
use crate::quota::Quota;

/// Compiles a policy. `problems` are the errors that the builder has found; all errors are returned
/// together.
pub(super) fn compile(
    builder: PolicyBuilder,
    mut problems: ValidationErrors,
) -> Result<Policy, ValidationErrors> {
    let tiers = builder.tiers.compile(&mut problems);
    let mut compiler = Compiler {
        tiers: &tiers,
        on_store_failure: builder.on_store_failure,
        problems,
        names: HashMap::new(),
        quotas: Vec::new(),
        rules: Vec::new(),
        key_bys: Vec::new(),
        plans: Vec::new(),
        plan_of: HashMap::new(),
        about_rules: Vec::new(),
    };

    let globals = compiler.globals([
        ("global.everyone", builder.everyone),
        ("global.authenticated", builder.authenticated),
        ("global.anonymous", builder.anonymous),
    ]);
    let mut categories: HashMap<String, (Rule, CompiledRule)> = HashMap::new();
    for (name, rule) in builder.categories {
        let location = RuleLocation::new(&name, format!("categories.{name}"));
        let category = compiler.rule(&location, &rule, RuleKind::Category);
        categories.insert(name, (rule, category));
    }
    let always = compiler.always_on(&builder.rules);
    let preflight = compiler.preflight(builder.preflight, builder.preflight_quota);
    let shared = SharedRules {
        globals: globals.each_ref().map(Option::as_ref),
        preflight: preflight.as_ref(),
        always: &always,
    };

    let (mut routes, mut by_endpoint, mut endpoints) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (text, rule)) in builder.endpoints.iter().enumerate() {
        let location = RuleLocation::new(text, format!("endpoints[{index}]"));
        let path = format!("{}.route", location.path);
        let route = Route::parse(text).map_err(|error| error.at(&*path));
        let Some(route) = compiler.problems.note(route) else {
            continue;
        };
        let own = compiler.endpoint(&location, &route, rule, &categories);
        endpoints.push(compiler.about_endpoint(&route, rule, &own, &categories));
        routes.push((route, RouteTarget::Endpoint(by_endpoint.len()), path));
        by_endpoint.push(compiler.plans(&location, &own, rule.replaces_global(), &shared));
    }
    let unmatched = RuleLocation::new("what matches no endpoint", "global");
    by_endpoint.push(compiler.plans(&unmatched, &[], false, &shared));
    for (index, text) in builder.exempt_routes.iter().enumerate() {
        let path = format!("exempt.routes[{index}]");
        let route = Route::parse(text).map_err(|error| error.at(&*path));
        if let Some(route) = compiler.problems.note(route) {
            routes.push((route, RouteTarget::Exempt(index), path));
        }
    }

    compiler.check_indexes();
    let Compiler {
        mut problems,
        quotas,
        rules,
        key_bys,
        plans,
        about_rules,
        ..
    } = compiler;
    let routes = Routes::compile(routes).unwrap_or_else(|errors| {
        for problem in errors {
            problems.push(problem);
        }
        Routes::default()
    });
    let preflight_quota = preflight.as_ref().map(|rule| index(rule.quotas.start));
    let number = |rule: CompiledRule| rule.about;
    let about = About {
        rules: about_rules.into(),
        endpoints: endpoints.into(),
        preflight: preflight.map(number),
        globals: globals.map(|global| global.map(number)),
        always_on: always.into_iter().map(number).collect(),
        exempt_routes: builder.exempt_routes.into(),
    };
    let policy = Policy {
        tiers,
        quotas: quotas.into(),
        rules: rules.into(),
        key_bys: key_bys.into(),
        plans: plans.into(),
        by_endpoint: by_endpoint.into(),
        routes,
        exempt: builder.exempt,
        preflight: preflight_quota,
        warn_thousandths: thousandths(builder.warn_at.unwrap_or(0.8)),
        local_share: LocalShare::new(builder.local_share.unwrap_or(1.0)),
        maintenance_until: builder.maintenance_until,
        about,
    };
    // These checks need a policy without other errors.
    if problems.iter().len() == 0 {
        for problem in policy.check_plain_paths() {
            problems.push(problem);
        }
    }
    problems.or(policy)
}

/// The name of the global rules in policy strings.
const GLOBAL_NAME: &str = "global";

/// The name of the rule of preflights in policy strings.
const PREFLIGHT_NAME: &str = "preflight";

/// The rules that do not depend on the endpoint.
struct SharedRules<'a> {
    /// For unauthenticated and for authenticated callers.
    globals: [Option<&'a CompiledRule>; 2],
    preflight: Option<&'a CompiledRule>,
    always: &'a [CompiledRule],
}

/// State while a policy is compiled.
struct Compiler<'t> {
    tiers: &'t TierTable,
    on_store_failure: OnStoreFailure,
    problems: ValidationErrors,
    /// Paths of rules by name.
    names: HashMap<String, String>,
    quotas: Vec<CompiledQuota>,
    rules: Vec<RuleSettings>,
    key_bys: Vec<KeyBy>,
    plans: Vec<Plan>,
    /// Indexes of plans by content: many endpoints have the same, and few plans stay in the
    /// processor's caches.
    plan_of: HashMap<PlanKey, usize>,
    /// Descriptions of the rules.
    about_rules: Vec<RuleAbout>,
}

impl Compiler<'_> {
    /// Compiles the global rules, for unauthenticated and for authenticated callers. Both have the
    /// name `global`, since one counts addresses, and the other users.
    ///
    /// The parameters are the rules for everyone, for authenticated and for unauthenticated callers,
    /// with their paths.
    fn globals(
        &mut self,
        [everyone, authenticated, anonymous]: [(&str, Option<Rule>); 3],
    ) -> [Option<CompiledRule>; 2] {
        let or =
            |(path, rule): (_, Option<Rule>), other| rule.map_or(other, |rule| (path, Some(rule)));
        let authenticated = or(authenticated, everyone.clone());
        // A caller must not get more by leaving out its token.
        let anonymous = or(anonymous, or(everyone, authenticated.clone()));
        let mut global = |(path, rule): (&str, Option<Rule>), unscaled: bool| {
            let mut rule = rule?;
            if unscaled {
                rule.scale = Some(false);
            }
            self.names.remove(GLOBAL_NAME);
            let location = RuleLocation::new(GLOBAL_NAME, path);
            Some(self.rule(&location, &rule, RuleKind::Global))
        };
        [global(anonymous, true), global(authenticated, false)]
    }

    /// Compiles the rule of preflights, unless they are counted like other requests.
    fn preflight(
        &mut self,
        preflight: Preflight,
        quota: Option<Result<Quota, ValidationError>>,
    ) -> Option<CompiledRule> {
        if preflight == Preflight::Count {
            return None;
        }
        let location = RuleLocation::new(PREFLIGHT_NAME, "global.preflight");
        let quota = quota.unwrap_or_else(|| Quota::per_minute(600));
        let quota = quota.map_err(|error| error.at("global.preflight_quota"));
        let quota = self.problems.note(quota)?;
        let rule = Rule::new(quota).per([Identity::IP]).scale(false);
        Some(self.rule(&location, &rule, RuleKind::Preflight))
    }

    /// Reports more rules or quotas than a [`PlannedCheck`](super::PlannedCheck) can refer to.
    fn check_indexes(&mut self) {
        let most = [self.quotas.len(), self.rules.len(), self.key_bys.len()];
        let most = most.into_iter().max().unwrap_or_default();
        if most > usize::from(u16::MAX) {
            let expected = format!("at most {} rules and quotas", u16::MAX);
            self.problems
                .push(ValidationError::new("policy", most, expected));
        }
    }
}

/// Converts an index for a planned check. [`Compiler::check_indexes`] reports indexes that do not
/// fit.
fn index(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within bounds, or refused before"
)]
fn thousandths(share: f64) -> u64 {
    (share * 1_000.0).round() as u64
}
