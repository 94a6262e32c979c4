//! The list of offenders that are left.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::support::root;

/// What was found, where, how often. The place is a file, or `crate` for a type name.
pub(super) type Counts = BTreeMap<(String, String), usize>;

const HEADER: &str = "\
# Offenders that tests/it/style/ still allows: count, file, wording. Counts may only shrink.
# Rewrite with: STYLE_BLESS=1 cargo nextest run -p tollgate-tests -E 'test(/^style::/)'
";

fn list_path() -> PathBuf {
    root().join("tests/it/style/allowed.txt")
}

fn parse(list: &str) -> Counts {
    let entries = list.lines().filter(|line| !line.starts_with('#'));
    entries
        .map(|line| {
            let mut fields = line.split('\t');
            let mut field = || fields.next().expect("three fields").to_owned();
            let count = field().parse().expect("a count");
            ((field(), field()), count)
        })
        .collect()
}

fn print(counts: &Counts) -> String {
    let mut list = HEADER.to_owned();
    for ((file, wording), count) in counts {
        writeln!(list, "{count}\t{file}\t{wording}").unwrap();
    }
    list
}

/// Sums the counts of each wording over all files.
fn totals(counts: &Counts) -> BTreeMap<&str, usize> {
    let mut totals = BTreeMap::new();
    for ((_, wording), count) in counts {
        *totals.entry(wording.as_str()).or_default() += count;
    }
    totals
}

/// Returns the entries of which `counts` has more than `bound`.
fn above(counts: &Counts, bound: &Counts) -> String {
    let mut text = String::new();
    for (entry @ (file, wording), count) in counts {
        let bound = bound.get(entry).copied().unwrap_or(0);
        if *count > bound {
            writeln!(
                text,
                "{file}: \"{wording}\" {count} times instead of {bound}"
            )
            .unwrap();
        }
    }
    text
}

fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| value == "1")
}

/// Compares the offenders with the list, or rewrites the list.
pub(super) fn compare(found: &Counts) {
    let listed = parse(&fs::read_to_string(list_path()).unwrap_or_default());
    if is_set("STYLE_BLESS") {
        if !listed.is_empty() {
            let bounds = totals(&listed);
            for (wording, total) in totals(found) {
                let bound = bounds.get(wording).copied().unwrap_or(0);
                assert!(
                    total <= bound,
                    "\"{wording}\" {total} times, {bound} are listed"
                );
            }
        }
        fs::write(list_path(), print(found)).unwrap();
        return;
    }
    let added = above(found, &listed);
    assert!(
        added.is_empty(),
        "wording that the style guide rules out:\n{added}"
    );
    if is_set("STYLE_EXACT") {
        let gone = above(&listed, found);
        assert!(
            gone.is_empty(),
            "listed, but gone; run with STYLE_BLESS=1:\n{gone}"
        );
    }
}

#[test]
fn list_is_read_as_it_is_written() {
    let entry = |file: &str, wording: &str| (file.to_owned(), wording.to_owned());
    let counts = Counts::from([
        (entry("src/a.rs", "is told"), 2),
        (entry("crate", "type A"), 3),
    ]);
    assert_eq!(parse(&print(&counts)), counts);
    let fewer = Counts::from([(entry("src/a.rs", "is told"), 1)]);
    assert!(above(&fewer, &counts).is_empty());
    assert_eq!(above(&counts, &fewer).lines().count(), 2);
}
