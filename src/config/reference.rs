//! Guide to every key, generated from the descriptions of the tables. A test compares it with
//! `src/docs/configuration.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::table::{FILE, KeySpec, QUOTA, RULE, TableSpec, ValueKind};

const INTRODUCTION: &str = "\
# Every key of a policy file

The keys of each table, in TOML syntax. JSON has the same names. `tollgate::config` describes how a file is read,
how environment variables override it, and has a complete example. `schema/tollgate.schema.json` is the JSON Schema
for editors.

You choose the names in capitals.
";

const RULE_INTRODUCTION: &str = "\
`global.everyone`, `global.authenticated` and `global.anonymous` are quotas, or tables with these keys.";

const QUOTA_INTRODUCTION: &str = "\
A quota is a text (`\"500/hour\"`, `\"10/15m\"`, `\"50 per 10 seconds\"`, \
`\"50/minute, token-bucket, burst 20\"`, `\"unlimited\"`, `\"blocked\"`) or a table with these keys.";

fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for field in FILE.keys() {
        section(&mut page, field.key, field.kind, field.doc);
    }
    heading(&mut page, "A rule", RULE_INTRODUCTION);
    keys(&mut page, &RULE);
    heading(&mut page, "A quota", QUOTA_INTRODUCTION);
    keys(&mut page, &QUOTA);
    page
}

fn heading(page: &mut String, title: &str, doc: &str) {
    // Writing to a string cannot fail.
    let _ = write!(page, "\n## {title}\n\n{doc}\n");
}

/// Writes a table and the tables in it.
fn section(page: &mut String, path: &str, kind: ValueKind, doc: &str) {
    let (title, table) = match kind {
        ValueKind::Table(table) => (format!("`[{path}]`"), table),
        ValueKind::Tables(table) => (format!("`[[{path}]]`"), table),
        _ => return,
    };
    // A table of tables has no keys to list.
    let own = table.keys().any(|field| !is_table(field.kind));
    let others = table.chosen.as_ref();
    if own || others.is_some_and(|others| !is_table(others.kind)) {
        heading(page, &title, doc);
        keys(page, table);
    }
    for field in table.keys() {
        section(
            page,
            &format!("{path}.{}", field.key),
            field.kind,
            field.doc,
        );
    }
    if let Some(others) = others {
        let path = format!("{path}.{}", others.noun.to_uppercase());
        section(page, &path, others.kind, doc);
    }
}

const fn is_table(kind: ValueKind) -> bool {
    matches!(kind, ValueKind::Table(_) | ValueKind::Tables(_))
}

fn keys(page: &mut String, table: &TableSpec) {
    page.push_str("\n| key | value | default | description |\n|---|---|---|---|\n");
    for field in table.keys().filter(|field| !is_table(field.kind)) {
        line(
            page,
            field.key,
            field.kind,
            &default(table, field),
            field.doc,
        );
    }
    if let Some(others) = table
        .chosen
        .as_ref()
        .filter(|others| !is_table(others.kind))
    {
        let name = others.noun.to_uppercase();
        line(page, &name, others.kind, "", others.doc);
    }
}

fn default(table: &TableSpec, field: &KeySpec) -> String {
    match field.default {
        _ if table.is_required(field) => "required".to_owned(),
        Some(default) => format!("`{default}`"),
        None => String::new(),
    }
}

fn line(page: &mut String, key: &str, kind: ValueKind, default: &str, doc: &str) {
    let takes = match kind {
        // Described in sections of their own.
        ValueKind::Quota => "a quota".to_owned(),
        ValueKind::Quotas => "a quota, or a list of quotas".to_owned(),
        ValueKind::RuleOrQuotas => "a rule, a quota, or a list of quotas".to_owned(),
        other => other.expected(),
    };
    let _ = writeln!(page, "| `{key}` | {takes} | {default} | {doc} |");
}

/// Run with `BLESS=1` to write it.
#[test]
fn the_guide_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/docs/configuration.md");
    let reference = reference();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &reference).unwrap();
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(reference, published, "run the test with BLESS=1");
}

#[test]
fn the_guide_has_every_key() {
    fn check(table: &TableSpec, page: &str) {
        for field in table.keys() {
            let line = format!("| `{}` |", field.key);
            let is_heading = is_table(field.kind) && page.contains(field.key);
            assert!(
                is_heading || field.key == "$schema" || page.contains(&line),
                "{line}"
            );
            if let ValueKind::Table(table) | ValueKind::Tables(table) = field.kind {
                check(table, page);
            }
        }
        if let Some(ValueKind::Table(table)) = table.chosen.as_ref().map(|others| others.kind) {
            check(table, page);
        }
    }
    check(&FILE, &reference());
}
