//! Plans of endpoints, compiled from their rules.

use std::collections::HashMap;

use super::rule::{CompiledRule, RuleLocation};
use super::{Compiler, SharedRules, index};
use crate::batch::{Group, MAX_BATCH, MAX_CHECKS};
use crate::error::ValidationError;
use crate::policy::about::{EndpointAbout, RuleKind};
use crate::policy::key_by::KeyBy;
use crate::policy::route::Route;
use crate::policy::rule::Rule;
use crate::policy::{Plan, PlanKind, PlannedCheck, RuleSettings};

impl Compiler<'_> {
    /// Returns the rules of an endpoint: its own, its category's, or both.
    pub(super) fn endpoint(
        &mut self,
        location: &RuleLocation<'_>,
        route: &Route,
        rule: &Rule,
        categories: &HashMap<String, (Rule, CompiledRule)>,
    ) -> Vec<CompiledRule> {
        let mut groups = Vec::new();
        let category = rule.category.as_ref().and_then(|name| {
            let known = categories.get(name);
            if known.is_none() {
                let problem = unknown_category(name, categories);
                self.problems.push(location.problem("category", problem));
            }
            known
        });
        if !rule.quotas.is_empty() || rule.category.is_none() {
            let name = rule.name.clone().unwrap_or_else(|| route.name());
            let named = RuleLocation::new(&name, &*location.path);
            groups.push(self.rule(&named, rule, RuleKind::Endpoint));
        } else {
            self.reject_own(location, rule);
        }
        // A dry run replaces nothing.
        let replaces = groups.iter().any(|own| !own.dry_run);
        if let Some((category, group)) =
            category.filter(|(category, _)| !replaces || category.is_stacked())
        {
            let name = rule.category.as_deref().unwrap_or_default();
            let path = match rule.message {
                Some(_) => location.path.clone(),
                None => format!("categories.{name}"),
            };
            // The settings of a dry run do not apply to the category.
            let is_dry_run = groups.iter().any(|own| own.dry_run);
            let settings = if RuleSettings::are_set_by(rule) && !is_dry_run {
                self.settings(&RuleLocation::new(name, path), rule, Some(category))
            } else {
                group.settings
            };
            groups.push(CompiledRule {
                settings,
                ..group.clone()
            });
        }
        groups
    }

    /// Describes an endpoint with these rules.
    pub(super) fn about_endpoint(
        &self,
        route: &Route,
        rule: &Rule,
        groups: &[CompiledRule],
        categories: &HashMap<String, (Rule, CompiledRule)>,
    ) -> EndpointAbout {
        let is_own =
            |group: &&CompiledRule| self.about_rules[group.about].kind == RuleKind::Endpoint;
        let own = groups.iter().find(is_own);
        let category = rule.category.as_ref().and_then(|name| categories.get(name));
        EndpointAbout {
            route: route.to_string().into(),
            own: own.map(|group| group.about),
            category: category.map(|(_, group)| group.about),
            without_global: rule.replaces_global(),
        }
    }

    /// Reports settings of an endpoint that only its category can have, because it shares its counters.
    fn reject_own(&mut self, location: &RuleLocation<'_>, rule: &Rule) {
        const ON_CATEGORY: &str = "this on the category, or a quota of its own";
        let per = rule.per.as_deref().map(|names| match names {
            [] => KeyBy::PER_INSTANCE.to_owned(),
            names => names.join(", "),
        });
        let tiers: Vec<&str> = rule.tiers.iter().map(|(name, _)| name.as_str()).collect();
        let tiers = (!tiers.is_empty()).then(|| tiers.join(", "));
        let scale = rule.is_unscaled().then_some("false");
        let mode = rule.dry_run.then_some("dry-run");
        let quiet = rule.quiet.then_some("true");
        let stack = rule.is_stacked().then_some("true");
        let name = rule.name.as_deref();
        let shared = "this on the category, whose counters are shared";
        self.reject(location, "per", per.as_deref(), shared);
        self.reject(location, "tiers", tiers.as_deref(), ON_CATEGORY);
        self.reject(location, "scale", scale, ON_CATEGORY);
        self.reject(location, "mode", mode, ON_CATEGORY);
        self.reject(location, "quiet", quiet, ON_CATEGORY);
        self.reject(location, "stack", stack, "this on categories only");
        self.reject(location, "name", name, "no name without a quota of its own");
    }

    /// Compiles the always-on rules. Too many of them are reported once, not for each endpoint.
    pub(super) fn always_on(&mut self, rules: &[(String, Rule)]) -> Vec<CompiledRule> {
        let mut always = Vec::with_capacity(rules.len());
        for (index, (name, rule)) in rules.iter().enumerate() {
            let location = RuleLocation::new(name, format!("rules[{index}]"));
            always.push(self.rule(&location, rule, RuleKind::AlwaysOn));
        }
        let live = always.iter().filter(|group| !group.dry_run);
        let quotas: usize = live.map(|group| group.quotas.len()).sum();
        if quotas > MAX_CHECKS {
            let expected = format!(
                "at most {MAX_CHECKS}: each quota of `rules` is charged for every request, in one step; merge \
                 rules, remove windows, or move limits to endpoints"
            );
            let problem = ValidationError::new("number of quotas", quotas, expected);
            self.problems.push(problem.within("rules").at("rules"));
            always.clear();
        }
        always
    }

    /// Returns the indexes of the plans of an endpoint with these rules of its own, in the order of
    /// [`PlanKind`].
    pub(super) fn plans(
        &mut self,
        location: &RuleLocation<'_>,
        own: &[CompiledRule],
        without_global: bool,
        shared: &SharedRules<'_>,
    ) -> [usize; PlanKind::COUNT] {
        let [unauthenticated, authenticated] = shared
            .globals
            .map(|global| global.filter(|_| !without_global));
        let with = |rule: Option<&CompiledRule>| -> Vec<CompiledRule> {
            let rules = own.iter().chain(rule).chain(shared.always);
            rules.cloned().collect()
        };
        let ordinary = with(unauthenticated);
        let is_limited = ordinary.iter().any(|rule| !rule.dry_run);
        // A dry run of the global rule is no limit that the preflight quota could stand for.
        let (recorded, dry_run) = match unauthenticated {
            Some(global) if global.dry_run => (None, Some(global)),
            global => (global, None),
        };
        let mut preflight = with(shared.preflight.filter(|_| is_limited));
        preflight.extend(dry_run.cloned());
        let problems = self.problems.iter().len();
        let recorded = recorded.filter(|_| shared.preflight.is_some());
        let ordinary = self.plan(location, &ordinary, None, true);
        let authenticated = self.plan(location, &with(authenticated), None, true);
        // If the ordinary plan has too many quotas, the preflight plan would repeat the error.
        let is_right = self.problems.iter().len() == problems;
        let preflight = self.plan(location, &preflight, recorded, is_right);
        [ordinary, authenticated, preflight]
    }

    /// Returns the index of the plan that consists of these rules. If `is_checked`, too many quotas
    /// are reported.
    fn plan(
        &mut self,
        location: &RuleLocation<'_>,
        rules: &[CompiledRule],
        recorded: Option<&CompiledRule>,
        is_checked: bool,
    ) -> usize {
        let part = |rule: &CompiledRule| (rule.quotas.start, rule.settings);
        let key = PlanKey {
            rules: rules.iter().map(part).collect(),
            recorded: recorded.map(part),
        };
        if let Some(known) = self.plan_of.get(&key) {
            return *known;
        }
        let live = rules.iter().filter(|rule| !rule.dry_run);
        let dry_runs = rules.iter().filter(|rule| rule.dry_run).zip(0..);
        let grouped = live
            .map(|rule| (rule, Group::Live))
            .chain(dry_runs.map(|(rule, number)| (rule, Group::DryRun(number))));
        let checks: Vec<PlannedCheck> = grouped
            .flat_map(|(rule, group)| self.checks_of(rule, group))
            .collect();
        if is_checked {
            self.check_numbers(location, &checks);
        }
        let recorded: Vec<PlannedCheck> = recorded
            .into_iter()
            .flat_map(|rule| self.checks_of(rule, Group::Live))
            .collect();
        let all = || checks.iter().chain(&recorded);
        let varies = all().any(|check| {
            self.key_bys[usize::from(check.key_by)].is_optional()
                || self.rules[usize::from(check.rule)].cost.fixed().is_none()
        });
        let by_outcome =
            all().any(|check| self.rules[usize::from(check.rule)].count.is_by_outcome());
        self.plans.push(Plan {
            varies,
            by_outcome,
            checks: checks.into(),
            recorded: recorded.into(),
        });
        self.plan_of.insert(key, self.plans.len() - 1);
        self.plans.len() - 1
    }

    /// Returns a check for each quota of a rule.
    fn checks_of(&self, rule: &CompiledRule, group: Group) -> impl Iterator<Item = PlannedCheck> {
        let check = PlannedCheck {
            quota: 0,
            rule: index(rule.settings),
            key_by: index(rule.key_by),
            group,
            cost: self.rules[rule.settings].cost.fixed().unwrap_or(1),
        };
        rule.quotas.clone().map(move |quota| PlannedCheck {
            quota: index(quota),
            ..check
        })
    }

    /// Reports a plan whose checks do not fit into a batch.
    fn check_numbers(&mut self, location: &RuleLocation<'_>, checks: &[PlannedCheck]) {
        let mut report = |name, found: usize, expected: String| {
            let problem = ValidationError::new(name, found, expected);
            let problem = problem.within(location.name).at(&*location.path);
            if !self.problems.iter().any(|known| *known == problem) {
                self.problems.push(problem);
            }
        };
        for group in checks.chunk_by(|one, next| one.group == next.group) {
            if group.len() > MAX_CHECKS {
                let expected = match group[0].group {
                    Group::Live => format!(
                        "at most {MAX_CHECKS} quotas for one request: those of the endpoint, of its category with \
                         `stack`, of the global rule (or of preflights with `global = false`) and of all `rules` \
                         add up; remove windows, or set `global = false`"
                    ),
                    _ => format!("at most {MAX_CHECKS} quotas in a rule that is a dry run"),
                };
                report("number of quotas", group.len(), expected);
            }
        }
        if checks.len() > MAX_BATCH {
            let expected = format!(
                "at most {MAX_BATCH} quotas for one request, all rules and dry runs together"
            );
            report("number of quotas", checks.len(), expected);
        }
    }
}

/// Content of a plan: the first quota and the settings of each rule.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PlanKey {
    rules: Vec<(usize, usize)>,
    recorded: Option<(usize, usize)>,
}

fn unknown_category(
    name: &str,
    categories: &HashMap<String, (Rule, CompiledRule)>,
) -> ValidationError {
    /// Longest list of categories in a message, which is repeated for each endpoint.
    const MOST: usize = 20;

    let expected = match categories.len() {
        0 => "a category of the policy; there are none".to_owned(),
        count if count > MOST => format!("one of the {count} categories of the policy"),
        _ => {
            let mut names: Vec<String> =
                categories.keys().map(|name| format!("`{name}`")).collect();
            names.sort();
            format!("a category of the policy: {}", names.join(", "))
        }
    };
    ValidationError::new("category", name, expected)
}
