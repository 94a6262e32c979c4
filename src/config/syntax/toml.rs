//! TOML parser.

use std::ops::Range;

use ::toml::de::{DeInteger, DeTable, DeValue, Error};

use super::super::problem::ConfigProblem;
use super::super::tree::{ConfigKey, ConfigNode, ConfigTable, ConfigValue, SourceSpan, shortened};
use super::{MAX_DEPTH, too_deep};

/// Largest text of which all syntax errors are reported. Of a larger one only the first is: the
/// number of errors can exceed the number of bytes.
const MAX_RECOVERED: usize = 256 << 10;

pub(super) fn parse(text: &str) -> Result<ConfigNode, Vec<ConfigProblem>> {
    match DeTable::parse(text) {
        Ok(table) => {
            let table = convert_table(text, table.into_inner(), 0).map_err(|deep| vec![*deep])?;
            Ok(ConfigNode {
                span: SourceSpan::in_file(0..0),
                value: ConfigValue::Table(table),
            })
        }
        Err(_) if text.len() <= MAX_RECOVERED => {
            let (_, errors) = DeTable::parse_recoverable(text);
            Err(syntax_errors(text, &errors))
        }
        Err(first) => Err(syntax_errors(text, &[first])),
    }
}

pub(super) fn inline(text: &str) -> Result<ConfigNode, String> {
    let value = DeValue::parse(text).map_err(|error| error.message().to_owned())?;
    let span = value.span();
    convert(text, span, value.into_inner(), 0).map_err(|problem| problem.message)
}

/// Returns the errors, at most one per line: others on the line are mostly consequences.
fn syntax_errors(text: &str, errors: &[Error]) -> Vec<ConfigProblem> {
    let mut errors: Vec<(Range<usize>, &str)> = errors
        .iter()
        .map(|error| (error.span().unwrap_or(0..0), error.message()))
        .collect();
    errors.sort_by_key(|(span, _)| span.start);
    let mut problems = Vec::new();
    let mut reported_until = None;
    for (span, message) in errors {
        if reported_until.is_some_and(|end| span.start <= end) {
            continue;
        }
        let line_end = text.get(span.start..).and_then(|rest| rest.find('\n'));
        reported_until = Some(line_end.map_or(text.len(), |end| span.start + end));
        let (message, expected) = match message.split_once(", expected ") {
            Some((message, expected)) => (message, Some(expected.to_owned())),
            None => (message, None),
        };
        let key = text.get(span.clone()).unwrap_or_default();
        let message = match message {
            "duplicate key" => format!("duplicate key `{}`", shortened(key)),
            other => other.to_owned(),
        };
        let looks_like_json = problems.is_empty() && text.trim_start().starts_with(['{', '[']);
        let is_json =
            looks_like_json && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        let help = is_json.then(|| "this is JSON: rename the file to `.json`".to_owned());
        let problem = ConfigProblem::new(message)
            .with_help(help)
            .with_span(SourceSpan::in_file(span));
        problems.push(match expected.filter(|expected| expected != "nothing") {
            Some(expected) => problem.with_expected(expected),
            None => problem,
        });
    }
    problems
}

fn convert(
    text: &str,
    span: Range<usize>,
    value: DeValue<'_>,
    depth: usize,
) -> Result<ConfigNode, Box<ConfigProblem>> {
    if depth > MAX_DEPTH {
        return Err(Box::new(too_deep(SourceSpan::in_file(span))));
    }
    let value = match value {
        DeValue::String(text) => ConfigValue::Text(text.into_owned()),
        DeValue::Integer(integer) => whole(&integer),
        DeValue::Float(float) => ConfigValue::Number(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => ConfigValue::Flag(flag),
        DeValue::Datetime(_) => {
            let written = text.get(span.clone()).unwrap_or_default();
            ConfigValue::Time(written.to_owned())
        }
        DeValue::Array(items) => {
            let items = items.into_iter().map(|item| {
                let span = item.span();
                convert(text, span, item.into_inner(), depth + 1)
            });
            ConfigValue::List(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => ConfigValue::Table(convert_table(text, table, depth)?),
    };
    Ok(ConfigNode {
        span: SourceSpan::in_file(span),
        value,
    })
}

fn convert_table(
    text: &str,
    table: DeTable<'_>,
    depth: usize,
) -> Result<ConfigTable, Box<ConfigProblem>> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let span = value.span();
        let node = convert(text, span, value.into_inner(), depth + 1)?;
        let span = SourceSpan::in_file(key.span());
        let name = key.into_inner().into_owned();
        entries.push((ConfigKey { name, span }, node));
    }
    // The parser returns them by name.
    entries.sort_by_key(|(key, _)| key.span.range.start);
    Ok(ConfigTable { entries })
}

/// Returns a whole number, or a floating-point number if it is too large.
fn whole(integer: &DeInteger<'_>) -> ConfigValue {
    match i64::from_str_radix(integer.as_str(), integer.radix()) {
        Ok(number) => ConfigValue::Whole(number),
        Err(_) => ConfigValue::Number(integer.as_str().parse().unwrap_or(f64::INFINITY)),
    }
}
