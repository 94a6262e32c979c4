//! What the policy says when it is compiled, told in terms of the file.

use super::problem::{ConfigProblem, ProblemReport, Told};
use super::suggest::did_you_mean;
use super::tree::{ConfigValue, Setting, SourceSpan, shortened};
use crate::error::ValidationError;
use crate::policy::{Policy, PolicyBuilder};

/// The policy, unless something is wrong with it that was not told before.
pub(super) fn compile(
    policy: PolicyBuilder,
    root: &Setting<'_>,
    report: &mut ProblemReport,
) -> Option<Policy> {
    match policy.build() {
        Ok(policy) => Some(policy),
        Err(problems) => {
            let mut told = Vec::new();
            for wrong in problems.iter() {
                if told.len() > ProblemReport::MOST {
                    report.skip();
                    continue;
                }
                let problem = in_file(wrong, root);
                if problem.path().is_empty() || !report.has_told(problem.path()) {
                    told.push(problem);
                }
            }
            report.extend(told);
            None
        }
    }
}

fn in_file(wrong: &ValidationError, root: &Setting<'_>) -> ConfigProblem {
    let (setting, rest) = root.clone().follow(wrong.path().unwrap_or_default());
    let field = key_of(wrong.field());
    let other = wrong.other_path().map(|other| {
        let (setting, _) = root.clone().follow(other);
        (span_of(&setting), "the other one".to_owned())
    });
    let is_missing = !rest.is_empty() && setting.table().is_some();
    let path = if is_missing {
        setting.path.then(rest)
    } else {
        setting.path.clone()
    };
    let shown = match wrong.value() {
        "nothing" => format!("no {field}"),
        "" => format!("empty {field}"),
        _ if wrong.expected().starts_with("this on ") => format!("`{field}` has no span here"),
        value => format!("invalid {field} `{}`", shortened(value)),
    };
    ConfigProblem::new(Told {
        help: meant(wrong, root),
        path,
        message: shown,
        found: Some(wrong.value().to_owned()),
        expected: Some(wrong.expected().to_owned()),
        // The root is the whole file, which is no place.
        span: (!setting.path.as_str().is_empty()).then(|| span_of(&setting)),
        also: other.into_iter().collect(),
        ..Told::default()
    })
}

/// Of a table in a list its name or route, which is what people know it by.
fn span_of(setting: &Setting<'_>) -> SourceSpan {
    let known_by = ["name", "route"]
        .into_iter()
        .find_map(|key| setting.get(key));
    match known_by {
        Some(known_by) if matches!(known_by.node.value, ConfigValue::Text(_)) => {
            known_by.node.span.clone()
        }
        _ => setting.node.span.clone(),
    }
}

/// What the file calls a setting, without the rule that it is in: the place says that.
fn key_of(field: &str) -> &str {
    match field.rsplit_once(": ").map_or(field, |(_, field)| field) {
        "stacked" => "stack",
        "without_global" => "global",
        "unscaled" => "scale",
        "dry_run" => "mode",
        of if of.starts_with("multiplier of ") => "multiplier",
        of if of.starts_with("tier of ") => "tier",
        same => same,
    }
}

/// What was most likely meant: a name that is nearly this one, a key that was left out.
fn meant(wrong: &ValidationError, root: &Setting<'_>) -> Option<String> {
    let table = match key_of(wrong.field()) {
        "quota" if wrong.value() == "nothing" => {
            let is_endpoint = wrong.path()?.starts_with("endpoints[");
            return is_endpoint.then(|| "say `limit`, or the `category` that it shares".to_owned());
        }
        "category" => "categories",
        "tier" => "tiers",
        _ => return None,
    };
    let names = root.get(table)?;
    let is_name = |name: &&str| table != "tiers" || !matches!(*name, "default" | "assign");
    let names = names
        .entries()
        .map(|(key, _)| key.name.as_str())
        .filter(is_name);
    did_you_mean(wrong.value(), names)
}
