//! From a tree to the model: the policy, the headers, how callers are known.
//!
//! What is of the wrong kind was told by the [check](super::check) and is passed over here in
//! silence. What a part of the model refuses is told with its place.

mod identity;
mod instant;
#[cfg(feature = "jwt")]
mod jwt;
mod quota;
mod rule;

use std::path::PathBuf;
use std::str::FromStr;

use self::rule::{flag, on_store_failure, text};
use super::context::ReadContext;
use super::problem::{ConfigProblem, ProblemReport, Told};
use super::suggest::did_you_mean;
use super::tree::Setting;
use crate::headers::{HeaderSet, HeaderStyle, ResetStyle};
use crate::pipeline::LayerOverrides;
use crate::policy::{Policy, PolicyBuilder, Preflight, Tiers};
use crate::quota::Algorithm;

/// What a file says, in terms of the model.
pub(super) struct Settings {
    pub(super) policy: PolicyBuilder,
    /// How callers are found, and what they are told.
    pub(super) around: LayerOverrides,
    /// Files with keys that it names.
    pub(super) key_files: Vec<PathBuf>,
}

/// PolicyReader a file.
struct PolicyReader<'a> {
    report: &'a mut ProblemReport,
    context: &'a ReadContext,
    /// Of quotas that do not name one.
    algorithm: Algorithm,
}

pub(super) fn read(
    root: &Setting<'_>,
    context: &ReadContext,
    report: &mut ProblemReport,
) -> Settings {
    let defaults = root.get("defaults");
    let defaults = defaults.as_ref();
    let algorithm = defaults.and_then(|defaults| choice(defaults, "algorithm"));
    let mut reader = PolicyReader {
        report,
        context,
        algorithm: algorithm.unwrap_or_default(),
    };
    let policy = reader.policy(root);
    let around = reader.around(root);
    let set: Option<HeaderSet> = defaults.and_then(|defaults| choice(defaults, "headers"));
    let reset: Option<ResetStyle> = defaults.and_then(|defaults| choice(defaults, "reset"));
    let style = (set.is_some() || reset.is_some())
        .then(|| HeaderStyle::new(set.unwrap_or_default()).with_reset(reset.unwrap_or_default()));
    Settings {
        policy,
        around: LayerOverrides { style, ..around },
        key_files: identity::key_files(root, &context.base),
    }
}

/// A text that names something of the model. If it does not, the check has told.
fn choice<T: FromStr>(setting: &Setting<'_>, key: &str) -> Option<T> {
    text(setting, key)?.parse().ok()
}

impl PolicyReader<'_> {
    /// Lists are passed on whole, also what is wrong in them: the policy counts along when it
    /// says where a problem is, and what was told once is not told again.
    fn policy(&mut self, root: &Setting<'_>) -> PolicyBuilder {
        let mut policy = Policy::builder();
        if let Some(defaults) = root.get("defaults") {
            if let Some(share) = defaults.get("warn_at").and_then(|share| share.number()) {
                policy = policy.warn_at(share);
            }
            if let Some(outcome) = on_store_failure(&defaults) {
                policy = policy.on_store_failure(outcome);
            }
            let share = defaults.get("local_share");
            if let Some(share) = share.and_then(|share| share.number()) {
                policy = policy.local_share(share);
            }
        }
        if let Some(tiers) = root.get("tiers") {
            policy = policy.tiers(self.tiers(&tiers));
        }
        if let Some(global) = root.get("global") {
            if let Some(rule) = global.get("authenticated") {
                policy = policy.authenticated(self.rule_or_quotas(&rule));
            }
            if let Some(rule) = global.get("anonymous") {
                policy = policy.anonymous(self.rule_or_quotas(&rule));
            }
            if text(&global, "preflight") == Some("count") {
                policy = policy.preflight(Preflight::Count);
            }
            let quota = global.get("preflight_quota");
            if let Some(quota) = quota.and_then(|quota| self.quota(&quota, self.algorithm)) {
                policy = policy.preflight_quota(quota);
            }
        }
        if let Some(categories) = root.get("categories") {
            for (name, category) in categories.entries() {
                let mut rule = self.rule(&category);
                if flag(&category, "stack") == Some(true) {
                    rule = rule.stacked();
                }
                policy = policy.category(&name.name, rule);
            }
        }
        if let Some(endpoints) = root.get("endpoints") {
            for endpoint in endpoints.items() {
                let mut rule = self.rule(&endpoint);
                rule.category = text(&endpoint, "category").map(str::to_owned);
                rule.name = text(&endpoint, "name").map(str::to_owned);
                if flag(&endpoint, "global") == Some(false) {
                    rule = rule.without_global();
                }
                policy = policy.endpoint(text(&endpoint, "route").unwrap_or_default(), rule);
            }
        }
        if let Some(rules) = root.get("rules") {
            for always in rules.items() {
                let rule = self.rule(&always);
                policy = policy.rule(text(&always, "name").unwrap_or_default(), rule);
            }
        }
        if let Some(exempt) = root.get("exempt") {
            policy = exemptions(&exempt, policy);
        }
        let until = root.get("maintenance");
        let until = until.and_then(|maintenance| maintenance.get("disabled_until"));
        match until.and_then(|until| self.instant(&until)) {
            Some(until) => policy.maintenance_until(until),
            None => policy,
        }
    }

    fn tiers(&mut self, setting: &Setting<'_>) -> Tiers {
        let is_tier = |name: &str| !matches!(name, "default" | "assign");
        let tiers: Vec<_> = setting
            .entries()
            .filter(|(key, _)| is_tier(&key.name))
            .collect();
        let default = setting.get("default");
        let name = default.as_ref().and_then(Setting::text);
        let mut read = Tiers::new(name.unwrap_or("default"));
        for (key, multiplier) in &tiers {
            // What is no number was told; it is a tier all the same.
            read = read.tier(&key.name, multiplier.number().unwrap_or(1.0));
        }
        if let (Some(default), Some(name)) = (default, name) {
            let names = || tiers.iter().map(|(key, _)| key.name.as_str());
            // `default` is the one name that cannot be listed.
            if name != "default" && !names().any(|known| known == name) {
                let help =
                    did_you_mean(name, names()).unwrap_or_else(|| format!("add it: {name} = 1"));
                self.report.push(ConfigProblem::new(Told {
                    path: default.path.clone(),
                    message: format!("there is no tier `{name}`"),
                    found: Some(name.to_owned()),
                    expected: Some("one of the tiers of this table".to_owned()),
                    help: Some(help),
                    span: Some(default.node.span.clone()),
                    ..Told::default()
                }));
            }
        }
        let assign = setting.get("assign");
        let dimensions = assign.iter().flat_map(Setting::entries);
        for (dimension, callers) in dimensions {
            for (caller, tier) in callers.entries() {
                if let Some(tier) = tier.text() {
                    read = read.assign(&dimension.name, &caller.name, tier);
                }
            }
        }
        read
    }
}

fn exemptions(setting: &Setting<'_>, mut policy: PolicyBuilder) -> PolicyBuilder {
    let items = |key| {
        let list = setting.get(key);
        let items: Vec<String> = list
            .iter()
            .flat_map(Setting::items)
            .map(|item| item.text().unwrap_or_default().to_owned())
            .collect();
        items
    };
    policy = items("roles")
        .into_iter()
        .fold(policy, PolicyBuilder::exempt_role);
    policy = items("networks")
        .into_iter()
        .fold(policy, PolicyBuilder::exempt_network);
    policy = items("routes")
        .into_iter()
        .fold(policy, PolicyBuilder::exempt_route);
    let subjects = setting.get("subjects");
    for (dimension, names) in subjects.iter().flat_map(Setting::entries) {
        for name in names.items().filter_map(|name| name.text()) {
            policy = policy.exempt_subject(&dimension.name, name);
        }
    }
    policy
}
