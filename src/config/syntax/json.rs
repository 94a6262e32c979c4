//! JSON to a tree. Its parts are kept as slices of the text, which is how their places are
//! known.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::super::problem::{ConfigProblem, Told};
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
        other => Err(vec![ConfigProblem::new(Told {
            message: format!("the file is {}", other.kind()),
            expected: Some("an object: `{ … }`".to_owned()),
            span: Some(root.span),
            ..Told::default()
        })]),
    }
}

/// What is wrong with the text, where.
fn syntax(text: &str, error: &serde_json::Error) -> ConfigProblem {
    let line_at = match error.line().checked_sub(2) {
        None => Some(0),
        Some(skipped) => text.match_indices('\n').nth(skipped).map(|(at, _)| at + 1),
    };
    let at = line_at.map_or(text.len(), |at| at + error.column().saturating_sub(1));
    let mut message = error.to_string();
    if let Some(end) = message.rfind(" at line ") {
        message.truncate(end);
    }
    let is_empty = text.trim().is_empty();
    let before = text.get(..at).unwrap_or_default().trim_end();
    let after = text.get(at..).unwrap_or_default();
    let help = if before.ends_with(',') && after.starts_with(['}', ']']) {
        Some("there is a comma too many before it")
    } else if !is_empty && ::toml::de::DeTable::parse(text).is_ok() {
        Some("this is TOML: let the name end in `.toml`")
    } else {
        None
    };
    ConfigProblem::new(Told {
        message,
        expected: is_empty.then(|| "an object: `{ … }`".to_owned()),
        help: help.map(str::to_owned),
        span: Some(SourceSpan::in_file(at..at)),
        ..Told::default()
    })
}

/// Where a part of the text is.
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
        problems.push(too_deep().at(span.clone()));
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
        // Only what a text escapes is not looked at before.
        Err(error) => {
            let mut problem = syntax(part.get(), &error);
            problem.help = None;
            problems.push(problem.at(span.clone()));
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
                problems.push(syntax(key.get(), &error).at(span));
                continue;
            }
        };
        if let Some(first) = known.insert(name.clone(), span.clone()) {
            problems.push(ConfigProblem::new(Told {
                message: format!("duplicate key `{name}`"),
                expected: Some("each key once".to_owned()),
                span: Some(span),
                also: vec![(first, "first said here".to_owned())],
                ..Told::default()
            }));
            continue;
        }
        let node = convert(text, value, depth + 1, problems);
        entries.push((ConfigKey { name, span }, node));
    }
    ConfigTable { entries }
}

/// The members of an object, duplicates and all.
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
