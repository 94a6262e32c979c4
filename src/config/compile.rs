//! Compiles the policy of a file, and reports its errors with their positions.

use super::report::ProblemReport;
use super::suggest::did_you_mean;
use super::tree::Setting;
use crate::error::ValidationError;
use crate::policy::{Policy, PolicyBuilder};

/// Compiles the policy, or adds its errors to the report.
pub(super) fn compile(
    policy: PolicyBuilder,
    root: &Setting<'_>,
    report: &mut ProblemReport,
) -> Option<Policy> {
    report.check_all_with(root, policy.build(), suggest)
}

/// Suggests a similar name, or the key that is missing.
fn suggest(error: &ValidationError, root: &Setting<'_>) -> Option<String> {
    let path = error.path()?;
    let table = if error.field().ends_with("category") {
        "categories"
    } else if error.field().ends_with("tier") {
        "tiers"
    } else if error.value() == "nothing" && path.starts_with("endpoints[") {
        return Some("set `limit`, or the `category` whose limit it shares".to_owned());
    } else {
        return None;
    };
    let names = root.get(table)?;
    let is_name = |name: &&str| table != "tiers" || !matches!(*name, "default" | "assign");
    let names = names
        .entries()
        .map(|(key, _)| key.name.as_str())
        .filter(is_name);
    did_you_mean(error.value(), names)
}
