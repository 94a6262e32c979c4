//! From what was said to what is asked on every request.

use std::collections::HashMap;

use super::builder::PolicyBuilder;
use super::per::Per;
use super::route::{Route, Routes, Target};
use super::rule::Rule;
use super::tiers::TierTable;
use super::{Entry, Line, Plan, Policy, Terms};
use crate::batch::MAX_CHECKS;
use crate::error::{Invalid, Problems};
use crate::key::Counter;
use crate::quota::Quota;

/// How specific rules are, the most specific first.
const ENDPOINT: u8 = 0;
const CATEGORY: u8 = 1;
const GLOBAL: u8 = 2;
const ALWAYS: u8 = 3;

/// The name of the global rules in policy strings.
const GLOBAL_NAME: &str = "global";

pub(super) fn compile(builder: PolicyBuilder, mut problems: Problems) -> Result<Policy, Problems> {
    let tiers = builder.tiers.compile(&mut problems);
    let mut compiler = Compiler {
        tiers: &tiers,
        problems,
        names: HashMap::new(),
        lines: Vec::new(),
        terms: Vec::new(),
    };

    // Both say `global`: one counts users, the other addresses.
    let mut global = |rule: Option<Rule>, unscaled: bool| {
        let mut rule = rule?;
        rule.unscaled |= unscaled;
        compiler.names.remove(GLOBAL_NAME);
        Some(compiler.group(GLOBAL_NAME, &rule, GLOBAL))
    };
    // Whoever leaves out the token must not be better off.
    let anonymous = builder.anonymous.or_else(|| builder.authenticated.clone());
    let globals = [
        global(anonymous, true),
        global(builder.authenticated, false),
    ];
    let mut categories: HashMap<String, (Rule, Group)> = HashMap::new();
    for (name, rule) in builder.categories {
        let group = compiler.group(&name, &rule, CATEGORY);
        categories.insert(name, (rule, group));
    }
    let mut always = Vec::new();
    for (name, rule) in builder.rules {
        always.push(compiler.group(&name, &rule, ALWAYS));
    }

    let (mut routes, mut plans) = (Vec::new(), Vec::new());
    for (text, rule) in builder.endpoints {
        let Some(route) = compiler.problems.note(Route::parse(&text)) else {
            continue;
        };
        let own = compiler.endpoint(&text, &route, &rule, &categories);
        plans.extend(globals.each_ref().map(|global| {
            let global = global.as_ref().filter(|_| !rule.without_global);
            compiler.plan(&text, own.iter().chain(global).chain(&always))
        }));
        routes.push((route, Target::Endpoint(plans.len() / 2 - 1)));
    }
    for global in &globals {
        plans.push(compiler.plan("what matches no endpoint", global.iter().chain(&always)));
    }
    for text in builder.exempt_routes {
        if let Some(route) = compiler.problems.note(Route::parse(&text)) {
            routes.push((route, Target::Exempt));
        }
    }

    let Compiler {
        mut problems,
        lines,
        terms,
        ..
    } = compiler;
    let routes = Routes::compile(routes).unwrap_or_else(|wrong| {
        for problem in wrong {
            problems.push(problem);
        }
        Routes::default()
    });
    problems.or(Policy {
        tiers,
        lines: lines.into(),
        terms: terms.into(),
        plans: plans.into(),
        routes,
        exempt: builder.exempt,
        warn_thousandths: thousandths(builder.warn_at),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within bounds, or refused before"
)]
fn thousandths(share: f64) -> u64 {
    (share * 1_000.0).round() as u64
}

/// A compiled rule: its lines, on these terms, per this.
#[derive(Clone)]
struct Group {
    lines: std::ops::Range<usize>,
    terms: usize,
    per: Per,
}

struct Compiler<'t> {
    tiers: &'t TierTable,
    problems: Problems,
    /// Rules by name, and what each is, for people.
    names: HashMap<String, String>,
    lines: Vec<Line>,
    terms: Vec<Terms>,
}

impl Compiler<'_> {
    fn refuse(&mut self, place: &str, wrong: bool, setting: &'static str, expected: &'static str) {
        if wrong {
            self.problems
                .push(Invalid::new(setting, "set", expected).within(place));
        }
    }

    /// A rule that has quotas: its lines and terms.
    fn group(&mut self, name: &str, rule: &Rule, rank: u8) -> Group {
        let elsewhere = rank != ENDPOINT;
        for (wrong, setting, expected) in [
            (
                rule.stacked && rank != CATEGORY,
                "stacked",
                "this on categories only",
            ),
            (
                elsewhere && rule.category.is_some(),
                "category",
                "this on endpoints only",
            ),
            (
                elsewhere && rule.without_global,
                "without_global",
                "this on endpoints only",
            ),
            (
                elsewhere && rule.name.is_some(),
                "name",
                "this on endpoints only; others have one",
            ),
        ] {
            self.refuse(name, wrong, setting, expected);
        }
        self.refuse(name, rule.quotas.is_empty(), "quota", "at least one quota");
        if let Some(other) = self.names.insert(name.to_owned(), name.to_owned()) {
            let expected = format!("a name of its own; there is a rule called `{other}` already");
            self.problems
                .push(Invalid::new("rule name", name, expected));
        }
        let per = self.problems.note(
            Per::new(rule.per.as_deref(), rank == ALWAYS).map_err(|wrong| wrong.within(name)),
        );
        let quotas: Vec<Quota> = rule
            .quotas
            .iter()
            .filter_map(|quota| {
                self.problems
                    .note(quota.clone().map_err(|wrong| wrong.within(name)))
            })
            .collect();
        let by_tier = self.by_tier(name, rule, &quotas);
        let first = self.lines.len();
        for (index, quota) in quotas.iter().enumerate() {
            let counter = Counter::new(name, *quota).map_err(|wrong| wrong.within(name));
            let Some(counter) = self.problems.note(counter) else {
                continue;
            };
            if let Some(twin) = self.lines[first..]
                .iter()
                .find(|line| line.counter.id() == counter.id())
            {
                let expected = format!(
                    "another window than `{}`, which is there already",
                    twin.counter.quota()
                );
                self.problems
                    .push(Invalid::new("quota", quota, expected).within(name));
            }
            let by_tier = by_tier.iter().map(|quotas| quotas[index]).collect();
            self.lines.push(Line {
                counter,
                by_tier,
                rank,
            });
        }
        let lines = first..self.lines.len();
        Group {
            lines,
            terms: self.terms(name, rule, None),
            per: per.unwrap_or(Per::Caller),
        }
    }

    /// The quotas of a rule for each tier.
    fn by_tier(&mut self, name: &str, rule: &Rule, quotas: &[Quota]) -> Vec<Vec<Quota>> {
        for (index, (tier, _)) in rule.tiers.iter().enumerate() {
            if self.tiers.index(tier).is_none() {
                self.problems.push(self.tiers.unknown(tier).within(name));
            }
            if rule.tiers[..index].iter().any(|(other, _)| other == tier) {
                let twice = Invalid::new("tier", tier, "each tier only once");
                self.problems.push(twice.within(name));
            }
        }
        let mut by_tier = Vec::with_capacity(self.tiers.len());
        for index in 0..self.tiers.len() {
            let tier = self.tiers.name(index);
            let place = format!("{name}, tier {tier}");
            let own = rule.tiers.iter().find(|(known, _)| known == tier);
            let scaled: Vec<Quota> = match own {
                Some((_, own)) => {
                    let own: Vec<Quota> = own
                        .iter()
                        .filter_map(|quota| {
                            self.problems
                                .note(quota.clone().map_err(|wrong| wrong.within(&place)))
                        })
                        .collect();
                    self.same_windows(&place, quotas, &own);
                    own
                }
                None if rule.unscaled => quotas.to_vec(),
                None => quotas
                    .iter()
                    .filter_map(|quota| {
                        let scaled = self.tiers.scale(quota, index);
                        self.problems
                            .note(scaled.map_err(|wrong| wrong.within(&place)))
                    })
                    .collect(),
            };
            // What is missing has been reported; what is put in its place is never asked.
            let filled = quotas.iter().enumerate();
            by_tier.push(
                filled
                    .map(|(at, quota)| *scaled.get(at).unwrap_or(quota))
                    .collect(),
            );
        }
        by_tier
    }

    /// A tier has as many quotas as the rule, of the same windows.
    fn same_windows(&mut self, place: &str, quotas: &[Quota], own: &[Quota]) {
        if quotas.len() != own.len() {
            let expected = format!("{}, one for each quota of the rule", quotas.len());
            self.problems
                .push(Invalid::new("number of quotas", own.len(), expected).within(place));
            return;
        }
        for (quota, own) in quotas.iter().zip(own) {
            let same = quota.window() == own.window()
                && quota.algorithm() == own.algorithm()
                && quota.buckets() == own.buckets();
            if !same && !own.counts_nothing() {
                let expected = format!("the window and the algorithm of `{quota}`");
                self.problems
                    .push(Invalid::new("quota", own, expected).within(place));
            }
        }
    }

    /// What a rule says besides its quotas; where it is silent, what its category says.
    fn terms(&mut self, name: &str, rule: &Rule, category: Option<&Rule>) -> usize {
        let category = category.cloned().unwrap_or_default();
        let text = |own: &Option<String>, other: Option<String>| {
            own.clone().or(other).map(String::into_boxed_str)
        };
        self.terms.push(Terms {
            rule: name.into(),
            count: rule.count.clone().or(category.count).unwrap_or_default(),
            cost: rule.cost.clone().or(category.cost).unwrap_or_default(),
            message: text(&rule.message, category.message),
            suggestion: text(&rule.suggestion, category.suggestion),
            on_store_failure: rule
                .on_store_failure
                .or(category.on_store_failure)
                .unwrap_or_default(),
        });
        self.terms.len() - 1
    }

    /// What an endpoint counts on: its own quotas, its category's, or both.
    fn endpoint(
        &mut self,
        text: &str,
        route: &Route,
        rule: &Rule,
        categories: &HashMap<String, (Rule, Group)>,
    ) -> Vec<Group> {
        let mut groups = Vec::new();
        let category = rule.category.as_ref().and_then(|name| {
            let known = categories.get(name);
            if known.is_none() {
                let mut names: Vec<String> =
                    categories.keys().map(|name| format!("`{name}`")).collect();
                names.sort();
                let expected = match names.as_slice() {
                    [] => "a category of the policy; there are none".to_owned(),
                    names => format!("a category of the policy: {}", names.join(", ")),
                };
                self.problems
                    .push(Invalid::new("category", name, expected).within(text));
            }
            known
        });
        if !rule.quotas.is_empty() || rule.category.is_none() {
            let name = rule.name.clone().unwrap_or_else(|| route.name());
            groups.push(self.group(&name, rule, ENDPOINT));
        } else {
            for (wrong, setting, expected) in [
                (
                    rule.per.is_some(),
                    "per",
                    "this on the category, whose counters are shared",
                ),
                (
                    !rule.tiers.is_empty(),
                    "tier",
                    "this on the category, or a quota of its own",
                ),
                (
                    rule.unscaled,
                    "unscaled",
                    "this on the category, or a quota of its own",
                ),
                (rule.stacked, "stacked", "this on categories only"),
                (
                    rule.name.is_some(),
                    "name",
                    "no name without a quota of its own",
                ),
            ] {
                self.refuse(text, wrong, setting, expected);
            }
        }
        if let Some((category, group)) =
            category.filter(|(category, _)| groups.is_empty() || category.stacked)
        {
            let name = rule.category.as_deref().unwrap_or_default();
            let terms = self.terms(name, rule, Some(category));
            groups.push(Group {
                terms,
                ..group.clone()
            });
        }
        groups
    }

    fn plan<'g>(&mut self, place: &str, groups: impl Iterator<Item = &'g Group>) -> Plan {
        let (mut entries, mut subjects) = (Vec::new(), Vec::new());
        let mut by_outcome = false;
        for group in groups {
            let known = subjects.iter().position(|per| *per == group.per);
            let subject = known.unwrap_or_else(|| {
                subjects.push(group.per.clone());
                subjects.len() - 1
            });
            by_outcome |= self.terms[group.terms].count.is_by_outcome();
            entries.extend(group.lines.clone().map(|line| Entry {
                line,
                terms: group.terms,
                subject,
            }));
        }
        if entries.len() > MAX_CHECKS {
            let expected =
                format!("at most {MAX_CHECKS} quotas for one request, all rules together");
            self.problems
                .push(Invalid::new("number of quotas", entries.len(), expected).within(place));
        }
        Plan {
            entries: entries.into(),
            subjects: subjects.into(),
            by_outcome,
        }
    }
}
