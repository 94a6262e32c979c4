//! The schema that is published is that of the file, and says of files what the program says.

use std::fs;

use boon::{Compiler, SchemaIndex, Schemas};
use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate::config::{ConfigError, Source};

use crate::support::root;

/// Run with `BLESS=1` to write it.
#[test]
fn the_published_schema_is_up_to_date() {
    let path = root().join("schema/tollgate.schema.json");
    let schema = tollgate::config::schema();
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &schema).unwrap();
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(schema, published, "run the test with BLESS=1");
}

/// The schema, as a validator that is not ours understands it.
struct Judge {
    schemas: Schemas,
    schema: SchemaIndex,
}

impl Judge {
    fn new() -> Self {
        let schema: Value = serde_json::from_str(&tollgate::config::schema()).unwrap();
        let mut compiler = Compiler::new();
        compiler.add_resource("tollgate.json", schema).unwrap();
        let mut schemas = Schemas::new();
        let schema = compiler.compile("tollgate.json", &mut schemas).unwrap();
        Self { schemas, schema }
    }

    fn accepts(&self, value: &Value) -> Result<(), String> {
        let verdict = self.schemas.validate(value, self.schema);
        verdict.map_err(|error| format!("{error:#}"))
    }
}

/// The same values in JSON, dates as texts.
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

/// Whether something is told of a file that its shape alone shows: a key too many or too few, or
/// a value of another kind.
fn is_of_another_shape(error: &ConfigError) -> bool {
    error.problems().any(|problem| {
        let of_shape = ["unknown key `", "missing key `", "found "];
        of_shape
            .iter()
            .any(|start| problem.message().starts_with(start))
    })
}

#[test]
fn good_files_are_accepted() {
    let judge = Judge::new();
    let gateway = include_str!("../../../examples/gateway/gateway.toml");
    let json: Value = serde_json::from_str(include_str!("spec.json")).unwrap();
    let tomls = [include_str!("spec.toml"), gateway];
    for value in tomls.iter().filter_map(|text| as_json(text)).chain([json]) {
        assert_eq!(judge.accepts(&value), Ok(()));
    }
}

/// The line is for editors, and leads to the schema.
#[test]
fn the_file_of_the_gateway_names_the_schema() {
    let directory = root().join("examples/gateway");
    let text = fs::read_to_string(directory.join("gateway.toml")).unwrap();
    let first = text.lines().next().unwrap();
    let schema = first.strip_prefix("#:schema ").unwrap();
    assert!(directory.join(schema).exists(), "{first}");
}

/// Every wrong file that can be read, and is wrong in its shape.
#[test]
fn files_of_another_shape_are_refused() {
    let judge = Judge::new();
    let directory = root().join("tests/it/config/wrong");
    let mut refused = 0;
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
            && is_of_another_shape(&error)
        {
            assert!(judge.accepts(&value).is_err(), "{}", path.display());
            refused += 1;
        }
    }
    assert!(refused >= 10, "only {refused}");
}

/// What to put in the place of something.
fn scraps() -> impl Strategy<Value = Value> {
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

/// All places in a value.
fn places(value: &Value, here: &str, found: &mut Vec<String>) {
    found.push(here.to_owned());
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{here}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{here}/{index}"), found);
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever is put anywhere in a file: schema and program say the same of its shape.
    #[test]
    fn schema_and_program_agree(
        changes in prop::collection::vec((any::<prop::sample::Index>(), scraps()), 1..3),
    ) {
        thread_local!(static JUDGE: Judge = Judge::new());
        let mut value: Value = serde_json::from_str(include_str!("spec.json")).unwrap();
        for (at, scrap) in changes {
            let mut found = Vec::new();
            places(&value, "", &mut found);
            // Not the whole of it.
            let place = &found[1.min(found.len() - 1)..];
            let place = place[at.index(place.len())].clone();
            *value.pointer_mut(&place).unwrap() = scrap;
        }
        let source = Source::json(value.to_string()).without_keys();
        let accepted = JUDGE.with(|judge| judge.accepts(&value));
        match source.variables::<&str, &str>([]).read() {
            Ok(_) => prop_assert_eq!(accepted, Ok(()), "{:#}", value),
            Err(error) if is_of_another_shape(&error) => {
                prop_assert!(accepted.is_err(), "{}\n{:#}", error, value);
            }
            Err(_) => {}
        }
    }
}
