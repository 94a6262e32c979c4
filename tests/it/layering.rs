//! The picture of the house in `src/docs/design.md`, enforced: arrows point down only.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::root;

/// Rooms from the top floor to the ground; a room may use those of its own floor that are
/// listed for it, and everything on lower floors.
const FLOORS: [&[&str]; 6] = [
    &["admin", "client", "config"],
    &["layer", "service", "future", "extract"],
    &["pipeline"],
    &["limiter"],
    &[
        "identity", "tier", "policy", "store", "response", "headers", "observe",
    ],
    &[
        "algorithm",
        "quota",
        "key",
        "batch",
        "decision",
        "clock",
        "calendar",
        "catch_panic",
        "error",
        "hashed",
        "head",
        "network",
        "sync",
        "usage",
        "identity_types",
    ],
];

/// What each room on the ground floor may use of its neighbours: words before mathematics.
const GROUND: [(&str, &[&str]); 15] = [
    ("catch_panic", &[]),
    ("error", &[]),
    ("hashed", &[]),
    ("head", &[]),
    ("identity_types", &[]),
    ("network", &["error"]),
    ("sync", &[]),
    ("calendar", &[]),
    ("clock", &["error", "sync"]),
    ("quota", &["error", "calendar"]),
    ("key", &["error", "quota"]),
    ("batch", &["error", "key", "quota"]),
    ("usage", &["batch", "clock", "quota"]),
    ("decision", &["batch", "clock", "error", "usage"]),
    ("algorithm", &["clock", "quota", "usage"]),
];

/// What rooms on the upper floors may use of their own floor.
const SIDEWAYS: [(&str, &[&str]); 4] = [
    ("layer", &["service"]),
    ("service", &["future"]),
    ("extract", &["layer"]),
    ("response", &["headers"]),
];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn room_of(path: &Path, src: &Path) -> String {
    let relative = path.strip_prefix(src).unwrap();
    let first = relative.components().next().unwrap().as_os_str();
    first.to_str().unwrap().trim_end_matches(".rs").to_owned()
}

fn floor_of(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

/// Every `crate::room` in code, comments and docs aside.
fn uses(text: &str) -> Vec<String> {
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| {
            rest.chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect()
        })
        .filter(|room: &String| room.chars().next().is_some_and(char::is_lowercase))
        .collect()
}

#[test]
fn arrows_point_down_only() {
    let src = root().join("src");
    let mut paths = Vec::new();
    sources(&src, &mut paths);
    let mut wrong = Vec::new();
    for path in paths {
        let room = room_of(&path, &src);
        if ["lib", "docs"].contains(&room.as_str()) {
            continue;
        }
        let Some(floor) = floor_of(&room) else {
            wrong.push(format!("{room} has no floor in this picture"));
            continue;
        };
        let text = fs::read_to_string(&path).unwrap();
        // So that every use can be seen by its line.
        assert!(
            !text.contains("crate::{"),
            "{} groups what it uses",
            path.display()
        );
        for used in uses(&text) {
            let allowed = match floor_of(&used) {
                _ if used == room => true,
                None => used == "docs",
                Some(other) if other == floor => GROUND
                    .iter()
                    .chain(&SIDEWAYS)
                    .any(|(name, may)| *name == room && may.contains(&used.as_str())),
                Some(other) => other > floor,
            };
            if !allowed {
                wrong.push(format!(
                    "{} uses crate::{used}",
                    path.strip_prefix(&src).unwrap().display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn only_the_clock_asks_for_the_time() {
    let mut paths = Vec::new();
    sources(&root().join("src"), &mut paths);
    sources(&root().join("cli/src"), &mut paths);
    let clock = root().join("src/clock");
    for path in paths.iter().filter(|path| !path.starts_with(&clock)) {
        let text = fs::read_to_string(path).unwrap();
        for name in ["SystemTime::now", "Instant::now", ".elapsed()"] {
            assert!(!text.contains(name), "{} in {}", name, path.display());
        }
    }
}
