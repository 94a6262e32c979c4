//! Parses the text of an environment variable as the value of a setting.

use std::sync::Arc;

use crate::config::problem::ConfigProblem;
use crate::config::syntax;
use crate::config::table::ValueKind;
use crate::config::tree::{ConfigNode, ConfigValue, SourceSpan, Variable};

/// Parses the value of a variable for a setting of this kind. A value of another kind is returned
/// as text, and the check reports it like a value of the file.
pub(super) fn read(
    variable: &Arc<Variable>,
    kind: ValueKind,
) -> Result<ConfigNode, Box<ConfigProblem>> {
    let span = SourceSpan::in_variable(variable);
    let text = variable.value.trim();
    if text.is_empty() {
        let help = "leave it out to keep the value of the file; `[]` is an empty list";
        let problem = ConfigProblem::new("the variable is empty")
            .with_expected(kind.expected())
            .with_help(Some(help.to_owned()))
            .with_span(span);
        return Err(Box::new(problem));
    }
    let takes_lists = kind.item().is_some() || matches!(kind, ValueKind::Quota);
    if takes_lists && text.starts_with(['[', '{']) {
        let node = syntax::inline(text).map_err(|message| {
            let problem = ConfigProblem::new(message).with_expected(kind.expected());
            Box::new(problem.with_span(span.clone()))
        })?;
        return Ok(moved(node, &span));
    }
    let value = match kind {
        ValueKind::Whole(_) => text.parse().map(ConfigValue::Whole).ok(),
        ValueKind::Number(_) => text.parse().map(ConfigValue::Number).ok(),
        ValueKind::Flag => text.parse().map(ConfigValue::Flag).ok(),
        ValueKind::Texts(_) | ValueKind::Choices(_) => Some(list(text, &span)),
        ValueKind::ChoiceOrTexts(choices, _) if !choices.contains(&text) => Some(list(text, &span)),
        ValueKind::Outcomes if text.contains(',') => Some(list(text, &span)),
        _ => None,
    };
    let value = value.unwrap_or_else(|| ConfigValue::Text(text.to_owned()));
    Ok(ConfigNode { span, value })
}

/// Splits a list such as `a, b, c`.
fn list(text: &str, span: &SourceSpan) -> ConfigValue {
    let items = text.split(',').map(|item| ConfigNode {
        span: span.clone(),
        value: ConfigValue::Text(item.trim().to_owned()),
    });
    ConfigValue::List(items.collect())
}

/// Returns the value with the span of the variable on all its parts.
fn moved(node: ConfigNode, span: &SourceSpan) -> ConfigNode {
    let value = match node.value {
        ConfigValue::List(items) => {
            ConfigValue::List(items.into_iter().map(|item| moved(item, span)).collect())
        }
        ConfigValue::Table(mut table) => {
            for (key, _) in &mut table.entries {
                key.span = span.clone();
            }
            let entries = std::mem::take(&mut table.entries).into_iter();
            table.entries = entries
                .map(|(key, node)| (key, moved(node, span)))
                .collect();
            ConfigValue::Table(table)
        }
        other => other,
    };
    ConfigNode {
        span: span.clone(),
        value,
    }
}
