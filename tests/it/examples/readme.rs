//! Claims of the README: its size, its programs, the response it shows, and its tables.

use std::collections::BTreeSet;
use std::process::Command;

use axum::{Router, routing::get};
use tollgate::RateLimitLayer;

use crate::curl::{assert_is_shown, replay};
use crate::docs::getting_started;
use crate::docs::page::Page;
use crate::support::root;

fn readme() -> Page {
    Page::read("README.md")
}

/// The cells of all table rows whose first cell satisfies `is_wanted`.
fn rows(page: &Page, is_wanted: impl Fn(&str) -> bool) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        let row = line.trim_matches('|').split('|');
        row.map(|cell| without_footnotes(cell.trim())).collect()
    };
    let lines = page.text().lines().filter(|line| line.starts_with('|'));
    let rows = lines.map(cells);
    rows.filter(|row| is_wanted(&row[0])).collect()
}

/// Removes references such as `[^note]`.
fn without_footnotes(cell: &str) -> String {
    let mut parts = cell.split("[^");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (_, rest) = part.split_once(']').unwrap();
        text + rest
    })
}

#[test]
fn prose_has_at_most_900_words() {
    let words = readme().prose().split_whitespace().count();
    assert!((300..=900).contains(&words), "{words} words");
}

#[test]
fn programs_are_short() {
    let lines = |text: &str| text.lines().filter(|line| !line.is_empty()).count();
    let programs = readme().blocks_in("rust");
    assert_eq!(programs.len(), 2);
    assert!(lines(&programs[0]) <= 8, "{}", programs[0]);
    assert!(lines(&programs[1]) <= 15, "{}", programs[1]);
}

/// The first program of the README.
fn app() -> Result<Router, tollgate::Error> {
    let limits = RateLimitLayer::new("100/minute")?;
    Ok(Router::new()
        .route("/", get(|| async { "hello\n" }))
        .layer(limits))
}

/// The function `app` of a program, without comments and spaces.
fn app_in(program: &str) -> String {
    let (_, rest) = program.split_once("fn app() ").unwrap();
    let (function, _) = rest.split_once("\n}").unwrap();
    let code = function
        .lines()
        .map(|line| line.split(" //").next().unwrap());
    code.flat_map(str::split_whitespace).collect()
}

#[tokio::test]
async fn shown_429_is_the_response_to_request_101() {
    let program = &readme().blocks_in("rust")[0];
    let source = include_str!("readme.rs");
    assert_eq!(app_in(program), app_in(source), "{program}");

    let address = getting_started::serve(app()).await;
    let responses = replay(address, &format!("curl -i 'http://{address}/?[1-101]'")).await;
    let (denied, allowed) = responses.split_last().unwrap();
    for response in allowed {
        assert_eq!(response.status, 200);
        assert_eq!(response.number("x-ratelimit-limit"), 100);
    }
    let shown = readme().blocks_in("http");
    assert_eq!(shown.len(), 1);
    assert_is_shown(denied, &shown[0]);
}

#[test]
fn comparison_repeats_rows_of_the_guide() {
    let guide = Page::read("src/docs/compare.md");
    let known = rows(&guide, |_| true);
    let head = rows(&readme(), str::is_empty).swap_remove(0);
    assert!(head[1].starts_with("tollgate "), "{head:?}");
    let columns: Vec<usize> = head
        .iter()
        .map(|name| known[0].iter().position(|other| other == name).unwrap())
        .collect();
    let mut compared = 0;
    let first_cells: Vec<&str> = known.iter().map(|row| &*row[0]).collect();
    for row in rows(&readme(), |first| {
        first_cells.contains(&first) && !first.is_empty() && !first.starts_with("---")
    }) {
        let same = known.iter().find(|other| other[0] == row[0]).unwrap();
        let expected: Vec<&str> = columns.iter().map(|column| &*same[*column]).collect();
        assert_eq!(row, expected);
        compared += 1;
    }
    assert_eq!(compared, 5);
}

/// How many crates a build with these features depends on.
fn crates(features: &str) -> usize {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--edges", "normal", "--prefix", "none", "--locked"])
        .args(["--features", features])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().map(|line| line.trim_end_matches(" (*)"));
    let unique: BTreeSet<&str> = names.collect();
    unique.len() - 1
}

#[test]
fn feature_table_lists_every_feature_and_what_it_costs() {
    let base = crates("default");
    let stated = format!("default build of {base} dependencies");
    let prose = readme().prose();
    let prose: Vec<&str> = prose.split_whitespace().collect();
    assert!(prose.join(" ").contains(&stated), "not stated: {stated}");

    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let features = manifest["features"].as_table().unwrap();
    let is_default = |name: &str| {
        let default = features["default"].as_array().unwrap();
        default.iter().any(|known| known.as_str() == Some(name))
    };
    for name in features.keys().filter(|name| *name != "default") {
        let row = rows(&readme(), |first| first == format!("`{name}`"));
        let [row] = &row[..] else {
            panic!("`{name}` has {} rows", row.len());
        };
        let cost = if is_default(name) {
            "default".to_owned()
        } else {
            (crates(name) - base).to_string()
        };
        assert_eq!(row[2], cost, "of `{name}`");
    }
}
