//! JSON parser. Raw values are slices of the text, which gives their positions.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::super::problem::ConfigProblem;
use super::super::tree::{ConfigKey, ConfigNode, ConfigTable, ConfigValue, SourceSpan};
use super::{MAX_DEPTH, too_deep};

pub(super) fn parse(text: &str) -> Result<ConfigNode, Vec<ConfigProblem>> {
    let whole: &RawValue =
        serde_json::from_str(text).map_err(|error| vec![syntax(text, &error)])?;
    let mut problems = Vec::new();
    let root = convert(text, whole, 0, &mut problems);
    match root.value {
        _ if !problems.is_empty() => Err(problems),
        ConfigValue::Table(_) => Ok(root),
        other => {
            let problem = ConfigProblem::new(format!("the file is {}", other.kind()))
                .with_expected("an object: `{ … }`")
                .with_span(root.span);
            Err(vec![problem])
        }
    }
}

/// Returns a syntax error with its position.
fn syntax(text: &str, error: &serde_json::Error) -> ConfigProblem {
    let line_at = match error.line().checked_sub(2) {
        None => Some(0),
        Some(skipped) => text.match_indices('\n').nth(skipped).map(|(at, _)| at + 1),
    };
    let at = line_at.map_or(text.len(), |at| at + error.column().saturating_sub(1));
    let message = message_of(error);
    let is_empty = text.trim().is_empty();
    let before = text.get(..at).unwrap_or_default().trim_end();
    let after = text.get(at..).unwrap_or_default();
    let help = if before.ends_with(',') && after.starts_with(['}', ']']) {
        Some("remove the comma before it")
    } else if !is_empty && ::toml::de::DeTable::parse(text).is_ok() {
        Some("this is TOML: rename the file to `.toml`")
    } else {
        None
    };
    let problem = ConfigProblem::new(message)
        .with_help(help.map(str::to_owned))
        .with_span(SourceSpan::in_file(at..at));
    if is_empty {
        problem.with_expected("an object: `{ … }`")
    } else {
        problem
    }
}

/// Returns the message without its position.
fn message_of(error: &serde_json::Error) -> String {
    let mut message = error.to_string();
    if let Some(end) = message.rfind(" at line ") {
        message.truncate(end);
    }
    message
}

/// Returns the range of a part of the text.
fn span(text: &str, part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + part.get().len()
}

fn convert(
    text: &str,
    part: &RawValue,
    depth: usize,
    problems: &mut Vec<ConfigProblem>,
) -> ConfigNode {
    let span = SourceSpan::in_file(span(text, part));
    let node = |value| ConfigNode {
        span: span.clone(),
        value,
    };
    if depth > MAX_DEPTH {
        problems.push(too_deep(span.clone()));
        return node(ConfigValue::Null);
    }
    let value = match part.get().as_bytes().first() {
        Some(b'{') => serde_json::from_str(part.get())
            .map(|Members(members)| ConfigValue::Table(table(text, &members, depth, problems))),
        Some(b'[') => serde_json::from_str(part.get()).map(|items: Vec<&RawValue>| {
            let items = items.into_iter();
            let items = items.map(|item| convert(text, item, depth + 1, problems));
            ConfigValue::List(items.collect())
        }),
        Some(b'"') => serde_json::from_str(part.get()).map(ConfigValue::Text),
        Some(b't') => Ok(ConfigValue::Flag(true)),
        Some(b'f') => Ok(ConfigValue::Flag(false)),
        Some(b'n') => Ok(ConfigValue::Null),
        _ => Ok(number(part.get())),
    };
    match value {
        Ok(value) => node(value),
        // The first pass does not check escapes in texts.
        Err(error) => {
            let problem = ConfigProblem::new(message_of(&error));
            problems.push(problem.with_span(span.clone()));
            node(ConfigValue::Null)
        }
    }
}

fn number(text: &str) -> ConfigValue {
    match text.parse() {
        Ok(whole) => ConfigValue::Whole(whole),
        Err(_) => ConfigValue::Number(text.parse().unwrap_or(f64::NAN)),
    }
}

fn table(
    text: &str,
    members: &[(&RawValue, &RawValue)],
    depth: usize,
    problems: &mut Vec<ConfigProblem>,
) -> ConfigTable {
    let mut entries: Vec<(ConfigKey, ConfigNode)> = Vec::with_capacity(members.len());
    let mut known = std::collections::HashMap::new();
    for (key, value) in members {
        let span = SourceSpan::in_file(span(text, key));
        let name: String = match serde_json::from_str(key.get()) {
            Ok(name) => name,
            Err(error) => {
                problems.push(syntax(key.get(), &error).with_span(span));
                continue;
            }
        };
        if let Some(first) = known.insert(name.clone(), span.clone()) {
            let problem = ConfigProblem::new(format!("duplicate key `{name}`"))
                .with_expected("each key once")
                .with_span(span)
                .with_other(first, "first one");
            problems.push(problem);
            continue;
        }
        let node = convert(text, value, depth + 1, problems);
        entries.push((ConfigKey { name, span }, node));
    }
    ConfigTable { entries }
}

/// Members of an object, including duplicates.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(All)
    }
}
