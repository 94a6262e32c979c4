//! What a variable's text is, where it is put.

use std::sync::Arc;

use crate::config::problem::Told;
use crate::config::shape::Kind;
use crate::config::syntax;
use crate::config::tree::{Node, Place, Value, Variable};

/// The value, as far as the text can be one. What it is not is told by the check, as if the
/// file had said it.
pub(super) fn read(variable: &Arc<Variable>, kind: Kind) -> Result<Node, Box<Told>> {
    let place = Place::in_variable(variable);
    let text = variable.value.trim();
    if text.is_empty() {
        return Err(Box::new(Told {
            message: "the variable is empty".to_owned(),
            expected: Some(kind.expected()),
            help: Some("leave it out to keep what the file says; `[]` is an empty list".to_owned()),
            place: Some(place),
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
                place: Some(place.clone()),
                ..Told::default()
            })
        })?;
        return Ok(moved(node, &place));
    }
    let value = match kind {
        Kind::Whole(_) => text.parse().map(Value::Whole).ok(),
        Kind::Number(_) => text.parse().map(Value::Number).ok(),
        Kind::Flag => text.parse().map(Value::Flag).ok(),
        Kind::Texts(_) | Kind::Choices(_) => Some(list(text, &place)),
        Kind::Outcomes if text.contains(',') => Some(list(text, &place)),
        _ => None,
    };
    let value = value.unwrap_or_else(|| Value::Text(text.to_owned()));
    Ok(Node { place, value })
}

/// `a, b, c`
fn list(text: &str, place: &Place) -> Value {
    let items = text.split(',').map(|item| Node {
        place: place.clone(),
        value: Value::Text(item.trim().to_owned()),
    });
    Value::List(items.collect())
}

/// The value, with everything in it at the place of the variable.
fn moved(node: Node, place: &Place) -> Node {
    let value = match node.value {
        Value::List(items) => {
            Value::List(items.into_iter().map(|item| moved(item, place)).collect())
        }
        Value::Table(mut table) => {
            for (key, _) in &mut table.entries {
                key.place = place.clone();
            }
            let entries = std::mem::take(&mut table.entries).into_iter();
            table.entries = entries
                .map(|(key, node)| (key, moved(node, place)))
                .collect();
            Value::Table(table)
        }
        other => other,
    };
    Node {
        place: place.clone(),
        value,
    }
}
