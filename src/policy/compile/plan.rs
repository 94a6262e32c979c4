//! What counts a request: the rules of its endpoint, put together.

use std::collections::HashMap;

use super::Compiler;
use super::group::{CompiledRule, Place};
use crate::batch::MAX_CHECKS;
use crate::error::Invalid;
use crate::policy::about::{EndpointAbout, RuleKind};
use crate::policy::key_by::KeyBy;
use crate::policy::route::Route;
use crate::policy::rule::Rule;
use crate::policy::{Plan, PlanCosts, PlannedCheck};

impl Compiler<'_> {
    /// What an endpoint counts on: its own quotas, its category's, or both.
    pub(super) fn endpoint(
        &mut self,
        place: &Place<'_>,
        route: &Route,
        rule: &Rule,
        categories: &HashMap<String, (Rule, CompiledRule)>,
    ) -> Vec<CompiledRule> {
        let mut groups = Vec::new();
        let category = rule.category.as_ref().and_then(|name| {
            let known = categories.get(name);
            if known.is_none() {
                let problem = unknown_category(name, categories);
                self.problems.push(place.problem("category", problem));
            }
            known
        });
        if !rule.quotas.is_empty() || rule.category.is_none() {
            let name = rule.name.clone().unwrap_or_else(|| route.name());
            let named = Place::new(&name, &*place.path);
            groups.push(self.group(&named, rule, RuleKind::Endpoint));
        } else {
            self.refuse_own(place, rule);
        }
        // A quota that is only tried out replaces nothing.
        let replaces = groups.iter().any(|own| !own.dry_run);
        if let Some((category, group)) =
            category.filter(|(category, _)| !replaces || category.stacked)
        {
            let name = rule.category.as_deref().unwrap_or_default();
            let path = match rule.message {
                Some(_) => place.path.clone(),
                None => format!("categories.{name}"),
            };
            // Nor do its terms become those of what is in force.
            let is_tried_out = groups.iter().any(|own| own.dry_run);
            let terms = if rule.says_terms() && !is_tried_out {
                self.terms(&Place::new(name, path), rule, Some(category))
            } else {
                group.terms
            };
            groups.push(CompiledRule {
                terms,
                ..group.clone()
            });
        }
        groups
    }

    /// What people may want to know of an endpoint that counts on these.
    pub(super) fn about_endpoint(
        &self,
        route: &Route,
        rule: &Rule,
        groups: &[CompiledRule],
        categories: &HashMap<String, (Rule, CompiledRule)>,
    ) -> EndpointAbout {
        let is_own = |group: &&CompiledRule| self.rules[group.rule].kind == RuleKind::Endpoint;
        let own = groups.iter().find(is_own);
        let category = rule.category.as_ref().and_then(|name| categories.get(name));
        EndpointAbout {
            route: route.to_string().into(),
            own: own.map(|group| group.rule),
            category: category.map(|(_, group)| group.rule),
            without_global: rule.replaces_global(),
        }
    }

    /// What an endpoint cannot say that shares the counters of its category.
    fn refuse_own(&mut self, place: &Place<'_>, rule: &Rule) {
        let on_category = "this on the category, or a quota of its own";
        let shared = "this on the category, whose counters are shared";
        let per = rule.per.as_ref().map(|names| names.join(", "));
        let tiers: Vec<&str> = rule.tiers.iter().map(|(name, _)| name.as_str()).collect();
        for (setting, expected) in [
            (
                (per.is_some(), "per", per.as_deref().unwrap_or_default()),
                shared,
            ),
            (
                (!tiers.is_empty(), "tiers", &*tiers.join(", ")),
                on_category,
            ),
            ((rule.unscaled, "scale", "false"), on_category),
            ((rule.dry_run, "mode", "dry-run"), on_category),
            ((rule.stacked, "stack", "true"), "this on categories only"),
            (
                (
                    rule.name.is_some(),
                    "name",
                    rule.name.as_deref().unwrap_or_default(),
                ),
                "no name without a quota of its own",
            ),
        ] {
            self.refuse(place, setting, expected);
        }
    }

    /// The rules that count every request. If they are too many for any, that is told once,
    /// and not for each endpoint.
    pub(super) fn always_on(&mut self, rules: &[(String, Rule)]) -> Vec<CompiledRule> {
        let mut always = Vec::with_capacity(rules.len());
        for (index, (name, rule)) in rules.iter().enumerate() {
            let place = Place::new(name, format!("rules[{index}]"));
            always.push(self.group(&place, rule, RuleKind::AlwaysOn));
        }
        let in_force = always.iter().filter(|group| !group.dry_run);
        let quotas: usize = in_force.map(|group| group.lines.len()).sum();
        if quotas > MAX_CHECKS {
            let expected = format!("at most {MAX_CHECKS}, which count every request");
            let problem = Invalid::new("number of quotas", quotas, expected);
            self.problems.push(problem.within("rules").at("rules"));
            always.clear();
        }
        always
    }

    /// The number of the plan that is made of these.
    pub(super) fn plan<'g>(
        &mut self,
        place: &Place<'_>,
        groups: impl Iterator<Item = &'g CompiledRule>,
    ) -> usize {
        let groups: Vec<&CompiledRule> = groups.collect();
        let key = PlanKey {
            groups: groups
                .iter()
                .map(|group| (group.lines.start, group.terms))
                .collect(),
            is_trial: false,
        };
        if let Some(known) = self.plan_of.get(&key) {
            return *known;
        }
        let mut draft = Draft::default();
        let mut trials = Vec::new();
        for group in groups {
            if group.dry_run {
                trials.push(self.trial(place, group));
            } else {
                draft.add(group);
            }
        }
        if trials.len() > MAX_CHECKS {
            let expected = format!("at most {MAX_CHECKS} that are tried out on one request");
            let problem = Invalid::new("number of dry runs", trials.len(), expected);
            self.problems
                .push(problem.within(place.name).at(&*place.path));
        }
        let plan = Plan {
            trials: trials.into(),
            ..self.finish(place, draft)
        };
        self.numbered(key, plan)
    }

    /// The plan of a rule that is tried out: of itself alone, so that it changes nothing for
    /// the others.
    fn trial(&mut self, place: &Place<'_>, group: &CompiledRule) -> usize {
        let key = PlanKey {
            groups: vec![(group.lines.start, group.terms)],
            is_trial: true,
        };
        if let Some(known) = self.plan_of.get(&key) {
            return *known;
        }
        let mut draft = Draft::default();
        draft.add(group);
        let plan = self.finish(place, draft);
        self.numbered(key, plan)
    }

    fn numbered(&mut self, key: PlanKey, mut plan: Plan) -> usize {
        let is_alone = plan.entries.len() == 1 && plan.trials.is_empty();
        plan.is_single = is_alone && !plan.varies && !plan.by_outcome;
        let number = self.plans.len();
        self.plans.push(plan);
        self.plan_of.insert(key, number);
        number
    }

    fn finish(&mut self, place: &Place<'_>, draft: Draft) -> Plan {
        let Draft { entries, subjects } = draft;
        if entries.len() > MAX_CHECKS {
            let expected =
                format!("at most {MAX_CHECKS} quotas for one request, all rules together");
            let problem = Invalid::new("number of quotas", entries.len(), expected);
            self.problems
                .push(problem.within(place.name).at(&*place.path));
        }
        let by_outcome = |entry: &PlannedCheck| self.terms[entry.terms].count.is_by_outcome();
        let mut usual = PlanCosts {
            costs: [1; MAX_CHECKS],
            applying: 0,
        };
        let mut varies = subjects.iter().any(KeyBy::is_optional);
        for (index, (cost, entry)) in usual.costs.iter_mut().zip(&entries).enumerate() {
            match self.terms[entry.terms].cost.fixed() {
                Some(fixed) => *cost = fixed,
                None => varies = true,
            }
            usual.applying |= 1 << index;
        }
        Plan {
            usual,
            varies,
            by_outcome: entries.iter().any(by_outcome),
            entries: entries.into(),
            subjects: subjects.into(),
            trials: Box::default(),
            is_single: false,
            further_terms: Box::default(),
        }
    }
}

/// What a plan is made of: the first line and the terms of each rule.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PlanKey {
    groups: Vec<(usize, usize)>,
    /// Of one rule that is tried out, instead of several that are in force.
    is_trial: bool,
}

/// A plan in the making.
#[derive(Default)]
struct Draft {
    entries: Vec<PlannedCheck>,
    subjects: Vec<KeyBy>,
}

impl Draft {
    fn add(&mut self, group: &CompiledRule) {
        let known = self.subjects.iter().position(|per| *per == group.per);
        let subject = known.unwrap_or_else(|| {
            self.subjects.push(group.per.clone());
            self.subjects.len() - 1
        });
        self.entries
            .extend(group.lines.clone().map(|line| PlannedCheck {
                line,
                terms: group.terms,
                subject,
            }));
    }
}

fn unknown_category(name: &str, categories: &HashMap<String, (Rule, CompiledRule)>) -> Invalid {
    /// More would say nothing to anybody, again for each endpoint.
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
    Invalid::new("category", name, expected)
}
