//! One rule: its quotas, what it counts per, what the denied are told.

use super::{PolicyReader, choice};
use crate::config::check::is_quota_table;
use crate::config::problem::ConfigProblem;
use crate::config::tree::{ConfigValue, Setting};
use crate::policy::{Count, OnStoreFailure, Rule};
use crate::response::Template;

impl PolicyReader<'_> {
    /// A rule that may also be just its quotas.
    pub(super) fn rule_or_quotas(&mut self, setting: &Setting<'_>) -> Rule {
        let is_rule = setting.table().is_some() && !is_quota_table(setting);
        if is_rule {
            return self.rule(setting);
        }
        let quotas = self.quotas(setting, self.algorithm).unwrap_or_default();
        quotas.into_iter().fold(Rule::default(), Rule::quota)
    }

    /// What all rules have in common.
    pub(super) fn rule(&mut self, setting: &Setting<'_>) -> Rule {
        let mut rule = self.quotas_of_rule(setting);
        if let Some(per) = setting.get("per").filter(|per| is_list(per)) {
            rule = rule.per(per.items().filter_map(|name| name.text()));
        }
        if flag(setting, "scale") == Some(false) {
            rule = rule.unscaled();
        }
        if let Some(count) = setting.get("count").and_then(|count| self.count(&count)) {
            rule = rule.count(count);
        }
        if let Some(cost) = setting.get("cost").and_then(|cost| cost.whole()) {
            rule = rule.cost(cost);
        }
        if let Some(message) = setting.get("message") {
            rule = self.message(&message, rule);
        }
        if let Some(suggestion) = setting.get("suggestion").and_then(|text| text.text()) {
            rule = rule.suggestion(suggestion);
        }
        if let Some(outcome) = on_store_failure(setting) {
            rule = rule.on_store_failure(outcome);
        }
        if text(setting, "mode") == Some("dry-run") {
            rule = rule.dry_run();
        }
        rule
    }

    /// Numbers for tiers are left out where the rule's own are wrong: they have to fit.
    fn quotas_of_rule(&mut self, setting: &Setting<'_>) -> Rule {
        let algorithm = choice(setting, "algorithm").unwrap_or(self.algorithm);
        let mut rule = Rule::default();
        let mut is_fine = true;
        if let Some(limit) = setting.get("limit") {
            match self.quotas(&limit, algorithm) {
                Some(quotas) => rule = quotas.into_iter().fold(rule, Rule::quota),
                None => is_fine = false,
            }
        }
        if let Some(tiers) = setting.get("tiers") {
            for (tier, numbers) in tiers.entries() {
                if let Some(quotas) = self.quotas(&numbers, algorithm).filter(|_| is_fine) {
                    rule = rule.tier(&tier.name, quotas);
                }
            }
        }
        rule
    }

    fn count(&mut self, setting: &Setting<'_>) -> Option<Count> {
        match setting.text() {
            Some("all") => return Some(Count::all()),
            Some("success") => return Some(Count::success()),
            Some("failure") => return Some(Count::failure()),
            _ => {}
        }
        let mut statuses = Vec::new();
        let mut is_fine = true;
        for item in setting.one_or_more() {
            let status = match &item.node.value {
                ConfigValue::Text(text) => text.clone(),
                ConfigValue::Whole(code) => code.to_string(),
                // Which the check has told.
                _ => return None,
            };
            // One at a time, to know which one is wrong.
            if let Err(wrong) = Count::statuses([status.as_str()]) {
                let names = ["all", "success", "failure"];
                let help = crate::config::suggest::did_you_mean(&status, names);
                let problem = ConfigProblem::refused(&item, &wrong);
                self.report.push(problem.with_help(help));
                is_fine = false;
            }
            statuses.push(status);
        }
        if !is_fine {
            return None;
        }
        let count = Count::statuses(statuses.iter().map(String::as_str));
        self.report.note(setting, count)
    }

    fn message(&mut self, setting: &Setting<'_>, rule: Rule) -> Rule {
        let Some(text) = setting.text() else {
            return rule;
        };
        match self.report.note(setting, Template::parse(text)) {
            Some(_) => rule.message(text),
            None => rule,
        }
    }
}

pub(super) fn on_store_failure(setting: &Setting<'_>) -> Option<OnStoreFailure> {
    match text(setting, "on_store_failure")? {
        "local" => Some(OnStoreFailure::Local),
        "allow" => Some(OnStoreFailure::Allow),
        "deny" => Some(OnStoreFailure::Deny),
        _ => None,
    }
}

pub(super) fn text<'a>(setting: &Setting<'a>, key: &str) -> Option<&'a str> {
    setting.get(key)?.text()
}

pub(super) fn flag(setting: &Setting<'_>, key: &str) -> Option<bool> {
    setting.get(key)?.flag()
}

const fn is_list(setting: &Setting<'_>) -> bool {
    matches!(setting.node.value, ConfigValue::List(_))
}
