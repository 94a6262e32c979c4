//! What a variable's text is, where it is put.

use std::sync::Arc;

use crate::config::problem::ConfigProblem;
use crate::config::syntax;
use crate::config::table::ValueKind;
use crate::config::tree::{ConfigNode, ConfigValue, SourceSpan, Variable};

/// The value, as far as the text can be one. What it is not is told by the check, as if the
/// file had said it.
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
    let takes_lists = matches!(
        kind,
        ValueKind::Texts(_)
            | ValueKind::Choices(_)
            | ValueKind::TextOrTexts(_)
            | ValueKind::Outcomes
            | ValueKind::Quota
            | ValueKind::Quotas
            | ValueKind::RuleOrQuotas
    );
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
        ValueKind::Outcomes if text.contains(',') => Some(list(text, &span)),
        _ => None,
    };
    let value = value.unwrap_or_else(|| ConfigValue::Text(text.to_owned()));
    Ok(ConfigNode { span, value })
}

/// `a, b, c`
fn list(text: &str, span: &SourceSpan) -> ConfigValue {
    let items = text.split(',').map(|item| ConfigNode {
        span: span.clone(),
        value: ConfigValue::Text(item.trim().to_owned()),
    });
    ConfigValue::List(items.collect())
}

/// The value, with everything in it at the place of the variable.
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
