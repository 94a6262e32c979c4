//! Dependencies between modules point down only, as in `src/docs/design.md`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::root;

/// Modules by level, from the top. A module may use every module of a lower level, and those of its own
/// level that are listed for it below.
const LEVELS: [&[&str]; 6] = [
    &["admin", "client", "config"],
    &["layer", "service", "future", "extract", "responder"],
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
        "configuration_warning",
        "error",
        "hashed",
        "head",
        "network",
        "sync",
        "usage",
        "identity_types",
        "invisible",
    ],
];

/// What each module of the lowest level may use of that level.
const LOWEST: [(&str, &[&str]); 17] = [
    ("catch_panic", &[]),
    ("configuration_warning", &[]),
    ("error", &[]),
    ("hashed", &[]),
    ("head", &[]),
    ("identity_types", &[]),
    ("invisible", &[]),
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

/// What modules of upper levels may use of their own level.
const SIDEWAYS: [(&str, &[&str]); 5] = [
    ("layer", &["service"]),
    ("service", &["future"]),
    ("extract", &["layer"]),
    ("responder", &["extract"]),
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

fn module_of(path: &Path, src: &Path) -> String {
    let relative = path.strip_prefix(src).unwrap();
    let first = relative.components().next().unwrap().as_os_str();
    first.to_str().unwrap().trim_end_matches(".rs").to_owned()
}

fn level_of(module: &str) -> Option<usize> {
    LEVELS.iter().position(|modules| modules.contains(&module))
}

/// Returns each `crate::module` in code. Skips comments and docs.
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
        .filter(|module: &String| module.chars().next().is_some_and(char::is_lowercase))
        .collect()
}

#[test]
fn dependencies_point_down_only() {
    let src = root().join("src");
    let mut paths = Vec::new();
    sources(&src, &mut paths);
    let mut wrong = Vec::new();
    for path in paths {
        let module = module_of(&path, &src);
        if ["lib", "docs"].contains(&module.as_str()) {
            continue;
        }
        let Some(level) = level_of(&module) else {
            wrong.push(format!("{module} is not in `LEVELS`"));
            continue;
        };
        let text = fs::read_to_string(&path).unwrap();
        // `uses` needs one path per line.
        assert!(
            !text.contains("crate::{"),
            "{} groups imports of the crate",
            path.display()
        );
        for used in uses(&text) {
            let allowed = match level_of(&used) {
                _ if used == module => true,
                None => used == "docs",
                Some(other) if other == level => LOWEST
                    .iter()
                    .chain(&SIDEWAYS)
                    .any(|(name, may)| *name == module && may.contains(&used.as_str())),
                Some(other) => other > level,
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
fn only_the_clock_reads_the_time() {
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
