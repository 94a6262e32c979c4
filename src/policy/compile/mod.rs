//! From what was said to what is asked on every request.

mod group;
mod plan;

use std::collections::HashMap;

use self::group::{CompiledRule, Place};
use self::plan::PlanKey;
use super::about::{About, RuleAbout, RuleKind};
use super::builder::PolicyBuilder;
use super::local_share::LocalShare;
use super::route::{Route, Routes, Target};
use super::rule::{OnStoreFailure, Rule};
use super::tiers::TierTable;
use super::{CompiledQuota, Plan, Policy, RuleSettings};
use crate::error::Problems;

pub(super) fn compile(builder: PolicyBuilder, mut problems: Problems) -> Result<Policy, Problems> {
    let tiers = builder.tiers.compile(&mut problems);
    let mut compiler = Compiler {
        tiers: &tiers,
        on_store_failure: builder.on_store_failure,
        problems,
        names: HashMap::new(),
        lines: Vec::new(),
        terms: Vec::new(),
        plans: Vec::new(),
        plan_of: HashMap::new(),
        rules: Vec::new(),
    };

    // Both say `global`: one counts users, the other addresses.
    let mut global = |rule: Option<Rule>, path: &str, unscaled: bool| {
        let mut rule = rule?;
        rule.unscaled |= unscaled;
        compiler.names.remove(GLOBAL_NAME);
        let place = Place::new(GLOBAL_NAME, path);
        Some(compiler.group(&place, &rule, RuleKind::Global))
    };
    // Whoever leaves out the token must not be better off.
    let (anonymous, path) = match builder.anonymous {
        None => (builder.authenticated.clone(), "global.authenticated"),
        own => (own, "global.anonymous"),
    };
    let globals = [
        global(anonymous, path, true),
        global(builder.authenticated, "global.authenticated", false),
    ];
    let mut categories: HashMap<String, (Rule, CompiledRule)> = HashMap::new();
    for (name, rule) in builder.categories {
        let place = Place::new(&name, format!("categories.{name}"));
        let group = compiler.group(&place, &rule, RuleKind::Category);
        categories.insert(name, (rule, group));
    }
    let always = compiler.always_on(&builder.rules);

    let (mut routes, mut by_endpoint, mut endpoints) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (text, rule)) in builder.endpoints.iter().enumerate() {
        let place = Place::new(text, format!("endpoints[{index}]"));
        let path = format!("{}.route", place.path);
        let route = Route::parse(text).map_err(|wrong| wrong.at(&*path));
        let Some(route) = compiler.problems.note(route) else {
            continue;
        };
        let own = compiler.endpoint(&place, &route, rule, &categories);
        endpoints.push(compiler.about_endpoint(&route, rule, &own, &categories));
        routes.push((route, Target::Endpoint(by_endpoint.len()), path));
        by_endpoint.push(globals.each_ref().map(|global| {
            let global = global.as_ref().filter(|_| !rule.replaces_global());
            compiler.plan(&place, own.iter().chain(global).chain(&always))
        }));
    }
    let unmatched = Place::new("what matches no endpoint", "global");
    by_endpoint.push(
        globals
            .each_ref()
            .map(|global| compiler.plan(&unmatched, global.iter().chain(&always))),
    );
    for (index, text) in builder.exempt_routes.iter().enumerate() {
        let path = format!("exempt.routes[{index}]");
        let route = Route::parse(text).map_err(|wrong| wrong.at(&*path));
        if let Some(route) = compiler.problems.note(route) {
            routes.push((route, Target::Exempt(index), path));
        }
    }

    let Compiler {
        mut problems,
        lines,
        terms,
        plans,
        rules,
        ..
    } = compiler;
    let routes = Routes::compile(routes).unwrap_or_else(|wrong| {
        for problem in wrong {
            problems.push(problem);
        }
        Routes::default()
    });
    let about = About {
        rules: rules.into(),
        endpoints: endpoints.into(),
        globals: globals.map(|global| global.map(CompiledRule::number)),
        always_on: always.into_iter().map(CompiledRule::number).collect(),
        exempt_routes: builder.exempt_routes.into(),
    };
    let policy = Policy {
        tiers,
        lines: lines.into(),
        terms: terms.into(),
        plans: plans.into(),
        by_endpoint: by_endpoint.into(),
        routes,
        exempt: builder.exempt,
        warn_thousandths: thousandths(builder.warn_at),
        local_share: LocalShare::new(builder.local_share),
        maintenance_until: builder.maintenance_until,
        about,
    };
    checked(policy, problems)
}

/// Checks what only a compiled policy shows, if nothing else is wrong with it.
fn checked(policy: Policy, mut problems: Problems) -> Result<Policy, Problems> {
    if problems.iter().len() == 0 {
        for problem in policy.check_plain_paths() {
            problems.push(problem);
        }
    }
    problems.or(policy)
}

/// The name of the global rules in policy strings.
const GLOBAL_NAME: &str = "global";

struct Compiler<'t> {
    tiers: &'t TierTable,
    on_store_failure: OnStoreFailure,
    problems: Problems,
    /// Rules by name, and where each is.
    names: HashMap<String, String>,
    lines: Vec<CompiledQuota>,
    terms: Vec<RuleSettings>,
    plans: Vec<Plan>,
    /// Them by what they are made of: many endpoints have the same, and what few places in
    /// memory say is at hand.
    plan_of: HashMap<PlanKey, usize>,
    /// What people may want to know of each rule.
    rules: Vec<RuleAbout>,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within bounds, or refused before"
)]
fn thousandths(share: f64) -> u64 {
    (share * 1_000.0).round() as u64
}
