//! Compares a file with the descriptions of its tables: unknown keys, missing keys, values of the
//! wrong kind.

use super::problem::ConfigProblem;
use super::redact::is_secret;
use super::report::ProblemReport;
use super::suggest::{did_you_mean, nearest};
use super::table::{FILE, KeySpec, QUOTA, RULE, TableSpec, ValueKind, is_quota_table, quoted_list};
use super::tree::{ConfigKey, ConfigValue, Setting, shortened};

/// Adds every difference between the file and its description to the report.
pub(super) fn check(root: &Setting<'_>, report: &mut ProblemReport) {
    check_table(root, &FILE, report);
}

fn check_value(setting: &Setting<'_>, kind: ValueKind, report: &mut ProblemReport) {
    if let (Some(kind), ConfigValue::List(items)) = (kind.item(), &setting.node.value) {
        if items.is_empty() && matches!(kind, ValueKind::Quota) {
            report.push(wrong_kind(setting, ValueKind::Quotas, "an empty list"));
        }
        for item in setting.items() {
            check_value(&item, kind, report);
        }
        return;
    }
    match (kind, &setting.node.value) {
        (ValueKind::Table(spec), ConfigValue::Table(_)) => check_table(setting, spec, report),
        (ValueKind::Quota | ValueKind::Quotas, ConfigValue::Table(_)) => {
            check_table(setting, &QUOTA, report);
        }
        (ValueKind::RuleOrQuotas, ConfigValue::Table(_)) => {
            let spec = if is_quota_table(setting) {
                &QUOTA
            } else {
                &RULE
            };
            check_table(setting, spec, report);
        }
        (ValueKind::ChoiceOrTexts(choices, _), ConfigValue::Text(text))
            if !choices.contains(&text.as_str()) =>
        {
            let problem = wrong_kind(setting, kind, &setting.node.value.shown());
            let help = did_you_mean(text, choices.iter().copied());
            let brackets = || Some(format!("put it in brackets: [{text:?}]"));
            report.push(problem.with_help(help.or_else(brackets)));
        }
        (ValueKind::Choice(choices), ConfigValue::Text(text))
            if !choices.contains(&text.as_str()) =>
        {
            let problem = wrong_kind(setting, kind, &setting.node.value.shown());
            report.push(problem.with_help(did_you_mean(text, choices.iter().copied())));
        }
        (
            ValueKind::Text(_)
            | ValueKind::Choice(_)
            | ValueKind::TextOrTexts(_)
            | ValueKind::ChoiceOrTexts(..)
            | ValueKind::Time
            | ValueKind::Outcomes
            | ValueKind::Status
            | ValueKind::Quota
            | ValueKind::Quotas
            | ValueKind::RuleOrQuotas,
            ConfigValue::Text(_),
        )
        | (ValueKind::Time, ConfigValue::Time(_))
        | (ValueKind::Whole(_), ConfigValue::Whole(0..))
        | (ValueKind::Number(_), ConfigValue::Whole(_) | ConfigValue::Number(_))
        | (ValueKind::Outcomes | ValueKind::Status, ConfigValue::Whole(_))
        | (ValueKind::Flag, ConfigValue::Flag(_)) => {}
        (_, value) => {
            let problem = wrong_kind(setting, kind, &value.shown());
            report.push(problem.with_help(help(kind, value)));
        }
    }
}

fn wrong_kind(setting: &Setting<'_>, kind: ValueKind, found: &str) -> ConfigProblem {
    ConfigProblem::at(setting, format!("found {found}"))
        .with_found(found)
        .with_expected(kind.expected())
}

/// Suggests how to write a value of the wrong kind.
fn help(kind: ValueKind, value: &ConfigValue) -> Option<String> {
    match (kind, value) {
        (ValueKind::Quota | ValueKind::Quotas | ValueKind::RuleOrQuotas, ConfigValue::Whole(0)) => {
            Some("write \"blocked\" to reject everything, or \"unlimited\" to allow it".to_owned())
        }
        (
            ValueKind::Quota | ValueKind::Quotas | ValueKind::RuleOrQuotas,
            ConfigValue::Whole(number),
        ) => Some(format!(
            "a number needs a window: \"{number}/hour\", or {{ limit = {number}, window = \"1h\" }}"
        )),
        (ValueKind::Texts(_) | ValueKind::Choices(_), ConfigValue::Text(text)) => {
            Some(format!("put it in brackets: [{text:?}]"))
        }
        (ValueKind::Flag, ConfigValue::Text(text)) if text == "true" || text == "false" => {
            Some(format!("write it without quotes: {text}"))
        }
        (ValueKind::Whole(_) | ValueKind::Number(_), ConfigValue::Text(text))
            if text.parse::<f64>().is_ok() =>
        {
            Some(format!("write it without quotes: {text}"))
        }
        (ValueKind::Tables(_), ConfigValue::Table(_)) => {
            Some("write two pairs of brackets around its name, once for each".to_owned())
        }
        _ => None,
    }
}

fn check_table(table: &Setting<'_>, spec: &'static TableSpec, report: &mut ProblemReport) {
    // Keys that the table has, or that were probably meant by one that it has.
    let mut present: Vec<&str> = Vec::new();
    for (key, value) in table.entries() {
        present.push(&key.name);
        if let Some(kind) = spec.kind_of(&key.name) {
            check_value(&value, kind, report);
        } else {
            let meant = similar_key(key, spec, report);
            present.extend(meant);
            report.push_with(|| unknown_key(table, key, spec, meant));
        }
    }
    for key in spec.keys().filter(|key| spec.is_required(key)) {
        if !present.contains(&key.key) {
            let problem = ConfigProblem::at(table, format!("missing key `{}`", key.key))
                .with_path(&table.path.key(key.key))
                .with_expected(key.kind.expected())
                .with_help(Some(key.doc.to_owned()));
            report.push(problem);
        }
    }
}

/// Returns the key that was probably meant.
fn similar_key(
    key: &ConfigKey,
    spec: &'static TableSpec,
    report: &ProblemReport,
) -> Option<&'static str> {
    if report.is_full() {
        return None;
    }
    let has_alias = |known: &&KeySpec| {
        let mut aliases = known.aliases.iter();
        aliases.any(|alias| alias.eq_ignore_ascii_case(&key.name))
    };
    let by_alias = spec.keys().find(has_alias).map(|known| known.key);
    by_alias.or_else(|| nearest(&key.name, spec.names()))
}

fn unknown_key(
    table: &Setting<'_>,
    key: &ConfigKey,
    spec: &'static TableSpec,
    meant: Option<&str>,
) -> ConfigProblem {
    let help = match meant {
        _ if is_secret(&key.name) && spec.key("secret_env").is_some() => Some(
            "secrets do not belong into this file: name a variable with `secret_env`, or a file \
             with `secret_file`"
                .to_owned(),
        ),
        Some(meant) => Some(format!("did you mean `{meant}`?")),
        None => other_table(&key.name),
    };
    let name = shortened(&key.name);
    let problem = ConfigProblem::new(format!("unknown key `{name}`"))
        .with_path(&table.path.key(&key.name))
        .with_span(key.span.clone())
        .with_found(name)
        .with_expected(quoted_list(&spec.names()))
        .with_help(help);
    match meant {
        Some(meant) => problem.covering(&table.path.key(meant)),
        None => problem,
    }
}

/// Suggests another table if the key belongs there.
fn other_table(key: &str) -> Option<String> {
    let mut owners = FILE.keys().filter(|owner| match owner.kind {
        ValueKind::Table(table) => table.key(key).is_some(),
        _ => false,
    });
    let owner = owners.next()?.key;
    Some(format!("`{key}` belongs into `[{owner}]`"))
}
