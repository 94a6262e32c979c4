//! Compiles one rule: its quotas for each tier, and its settings.

use std::ops::Range;

use super::Compiler;
use crate::decision::QUIET;
use crate::error::ValidationError;
use crate::key::Counter;
use crate::policy::about::{RuleAbout, RuleKind};
use crate::policy::key_by::KeyBy;
use crate::policy::rule::Rule;
use crate::policy::{CompiledQuota, RuleSettings};
use crate::quota::Quota;

/// Name of a rule in messages, and its path in a policy file.
pub(super) struct RuleLocation<'a> {
    pub(super) name: &'a str,
    pub(super) path: String,
}

impl<'a> RuleLocation<'a> {
    pub(super) fn new(name: &'a str, path: impl Into<String>) -> Self {
        Self {
            name,
            path: path.into(),
        }
    }

    /// Returns an error of one setting of the rule, with name and path.
    pub(super) fn problem(&self, key: &str, error: ValidationError) -> ValidationError {
        let path = format!("{}.{key}", self.path);
        error.within(self.name).at(path)
    }
}

/// A compiled rule: indexes into the lists of the compiler.
#[derive(Clone)]
pub(super) struct CompiledRule {
    /// Index among the descriptions of rules.
    pub(super) about: usize,
    pub(super) quotas: Range<usize>,
    pub(super) settings: usize,
    pub(super) key_by: usize,
    pub(super) dry_run: bool,
}

impl Compiler<'_> {
    /// Reports a setting that does not belong on this rule, if the rule has it.
    pub(super) fn reject(
        &mut self,
        location: &RuleLocation<'_>,
        key: &'static str,
        value: Option<&str>,
        expected: &'static str,
    ) {
        if let Some(value) = value {
            let problem = ValidationError::new(key, value, expected);
            self.problems.push(location.problem(key, problem));
        }
    }

    /// Compiles a rule that has quotas.
    pub(super) fn rule(
        &mut self,
        location: &RuleLocation<'_>,
        rule: &Rule,
        kind: RuleKind,
    ) -> CompiledRule {
        const ON_ENDPOINTS: &str = "this on endpoints only";
        if kind != RuleKind::Category {
            let stack = rule.is_stacked().then_some("true");
            self.reject(location, "stack", stack, "this on categories only");
        }
        if kind != RuleKind::Endpoint {
            let (category, name) = (rule.category.as_deref(), rule.name.as_deref());
            let global = rule.without_global.then_some("false");
            self.reject(location, "category", category, ON_ENDPOINTS);
            self.reject(location, "global", global, ON_ENDPOINTS);
            self.reject(
                location,
                "name",
                name,
                "this on endpoints only; others have one",
            );
        }
        let limit = rule.quotas.is_empty().then_some("nothing");
        self.reject(location, "limit", limit, "at least one quota");
        self.check_name(location);
        let per = KeyBy::new(rule.per.as_deref(), kind == RuleKind::AlwaysOn);
        let per = per.map_err(|error| location.problem("per", error));
        let per = self.problems.note(per);
        let quotas = self.quotas(location, "limit", &rule.quotas);
        // A counter that all callers share has one limit, which cannot depend on the caller's tier.
        let unscaled = rule.is_unscaled() || per.as_ref().is_some_and(KeyBy::is_shared_by_all);
        let by_tier = self.by_tier(location, rule, unscaled, &quotas);
        let first = self.quotas.len();
        for (index, quota) in quotas.iter().enumerate() {
            let counter = Counter::new(location.name, *quota);
            let counter = counter.map_err(|error| location.problem("name", error));
            let Some(counter) = self.problems.note(counter) else {
                continue;
            };
            let mut own = self.quotas[first..].iter();
            if let Some(twin) = own.find(|other| other.counter.id() == counter.id()) {
                let twin = twin.counter.quota();
                let expected = format!("another window than `{twin}`, which is there already");
                let problem = ValidationError::new("quota", quota, expected);
                self.problems.push(location.problem("limit", problem));
            }
            let mut others = self.quotas.iter();
            if let Some(twin) = others.find(|quota| {
                let other = &quota.counter;
                other.short_id() == counter.short_id() && other.id() != counter.id()
            }) {
                let found = counter.to_string();
                let expected = format!("another name: `{}` has the same id in Redis", twin.counter);
                let problem = ValidationError::new("name", found, expected);
                self.problems.push(location.problem("name", problem));
            }
            let by_tier = by_tier.iter().map(|quotas| quotas[index]).collect();
            self.quotas.push(CompiledQuota {
                counter,
                by_tier,
                rank: kind as u8 | if rule.quiet { QUIET } else { 0 },
            });
        }
        let key_by = per.unwrap_or(KeyBy::Caller);
        let compiled = CompiledRule {
            about: self.about_rules.len(),
            quotas: first..self.quotas.len(),
            settings: self.settings(location, rule, None),
            key_by: self.key_by(&key_by),
            dry_run: rule.dry_run,
        };
        let about = self.about(rule, kind, &compiled, key_by);
        self.about_rules.push(about);
        compiled
    }

    /// Returns the index of what a rule counts per.
    fn key_by(&mut self, key_by: &KeyBy) -> usize {
        let known = self.key_bys.iter().position(|known| known == key_by);
        known.unwrap_or_else(|| {
            self.key_bys.push(key_by.clone());
            self.key_bys.len() - 1
        })
    }

    /// Describes a rule for explanations and overviews.
    fn about(
        &self,
        rule: &Rule,
        kind: RuleKind,
        compiled: &CompiledRule,
        key_by: KeyBy,
    ) -> RuleAbout {
        let has_quota = |tier| rule.tiers.iter().any(|(known, _)| known == tier);
        RuleAbout {
            kind,
            quotas: compiled.quotas.clone(),
            settings: compiled.settings,
            unscaled: rule.is_unscaled() || key_by.is_shared_by_all(),
            key_by,
            has_tier_quotas: (0..self.tiers.len())
                .map(|tier| has_quota(self.tiers.name(tier)))
                .collect(),
            scale: rule.scale,
            stack: rule.stack,
            dry_run: rule.dry_run,
            quiet: rule.quiet,
        }
    }

    /// Reports a name that another rule has. Names are part of the keys of counters, so they must be
    /// unique.
    fn check_name(&mut self, location: &RuleLocation<'_>) {
        let RuleLocation { name, path } = location;
        if let Some(other) = self.names.insert((*name).to_owned(), path.clone()) {
            let expected = format!("a name of its own; there is a rule called `{name}` already");
            let problem = ValidationError::new("rule name", name, expected);
            self.problems
                .push(problem.at(format!("{path}.name")).because_of(other));
        }
    }

    /// Returns the valid quotas, and reports the others.
    fn quotas(
        &mut self,
        location: &RuleLocation<'_>,
        key: &str,
        quotas: &[Result<Quota, ValidationError>],
    ) -> Vec<Quota> {
        let mut known = Vec::with_capacity(quotas.len());
        for (index, quota) in quotas.iter().enumerate() {
            let key = match quotas {
                [_] => key.to_owned(),
                _ => format!("{key}[{index}]"),
            };
            let quota = quota.clone().map_err(|error| location.problem(&key, error));
            known.extend(self.problems.note(quota));
        }
        known
    }

    /// Returns the quotas of a rule for each tier.
    fn by_tier(
        &mut self,
        location: &RuleLocation<'_>,
        rule: &Rule,
        unscaled: bool,
        quotas: &[Quota],
    ) -> Vec<Vec<Quota>> {
        for (index, (tier, _)) in rule.tiers.iter().enumerate() {
            let key = format!("tiers.{tier}");
            if self.tiers.index(tier).is_none() {
                let unknown = self.tiers.unknown(tier);
                self.problems.push(location.problem(&key, unknown));
            }
            if rule.tiers[..index].iter().any(|(other, _)| other == tier) {
                let twice = ValidationError::new("tier", tier, "each tier only once");
                self.problems.push(location.problem(&key, twice));
            }
        }
        let mut by_tier = Vec::with_capacity(self.tiers.len());
        for index in 0..self.tiers.len() {
            let tier = self.tiers.name(index);
            let in_tier = format!("{}, tier {tier}", location.name);
            let of_tier = RuleLocation::new(&in_tier, &*location.path);
            let own = rule.tiers.iter().find(|(known, _)| known == tier);
            let scaled: Vec<Quota> = match own {
                Some((_, own)) => {
                    let key = format!("tiers.{tier}");
                    let own = self.quotas(&of_tier, &key, own);
                    self.check_windows(&of_tier, &key, quotas, &own);
                    own
                }
                None if unscaled => quotas.to_vec(),
                None => {
                    let scale = |quota| self.tiers.scale(quota, index);
                    let scaled: Vec<_> = quotas.iter().map(scale).collect();
                    self.quotas(&of_tier, "limit", &scaled)
                }
            };
            // Invalid quotas were reported, so the policy is not built. The placeholders only keep the
            // lengths equal.
            let filled = quotas.iter().enumerate();
            by_tier.push(
                filled
                    .map(|(at, quota)| *scaled.get(at).unwrap_or(quota))
                    .collect(),
            );
        }
        by_tier
    }

    /// Reports quotas of a tier that differ from those of the rule in number, window or algorithm.
    fn check_windows(
        &mut self,
        location: &RuleLocation<'_>,
        key: &str,
        quotas: &[Quota],
        own: &[Quota],
    ) {
        if quotas.len() != own.len() {
            let expected = format!("{}, one for each quota of the rule", quotas.len());
            let problem = ValidationError::new("number of quotas", own.len(), expected);
            self.problems.push(location.problem(key, problem));
            return;
        }
        for (quota, own) in quotas.iter().zip(own) {
            let same = quota.window() == own.window()
                && quota.algorithm() == own.algorithm()
                && quota.buckets() == own.buckets();
            if !same && !own.counts_nothing() {
                let expected = format!("the window and the algorithm of `{quota}`");
                let problem = ValidationError::new("quota", own, expected);
                self.problems.push(location.problem(key, problem));
            }
        }
    }

    /// Compiles the settings of a rule besides its quotas. Where it sets none, those of its category
    /// apply. Returns their index.
    pub(super) fn settings(
        &mut self,
        location: &RuleLocation<'_>,
        rule: &Rule,
        category: Option<&Rule>,
    ) -> usize {
        let names = (location.name, location.path.as_str());
        let settings = RuleSettings::new(names, rule, category, self.on_store_failure);
        self.rules.push(settings);
        self.rules.len() - 1
    }
}
