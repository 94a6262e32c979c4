//! The tables of JSON keys in the guide to the command line.
//!
//! The commands of the guide are run by `docs::commands` in the tests of the library.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{GOOD, TestDir, WRONG};

const GUIDE: &str = include_str!("../../../src/docs/command_line.md");

/// Returns the keys in the first table after the text `after`.
fn documented(after: &str) -> BTreeSet<String> {
    let (_, rest) = GUIDE.split_once(after).unwrap();
    let lines = rest.lines().skip_while(|line| !line.starts_with("| key"));
    let rows = lines.skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    let keys = cells.flat_map(|cell| cell.split(','));
    keys.map(|key| key.trim().trim_matches('`').to_owned())
        .collect()
}

/// Collects the paths of all keys, such as `problems[].path`.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let dot = if path.is_empty() { "" } else { "." };
                keys(value, &format!("{path}{dot}{name}"), found);
            }
        }
        Value::Array(list) if list.is_empty() => {
            found.insert(path.to_owned());
        }
        Value::Array(list) => {
            for value in list {
                keys(value, &format!("{path}[]"), found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

#[test]
fn tables_list_exactly_the_keys_of_the_json_output() {
    let text = format!("[categories.idle]\nlimit = '1/hour'\n{GOOD}");
    let text = text.replace("team = 5\n", "");
    let dir = TestDir::new("keys")
        .with("good.toml", &text)
        .with("wrong.toml", WRONG);
    let printed = |commands: &[&[&str]]| {
        let mut found = BTreeSet::new();
        for command in commands {
            let report = dir.run(&[*command, &["--format", "json"]].concat()).json();
            keys(&report, "", &mut found);
        }
        found
    };
    let wrong = printed(&[&["check", "wrong.toml"]]);
    assert_eq!(wrong, documented("If the file has problems"));
    let good = printed(&[&["check", "good.toml"]]);
    assert_eq!(good, documented("`tollgate check`, if it has none"));
    let explain = [
        "explain",
        "good.toml",
        "--request",
        "GET /v1/secrets/1",
        "--at",
    ];
    let mut explained = printed(&[
        &[&explain[..], &["2026-12-01T06:00:00Z"]].concat(),
        &[&explain[..], &["2026-11-01T06:00:00Z"]].concat(),
        &[
            "explain",
            "good.toml",
            "--request",
            "GET /v1/../x",
            "--at",
            "2026-12-01T06:00:00Z",
        ],
    ]);
    // `exempt` and `rejected` are null, and the lists empty, if they do not apply.
    for not_always in ["exempt", "counted_by", "rejected", "endpoints"] {
        assert!(explained.remove(not_always), "{not_always}");
    }
    assert_eq!(explained, documented("`tollgate explain`, if it has none"));
}
