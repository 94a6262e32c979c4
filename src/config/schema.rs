//! JSON Schema of policy files.

use serde_json::{Map, Value, json};

use super::table::{FILE, KeySpec, QUOTA, RULE, TableSpec, ValueKind};

/// Returns the JSON Schema (draft 2020-12) of a policy file. Editors use it to complete and check
/// JSON files, and with an extension also TOML files.
///
/// ```
/// let schema = tollgate::config::schema();
/// assert!(schema.contains("on_store_failure"));
/// ```
///
/// The schema covers keys and kinds of values. It does not cover errors that depend on several
/// settings, such as two routes that match the same requests.
#[must_use]
pub fn schema() -> String {
    let mut schema = table(&FILE);
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A policy of tollgate",
        "$defs": {
            "quota": quota(),
            "quotas": {
                "anyOf": [{ "$ref": "#/$defs/quota" }, list(&json!({ "$ref": "#/$defs/quota" }), 1)],
            },
            "outcomes": outcomes(),
        },
    });
    if let (Value::Object(schema), Value::Object(head)) = (&mut schema, head) {
        schema.extend(head);
    }
    format!("{schema:#}\n")
}

fn table(spec: &TableSpec) -> Value {
    let properties: Map<String, Value> = spec
        .keys()
        .map(|key| (key.key.to_owned(), property(key)))
        .collect();
    let required: Vec<&str> = spec
        .keys()
        .filter(|key| spec.is_required(key))
        .map(|key| key.key)
        .collect();
    let others = match &spec.chosen {
        Some(chosen) => described(kind(chosen.kind), chosen.doc),
        None => json!(false),
    };
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": others,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn property(key: &KeySpec) -> Value {
    let mut schema = described(kind(key.kind), key.doc);
    // Simple values are written alike in TOML and in JSON.
    let default = key.default.and_then(|text| serde_json::from_str(text).ok());
    if let Some(default) = default {
        let default: Value = default;
        schema["default"] = default;
    }
    schema
}

fn described(mut schema: Value, doc: &str) -> Value {
    schema["description"] = json!(doc);
    schema
}

fn kind(kind: ValueKind) -> Value {
    match kind {
        ValueKind::Text(_) => json!({ "type": "string" }),
        ValueKind::Choice(choices) => json!({ "enum": choices }),
        ValueKind::Whole(_) => json!({ "type": "integer", "minimum": 0 }),
        ValueKind::Number(_) => json!({ "type": "number" }),
        ValueKind::Flag => json!({ "type": "boolean" }),
        ValueKind::Time => json!({ "type": "string", "format": "date-time" }),
        ValueKind::Texts(_) => list(&json!({ "type": "string" }), 0),
        ValueKind::Choices(choices) => list(&json!({ "enum": choices }), 1),
        ValueKind::TextOrTexts(_) => {
            json!({ "anyOf": [{ "type": "string" }, list(&json!({ "type": "string" }), 0)] })
        }
        ValueKind::ChoiceOrTexts(choices, _) => {
            json!({ "anyOf": [{ "enum": choices }, list(&json!({ "type": "string" }), 0)] })
        }
        ValueKind::Outcomes => json!({ "$ref": "#/$defs/outcomes" }),
        ValueKind::Status => json!({
            "anyOf": [
                { "type": "integer", "minimum": 100, "maximum": 599 },
                { "type": "string", "pattern": "^[1-5]([0-9]{2}|xx)$" },
            ],
        }),
        ValueKind::Quota => json!({ "$ref": "#/$defs/quota" }),
        ValueKind::Quotas => json!({ "$ref": "#/$defs/quotas" }),
        ValueKind::RuleOrQuotas => json!({ "anyOf": [{ "$ref": "#/$defs/quotas" }, table(&RULE)] }),
        ValueKind::Table(spec) => table(spec),
        ValueKind::Tables(spec) => list(&table(spec), 0),
    }
}

fn list(items: &Value, least: usize) -> Value {
    let mut schema = json!({ "type": "array", "items": items });
    if least > 0 {
        schema["minItems"] = json!(least);
    }
    schema
}

fn quota() -> Value {
    let text = json!({
        "type": "string",
        "pattern": "^\\s*(unlimited|blocked|[0-9][0-9_]*\\s*(/|\\sper\\s).+)\\s*$",
        "examples": ["500/hour", "10/15m", "50 per 10 seconds", "unlimited", "blocked"],
    });
    json!({ "anyOf": [text, table(&QUOTA)] })
}

fn outcomes() -> Value {
    let status = kind(ValueKind::Status);
    let named = json!({ "enum": ["all", "success", "failure"] });
    json!({ "anyOf": [named, status, list(&status, 1)] })
}
