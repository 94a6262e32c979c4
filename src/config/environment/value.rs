//! What a variable's text is, where it is put.

use std::sync::Arc;

use crate::config::problem::Told;
use crate::config::shape::Kind;
use crate::config::syntax;
use crate::config::tree::{ConfigNode, ConfigValue, SourceSpan, Variable};

/// The value, as far as the text can be one. What it is not is told by the check, as if the
/// file had said it.
pub(super) fn read(variable: &Arc<Variable>, kind: Kind) -> Result<ConfigNode, Box<Told>> {
    let span = SourceSpan::in_variable(variable);
    let text = variable.value.trim();
    if text.is_empty() {
        return Err(Box::new(Told {
            message: "the variable is empty".to_owned(),
            expected: Some(kind.expected()),
            help: Some("leave it out to keep what the file says; `[]` is an empty list".to_owned()),
            span: Some(span),
            ..Told::default()
        }));
    }
    let takes_lists = matches!(
        kind,
        Kind::Texts(_)
            | Kind::Choices(_)
            | Kind::TextOrTexts(_)
            | Kind::Outcomes
            | Kind::Quota
            | Kind::Quotas
            | Kind::RuleOrQuotas
    );
    if takes_lists && text.starts_with(['[', '{']) {
        let node = syntax::inline(text).map_err(|message| {
            Box::new(Told {
                message,
                expected: Some(kind.expected()),
                span: Some(span.clone()),
                ..Told::default()
            })
        })?;
        return Ok(moved(node, &span));
    }
    let value = match kind {
        Kind::Whole(_) => text.parse().map(ConfigValue::Whole).ok(),
        Kind::Number(_) => text.parse().map(ConfigValue::Number).ok(),
        Kind::Flag => text.parse().map(ConfigValue::Flag).ok(),
        Kind::Texts(_) | Kind::Choices(_) => Some(list(text, &span)),
        Kind::Outcomes if text.contains(',') => Some(list(text, &span)),
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
