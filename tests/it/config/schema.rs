//! The published JSON Schema is up to date, and agrees with the check of policy files.

use std::fs;

use boon::{Compiler, SchemaIndex, Schemas};
use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate::config::{ConfigError, Source};

use crate::support::root;

/// Run with `BLESS=1` to update the file.
#[test]
fn published_schema_is_up_to_date() {
    let path = root().join("schema/tollgate.schema.json");
    let schema = tollgate::config::schema();
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &schema).unwrap();
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(schema, published, "run the test with BLESS=1");
}

/// The schema in an independent validator.
struct SchemaValidator {
    schemas: Schemas,
    schema: SchemaIndex,
}

impl SchemaValidator {
    fn new() -> Self {
        let schema: Value = serde_json::from_str(&tollgate::config::schema()).unwrap();
        let mut compiler = Compiler::new();
        compiler.add_resource("tollgate.json", schema).unwrap();
        let mut schemas = Schemas::new();
        let schema = compiler.compile("tollgate.json", &mut schemas).unwrap();
        Self { schemas, schema }
    }

    fn accepts(&self, value: &Value) -> Result<(), String> {
        let result = self.schemas.validate(value, self.schema);
        result.map_err(|error| format!("{error:#}"))
    }
}

/// Converts TOML into JSON, with dates as texts.
fn as_json(toml: &str) -> Option<Value> {
    let mut value: Value = toml::from_str(toml).ok()?;
    dates_as_texts(&mut value);
    Some(value)
}

fn dates_as_texts(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(date) = members.get("$__toml_private_datetime") {
                *value = date.clone();
            } else {
                members.values_mut().for_each(dates_as_texts);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(dates_as_texts),
        _ => {}
    }
}

/// Returns whether a problem can be found by the schema: an unknown key, a missing key, or a value
/// of the wrong kind.
fn has_wrong_shape(error: &ConfigError) -> bool {
    error.problems().any(|problem| {
        let of_shape = ["unknown key `", "missing key `", "found "];
        of_shape
            .iter()
            .any(|start| problem.message.starts_with(start))
    })
}

#[test]
fn schema_accepts_valid_files() {
    let validator = SchemaValidator::new();
    let gateway = include_str!("../../../examples/gateway/gateway.toml");
    let json: Value = serde_json::from_str(include_str!("spec.json")).unwrap();
    let tomls = [include_str!("spec.toml"), gateway];
    for value in tomls.iter().filter_map(|text| as_json(text)).chain([json]) {
        assert_eq!(validator.accepts(&value), Ok(()));
    }
}

/// Editors read the first line to find the schema.
#[test]
fn gateway_example_names_the_schema() {
    let directory = root().join("examples/gateway");
    let text = fs::read_to_string(directory.join("gateway.toml")).unwrap();
    let first = text.lines().next().unwrap();
    let schema = first.strip_prefix("#:schema ").unwrap();
    assert!(directory.join(schema).exists(), "{first}");
}

/// Checks every file in `wrong/` that can be parsed and has a problem of shape.
#[test]
fn schema_rejects_files_of_the_wrong_shape() {
    let validator = SchemaValidator::new();
    let directory = root().join("tests/it/config/wrong");
    let mut rejected = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let is_json = path
            .extension()
            .is_some_and(|extension| extension == "json");
        let (source, value) = if is_json {
            (Source::json(&*text), serde_json::from_str(&text).ok())
        } else {
            (Source::toml(&*text), as_json(&text))
        };
        let read = source.variables::<&str, &str>([]).without_keys().read();
        if let (Some(value), Err(error)) = (value, read)
            && has_wrong_shape(&error)
        {
            assert!(validator.accepts(&value).is_err(), "{}", path.display());
            rejected += 1;
        }
    }
    assert!(rejected >= 10, "only {rejected}");
}

/// Generates values that replace a part of a file.
fn replacements() -> impl Strategy<Value = Value> {
    proptest::sample::select(vec![
        json!(null),
        json!(true),
        json!(0),
        json!(7),
        json!(-7),
        json!(0.5),
        json!(""),
        json!("10/s"),
        json!("team"),
        json!("failure"),
        json!([]),
        json!([429, "5xx"]),
        json!(["10/s", "20/minute"]),
        json!([[]]),
        json!({}),
        json!({ "limit": 5, "window": "1h" }),
        json!({ "limit": "10/s", "route": "/x" }),
        json!({ "limt": "10/s" }),
        json!({ "team": "10/s" }),
    ])
}

/// Adds the JSON pointers of all parts of a value.
fn add_pointers(value: &Value, here: &str, found: &mut Vec<String>) {
    found.push(here.to_owned());
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                add_pointers(value, &format!("{here}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                add_pointers(value, &format!("{here}/{index}"), found);
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Replaces random parts of a valid file.
    #[test]
    fn schema_and_check_agree_on_the_shape_of_a_file(
        changes in prop::collection::vec((any::<prop::sample::Index>(), replacements()), 1..3),
    ) {
        thread_local!(static VALIDATOR: SchemaValidator = SchemaValidator::new());
        let mut value: Value = serde_json::from_str(include_str!("spec.json")).unwrap();
        for (at, replacement) in changes {
            let mut found = Vec::new();
            add_pointers(&value, "", &mut found);
            // The first pointer is the whole file, which is not replaced.
            let pointers = &found[1.min(found.len() - 1)..];
            let pointer = pointers[at.index(pointers.len())].clone();
            *value.pointer_mut(&pointer).unwrap() = replacement;
        }
        let source = Source::json(value.to_string()).without_keys();
        let accepted = VALIDATOR.with(|validator| validator.accepts(&value));
        match source.variables::<&str, &str>([]).read() {
            Ok(_) => prop_assert_eq!(accepted, Ok(()), "{:#}", value),
            Err(error) if has_wrong_shape(&error) => {
                prop_assert!(accepted.is_err(), "{}\n{:#}", error, value);
            }
            Err(_) => {}
        }
    }
}
