//! A tree against the shape of the file: unknown keys, missing keys, values of another kind.

use super::problem::{ConfigProblem, ProblemReport, Told};
use super::shape::{self, Kind, one_of};
use super::suggest::{did_you_mean, nearest};
use super::tree::{ConfigKey, ConfigValue, Setting};

/// Notes everything in which the file differs from its shape.
pub(super) fn check(root: &Setting<'_>, report: &mut ProblemReport) {
    check_table(root, &shape::FILE, report);
}

/// What a table is to a rule that may also be just its quotas: a quota has a window.
pub(super) fn is_quota_table(setting: &Setting<'_>) -> bool {
    setting.get("window").is_some()
}

fn check_value(setting: &Setting<'_>, kind: Kind, report: &mut ProblemReport) {
    match (kind, &setting.node.value) {
        (Kind::Table(shape), ConfigValue::Table(_)) => check_table(setting, shape, report),
        (Kind::Tables(shape), ConfigValue::List(_)) => {
            for item in setting.items() {
                check_value(&item, Kind::Table(shape), report);
            }
        }
        (Kind::Quota | Kind::Quotas, ConfigValue::Table(_)) => {
            check_table(setting, &shape::QUOTA, report);
        }
        (Kind::RuleOrQuotas, ConfigValue::Table(_)) => {
            let is_quota = is_quota_table(setting);
            let shape = if is_quota {
                &shape::QUOTA
            } else {
                &shape::RULE
            };
            check_table(setting, shape, report);
        }
        (Kind::Quotas | Kind::RuleOrQuotas, ConfigValue::List(items)) => {
            if items.is_empty() {
                report.push(wrong_kind(setting, Kind::Quotas, "an empty list"));
            }
            for item in setting.items() {
                check_value(&item, Kind::Quota, report);
            }
        }
        (Kind::Texts(what) | Kind::TextOrTexts(what), ConfigValue::List(_)) => {
            for item in setting.items() {
                check_value(&item, Kind::Text(what), report);
            }
        }
        (Kind::Choices(choices), ConfigValue::List(_)) => {
            for item in setting.items() {
                check_value(&item, Kind::Choice(choices), report);
            }
        }
        (Kind::Outcomes, ConfigValue::List(_)) => {
            for item in setting.items() {
                if !matches!(
                    item.node.value,
                    ConfigValue::Text(_) | ConfigValue::Whole(_)
                ) {
                    let kind =
                        Kind::Text("a status code such as `429`, or a class such as `\"5xx\"`");
                    report.push(wrong_kind(&item, kind, &item.node.value.shown()));
                }
            }
        }
        (Kind::Choice(choices), ConfigValue::Text(text)) if !choices.contains(&text.as_str()) => {
            let problem = wrong_kind(setting, kind, &setting.node.value.shown());
            report.push(problem.with_help(did_you_mean(text, choices.iter().copied())));
        }
        (
            Kind::Text(_)
            | Kind::Choice(_)
            | Kind::TextOrTexts(_)
            | Kind::Instant
            | Kind::Outcomes
            | Kind::Quota
            | Kind::Quotas
            | Kind::RuleOrQuotas,
            ConfigValue::Text(_),
        )
        | (Kind::Instant, ConfigValue::Instant(_))
        | (Kind::Whole(_), ConfigValue::Whole(0..))
        | (Kind::Number(_), ConfigValue::Whole(_) | ConfigValue::Number(_))
        | (Kind::Outcomes, ConfigValue::Whole(_))
        | (Kind::Flag, ConfigValue::Flag(_)) => {}
        (_, value) => {
            let problem = wrong_kind(setting, kind, &value.shown());
            report.push(problem.with_help(help(kind, value)));
        }
    }
}

fn wrong_kind(setting: &Setting<'_>, kind: Kind, found: &str) -> ConfigProblem {
    ConfigProblem::new(Told {
        path: setting.path.clone(),
        message: format!("found {found}"),
        found: Some(found.to_owned()),
        expected: Some(kind.expected()),
        span: Some(setting.node.span.clone()),
        ..Told::default()
    })
}

/// What may have been meant by a value of the wrong kind.
fn help(kind: Kind, value: &ConfigValue) -> Option<String> {
    match (kind, value) {
        (Kind::Quota | Kind::Quotas | Kind::RuleOrQuotas, ConfigValue::Whole(0)) => {
            Some("write \"blocked\" to refuse everything, or \"unlimited\" to allow it".to_owned())
        }
        (Kind::Quota | Kind::Quotas | Kind::RuleOrQuotas, ConfigValue::Whole(number)) => {
            Some(format!(
                "a number needs a window: \"{number}/hour\", or {{ limit = {number}, window = \"1h\" }}"
            ))
        }
        (Kind::Texts(_) | Kind::Choices(_), ConfigValue::Text(text)) => {
            Some(format!("put it in brackets: [{text:?}]"))
        }
        (Kind::Flag, ConfigValue::Text(text)) if text == "true" || text == "false" => {
            Some(format!("write it without quotes: {text}"))
        }
        (Kind::Whole(_) | Kind::Number(_), ConfigValue::Text(text))
            if text.parse::<f64>().is_ok() =>
        {
            Some(format!("write it without quotes: {text}"))
        }
        (Kind::Tables(_), ConfigValue::Table(_)) => {
            Some("write two pairs of brackets around its name, once for each".to_owned())
        }
        _ => None,
    }
}

fn check_table(setting: &Setting<'_>, shape: &'static shape::Table, report: &mut ProblemReport) {
    // Keys that are there, or were meant by one that is.
    let mut said: Vec<&str> = Vec::new();
    for (key, value) in setting.entries() {
        said.push(&key.name);
        if let Some(kind) = shape.kind_of(&key.name) {
            check_value(&value, kind, report);
        } else {
            let meant = meant(key, shape, report);
            said.extend(meant);
            report.add(|| unknown_key(setting, key, shape, meant));
        }
    }
    for field in shape.fields.iter().filter(|field| field.required) {
        if !said.contains(&field.key) {
            report.push(ConfigProblem::new(Told {
                path: setting.path.key(field.key),
                message: format!("missing key `{}`", field.key),
                expected: Some(field.kind.expected()),
                help: Some(field.doc.to_owned()),
                span: Some(setting.node.span.clone()),
                ..Told::default()
            }));
        }
    }
}

/// The key that was most likely meant.
fn meant(
    key: &ConfigKey,
    shape: &'static shape::Table,
    report: &ProblemReport,
) -> Option<&'static str> {
    if report.is_full() {
        return None;
    }
    let called = shape.fields.iter().find(|field| {
        let mut aliases = field.aliases.iter();
        aliases.any(|alias| alias.eq_ignore_ascii_case(&key.name))
    });
    let names = shape.fields.iter().map(|field| field.key);
    called
        .map(|field| field.key)
        .or_else(|| nearest(&key.name, names))
}

fn unknown_key(
    setting: &Setting<'_>,
    key: &ConfigKey,
    shape: &'static shape::Table,
    meant: Option<&str>,
) -> ConfigProblem {
    let names: Vec<&str> = shape.fields.iter().map(|field| field.key).collect();
    let help = match meant {
        _ if is_secret(&key.name) && shape.field("secret_env").is_some() => Some(
            "secrets do not belong into this file: name a variable with `secret_env`, or a file \
             with `secret_file`"
                .to_owned(),
        ),
        Some(meant) => Some(format!("did you mean `{meant}`?")),
        None => elsewhere(&key.name),
    };
    ConfigProblem::new(Told {
        path: setting.path.key(&key.name),
        message: format!("unknown key `{}`", super::tree::shortened(&key.name)),
        found: Some(super::tree::shortened(&key.name)),
        expected: Some(one_of(&names)),
        help,
        span: Some(key.span.clone()),
        covers: meant.map(|meant| setting.path.key(meant)),
        ..Told::default()
    })
}

fn is_secret(key: &str) -> bool {
    super::redact::is_secret(key)
}

/// Whether a key that is not known here belongs into another table.
fn elsewhere(key: &str) -> Option<String> {
    let tables = shape::FILE
        .fields
        .iter()
        .filter_map(|field| match field.kind {
            Kind::Table(table) => Some((field.key, table)),
            _ => None,
        });
    let mut owners = tables.filter(|(_, table)| table.field(key).is_some());
    let (owner, _) = owners.next()?;
    Some(format!("`{key}` belongs into `[{owner}]`"))
}
