//! A tree against the shape of the file: unknown keys, missing keys, values of another kind.

use super::nearest::{did_you_mean, nearest};
use super::problem::{ConfigProblem, Findings, Told};
use super::shape::{self, Kind, one_of};
use super::tree::{Key, Spot, Value};

/// Notes everything in which the file differs from its shape.
pub(super) fn check(root: &Spot<'_>, findings: &mut Findings) {
    check_table(root, &shape::FILE, findings);
}

/// What a table is to a rule that may also be just its quotas: a quota has a window.
pub(super) fn is_quota_table(spot: &Spot<'_>) -> bool {
    spot.get("window").is_some()
}

fn check_value(spot: &Spot<'_>, kind: Kind, findings: &mut Findings) {
    match (kind, &spot.node.value) {
        (Kind::Table(shape), Value::Table(_)) => check_table(spot, shape, findings),
        (Kind::Tables(shape), Value::List(_)) => {
            for item in spot.items() {
                check_value(&item, Kind::Table(shape), findings);
            }
        }
        (Kind::Quota | Kind::Quotas, Value::Table(_)) => {
            check_table(spot, &shape::QUOTA, findings);
        }
        (Kind::RuleOrQuotas, Value::Table(_)) => {
            let is_quota = is_quota_table(spot);
            let shape = if is_quota {
                &shape::QUOTA
            } else {
                &shape::RULE
            };
            check_table(spot, shape, findings);
        }
        (Kind::Quotas | Kind::RuleOrQuotas, Value::List(items)) => {
            if items.is_empty() {
                findings.push(wrong_kind(spot, Kind::Quotas, "an empty list"));
            }
            for item in spot.items() {
                check_value(&item, Kind::Quota, findings);
            }
        }
        (Kind::Texts(what) | Kind::TextOrTexts(what), Value::List(_)) => {
            for item in spot.items() {
                check_value(&item, Kind::Text(what), findings);
            }
        }
        (Kind::Choices(choices), Value::List(_)) => {
            for item in spot.items() {
                check_value(&item, Kind::Choice(choices), findings);
            }
        }
        (Kind::Outcomes, Value::List(_)) => {
            for item in spot.items() {
                if !matches!(item.node.value, Value::Text(_) | Value::Whole(_)) {
                    let kind =
                        Kind::Text("a status code such as `429`, or a class such as `\"5xx\"`");
                    findings.push(wrong_kind(&item, kind, &item.node.value.shown()));
                }
            }
        }
        (Kind::Choice(choices), Value::Text(text)) if !choices.contains(&text.as_str()) => {
            let problem = wrong_kind(spot, kind, &spot.node.value.shown());
            findings.push(problem.with_help(did_you_mean(text, choices.iter().copied())));
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
            Value::Text(_),
        )
        | (Kind::Instant, Value::Instant(_))
        | (Kind::Whole(_), Value::Whole(0..))
        | (Kind::Number(_), Value::Whole(_) | Value::Number(_))
        | (Kind::Outcomes, Value::Whole(_))
        | (Kind::Flag, Value::Flag(_)) => {}
        (_, value) => {
            let problem = wrong_kind(spot, kind, &value.shown());
            findings.push(problem.with_help(help(kind, value)));
        }
    }
}

fn wrong_kind(spot: &Spot<'_>, kind: Kind, found: &str) -> ConfigProblem {
    ConfigProblem::new(Told {
        path: spot.path.clone(),
        message: format!("found {found}"),
        found: Some(found.to_owned()),
        expected: Some(kind.expected()),
        place: Some(spot.node.place.clone()),
        ..Told::default()
    })
}

/// What may have been meant by a value of the wrong kind.
fn help(kind: Kind, value: &Value) -> Option<String> {
    match (kind, value) {
        (Kind::Quota | Kind::Quotas | Kind::RuleOrQuotas, Value::Whole(0)) => {
            Some("write \"blocked\" to refuse everything, or \"unlimited\" to allow it".to_owned())
        }
        (Kind::Quota | Kind::Quotas | Kind::RuleOrQuotas, Value::Whole(number)) => Some(format!(
            "a number needs a window: \"{number}/hour\", or {{ limit = {number}, window = \"1h\" }}"
        )),
        (Kind::Texts(_) | Kind::Choices(_), Value::Text(text)) => {
            Some(format!("put it in brackets: [{text:?}]"))
        }
        (Kind::Flag, Value::Text(text)) if text == "true" || text == "false" => {
            Some(format!("write it without quotes: {text}"))
        }
        (Kind::Whole(_) | Kind::Number(_), Value::Text(text)) if text.parse::<f64>().is_ok() => {
            Some(format!("write it without quotes: {text}"))
        }
        (Kind::Tables(_), Value::Table(_)) => {
            Some("write two pairs of brackets around its name, once for each".to_owned())
        }
        _ => None,
    }
}

fn check_table(spot: &Spot<'_>, shape: &'static shape::Table, findings: &mut Findings) {
    // Keys that are there, or were meant by one that is.
    let mut said: Vec<&str> = Vec::new();
    for (key, value) in spot.entries() {
        said.push(&key.name);
        if let Some(kind) = shape.kind_of(&key.name) {
            check_value(&value, kind, findings);
        } else {
            let meant = meant(key, shape, findings);
            said.extend(meant);
            findings.add(|| unknown_key(spot, key, shape, meant));
        }
    }
    for field in shape.fields.iter().filter(|field| field.required) {
        if !said.contains(&field.key) {
            findings.push(ConfigProblem::new(Told {
                path: spot.path.key(field.key),
                message: format!("missing key `{}`", field.key),
                expected: Some(field.kind.expected()),
                help: Some(field.doc.to_owned()),
                place: Some(spot.node.place.clone()),
                ..Told::default()
            }));
        }
    }
}

/// The key that was most likely meant.
fn meant(key: &Key, shape: &'static shape::Table, findings: &Findings) -> Option<&'static str> {
    if findings.is_full() {
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
    spot: &Spot<'_>,
    key: &Key,
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
        path: spot.path.key(&key.name),
        message: format!("unknown key `{}`", super::tree::shortened(&key.name)),
        found: Some(super::tree::shortened(&key.name)),
        expected: Some(one_of(&names)),
        help,
        place: Some(key.place.clone()),
        covers: meant.map(|meant| spot.path.key(meant)),
        ..Told::default()
    })
}

fn is_secret(key: &str) -> bool {
    super::conceal::is_secret(key)
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
