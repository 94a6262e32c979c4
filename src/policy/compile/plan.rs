//! What counts a request: the rules of its endpoint, put together.

use std::collections::HashMap;

use super::Compiler;
use super::group::{Group, Place};
use crate::batch::MAX_CHECKS;
use crate::error::Invalid;
use crate::policy::about::{EndpointAbout, RuleKind};
use crate::policy::per::Per;
use crate::policy::route::Route;
use crate::policy::rule::Rule;
use crate::policy::{Entry, Plan};

impl Compiler<'_> {
    /// What an endpoint counts on: its own quotas, its category's, or both.
    pub(super) fn endpoint(
        &mut self,
        place: &Place<'_>,
        route: &Route,
        rule: &Rule,
        categories: &HashMap<String, (Rule, Group)>,
    ) -> Vec<Group> {
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
            let shared = Place::new(name, path);
            let terms = self.terms(&shared, rule, Some(category));
            groups.push(Group {
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
        groups: &[Group],
        categories: &HashMap<String, (Rule, Group)>,
    ) -> EndpointAbout {
        let is_own = |group: &&Group| self.rules[group.rule].kind == RuleKind::Endpoint;
        let own = groups.iter().find(is_own);
        let category = rule.category.as_ref().and_then(|name| categories.get(name));
        EndpointAbout {
            route: route.to_string().into(),
            own: own.map(|group| group.rule),
            category: category.map(|(_, group)| group.rule),
            without_global: rule.without_global,
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

    pub(super) fn plan<'g>(
        &mut self,
        place: &Place<'_>,
        groups: impl Iterator<Item = &'g Group>,
    ) -> Plan {
        let mut plan = Draft::default();
        let mut trials = Vec::new();
        for group in groups {
            if group.dry_run {
                trials.push(self.trial(place, group));
            } else {
                plan.add(group);
            }
        }
        Plan {
            trials: trials.into(),
            ..self.finish(place, plan)
        }
    }

    /// The plan of a rule that is tried out: of itself alone, so that it changes nothing for
    /// the others.
    fn trial(&mut self, place: &Place<'_>, group: &Group) -> usize {
        let key = (group.lines.start, group.terms);
        if let Some(known) = self.trial_of.get(&key) {
            return *known;
        }
        let mut draft = Draft::default();
        draft.add(group);
        let plan = self.finish(place, draft);
        self.trials.push(plan);
        self.trial_of.insert(key, self.trials.len() - 1);
        self.trials.len() - 1
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
        let by_outcome = |entry: &Entry| self.terms[entry.terms].count.is_by_outcome();
        Plan {
            by_outcome: entries.iter().any(by_outcome),
            entries: entries.into(),
            subjects: subjects.into(),
            trials: Box::default(),
        }
    }
}

/// A plan in the making.
#[derive(Default)]
struct Draft {
    entries: Vec<Entry>,
    subjects: Vec<Per>,
}

impl Draft {
    fn add(&mut self, group: &Group) {
        let known = self.subjects.iter().position(|per| *per == group.per);
        let subject = known.unwrap_or_else(|| {
            self.subjects.push(group.per.clone());
            self.subjects.len() - 1
        });
        self.entries.extend(group.lines.clone().map(|line| Entry {
            line,
            terms: group.terms,
            subject,
        }));
    }
}

fn unknown_category(name: &str, categories: &HashMap<String, (Rule, Group)>) -> Invalid {
    let mut names: Vec<String> = categories.keys().map(|name| format!("`{name}`")).collect();
    names.sort();
    let expected = match names.as_slice() {
        [] => "a category of the policy; there are none".to_owned(),
        names => format!("a category of the policy: {}", names.join(", ")),
    };
    Invalid::new("category", name, expected)
}
