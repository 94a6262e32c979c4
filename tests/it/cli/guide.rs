//! The guide to the command line shows what it does.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{GOOD, Place, WRONG};

const GUIDE: &str = include_str!("../../../src/docs/command_line.md");

/// The blocks of this language.
fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let fence = format!("```{language}\n");
    let mut rest = GUIDE;
    std::iter::from_fn(move || {
        let (block, after) = rest.split_once(&fence)?.1.split_once("```")?;
        rest = after;
        Some(block)
    })
}

/// The words of a command, as a shell would tell them apart.
fn words(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (index, part) in command.split('"').enumerate() {
        if index % 2 == 1 {
            words.push(part);
        } else {
            words.extend(part.split_whitespace());
        }
    }
    words
}

#[test]
fn its_commands_say_what_it_shows() {
    let place = Place::new("guide").with("limits.toml", blocks("toml").next().unwrap());
    let mut shown = 0;
    for block in blocks("console") {
        let (command, expected) = block.split_once('\n').unwrap();
        let command = command.strip_prefix("$ tollgate ").unwrap();
        let run = place.run(&words(command));
        assert_eq!((run.code, &*run.stderr), (Some(0), ""));
        assert_eq!(run.stdout, expected, "{command}");
        shown += 1;
    }
    assert_eq!(shown, 2);
}

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
    ]);
    // Null where nothing is exempt, and empty where something is.
    for not_always in ["exempt", "counted_by"] {
        assert!(explained.remove(not_always), "{not_always}");
    }
    assert_eq!(explained, documented("`tollgate explain`, if it has none"));
}
