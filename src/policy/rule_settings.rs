//! Settings of a compiled rule that do not concern its quotas: [`RuleSettings`].

use super::cost::Cost;
use super::count::Count;
use super::rule::{OnStoreFailure, Rule};

/// Settings of a rule besides its quotas.
#[derive(Debug)]
pub(crate) struct RuleSettings {
    pub(crate) name: Box<str>,
    /// Path of the rule in a policy file.
    pub(crate) path: Box<str>,
    pub(crate) count: Count,
    pub(crate) cost: Cost,
    pub(crate) message: Option<Box<str>>,
    pub(crate) suggestion: Option<Box<str>>,
    pub(crate) on_store_failure: OnStoreFailure,
}

impl RuleSettings {
    /// Returns the settings of a rule. What it does not set, it takes from its category, or else the
    /// default.
    pub(super) fn new(
        (name, path): (&str, &str),
        rule: &Rule,
        category: Option<&Rule>,
        on_store_failure: OnStoreFailure,
    ) -> Self {
        let category = category.cloned().unwrap_or_default();
        let text = |own: &Option<String>, other: Option<String>| {
            own.clone().or(other).map(String::into_boxed_str)
        };
        Self {
            name: name.into(),
            path: path.into(),
            count: rule.count.clone().or(category.count).unwrap_or_default(),
            cost: rule.cost.clone().or(category.cost).unwrap_or_default(),
            message: text(&rule.message, category.message),
            suggestion: text(&rule.suggestion, category.suggestion),
            on_store_failure: rule
                .on_store_failure
                .or(category.on_store_failure)
                .unwrap_or(on_store_failure),
        }
    }

    /// Returns whether a rule sets one of the settings that it can take from its category.
    pub(super) const fn are_set_by(rule: &Rule) -> bool {
        rule.count.is_some()
            || rule.cost.is_some()
            || rule.message.is_some()
            || rule.suggestion.is_some()
            || rule.on_store_failure.is_some()
    }
}
