//! The comparison: every claim has a footnote, and every fact is for the version in the column.

use std::collections::BTreeSet;
use std::fs;

use crate::support::root;

const COMPARE: &str = include_str!("../../../src/docs/compare.md");

/// Returns the rows of the table, each as its cells.
fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    let rows = COMPARE.lines().filter(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
}

/// Returns the columns: name and version of each crate.
fn columns() -> Vec<(&'static str, &'static str)> {
    let head = rows().next().unwrap();
    let named = head[1..].iter();
    named.map(|name| name.split_once(' ').unwrap()).collect()
}

#[test]
fn every_row_has_a_cell_for_every_peer() {
    let width = columns().len() + 1;
    assert_eq!(width, 9);
    assert!(rows().count() > 25);
    for row in rows() {
        assert_eq!(row.len(), width, "{row:?}");
        let is_heading = row[0].starts_with("**");
        let is_head_or_rule = row[0].is_empty() || row[0].starts_with("---");
        for cell in &row[1..] {
            let has_text = !cell.is_empty();
            assert!(
                has_text != is_heading || is_head_or_rule,
                "in {:?}: {cell:?}",
                row[0]
            );
        }
    }
}

#[test]
fn every_footnote_is_defined_and_used() {
    let mut defined = BTreeSet::new();
    let mut used = BTreeSet::new();
    for line in COMPARE.lines() {
        let (note, text) = match line.strip_prefix("[^").and_then(|l| l.split_once("]:")) {
            Some((note, text)) => (Some(note), text),
            None => (None, line),
        };
        if let Some(note) = note {
            assert!(defined.insert(note), "[^{note}] is defined twice");
        }
        let references = text.split("[^").skip(1);
        used.extend(references.map(|rest| rest.split_once(']').unwrap().0));
    }
    assert!(defined.len() > 80);
    assert_eq!(defined, used);
}

/// The benchmarks use the same crates. After an update of one, its facts must be verified again.
#[test]
fn compared_versions_equal_those_of_the_benchmarks() {
    let lock = root().join("Cargo.lock");
    let lock = fs::read_to_string(lock).unwrap();
    let locked = |name: &str| {
        let named = format!("name = \"{name}\"\nversion = \"");
        let (_, version) = lock.split_once(&named)?;
        Some(version.split_once('"')?.0)
    };
    let mut compared = 0;
    for (name, version) in columns() {
        if let Some(locked) = locked(name) {
            assert_eq!(locked, version, "of {name}");
            compared += 1;
        }
    }
    assert!(compared >= 5, "only {compared} versions were compared");
}
