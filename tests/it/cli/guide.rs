//! The guide to the command line lists what programs read. Its commands are run with those of all
//! pages, in `docs::commands`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{GOOD, Place, WRONG};

const GUIDE: &str = include_str!("../../../src/docs/command_line.md");

/// The keys that are listed under a heading, up to the next one.
fn documented(after: &str) -> BTreeSet<String> {
    let (_, rest) = GUIDE.split_once(after).unwrap();
    let lines = rest.lines().skip_while(|line| !line.starts_with("| key"));
    let rows = lines.skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    let keys = cells.flat_map(|cell| cell.split(','));
    keys.map(|key| key.trim().trim_matches('`').to_owned())
        .collect()
}

/// The paths of all keys: `problems[].path`.
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

/// What programs read is what the tables say: no key more, no key less.
#[test]
fn every_key_is_in_its_tables() {
    let text = format!("[categories.idle]\nlimit = '1/hour'\n{GOOD}");
    let text = text.replace("team = 5\n", "");
    let place = Place::new("keys")
        .with("good.toml", &text)
        .with("wrong.toml", WRONG);
    let seen = |commands: &[&[&str]]| {
        let mut found = BTreeSet::new();
        for command in commands {
            let told = place
                .run(&[*command, &["--format", "json"]].concat())
                .json();
            keys(&told, "", &mut found);
        }
        found
    };
    let wrong = seen(&[&["check", "wrong.toml"]]);
    assert_eq!(wrong, documented("If the file has problems"));
    let good = seen(&[&["check", "good.toml"]]);
    assert_eq!(good, documented("`tollgate check`, if it has none"));
    let explain = [
        "explain",
        "good.toml",
        "--request",
        "GET /v1/secrets/1",
        "--at",
    ];
    let mut explained = seen(&[
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
    // Null where nothing is exempt or rejected, and empty where something is.
    for not_always in ["exempt", "counted_by", "rejected", "endpoints"] {
        assert!(explained.remove(not_always), "{not_always}");
    }
    assert_eq!(explained, documented("`tollgate explain`, if it has none"));
}
