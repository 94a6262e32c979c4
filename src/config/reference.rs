//! The guide to every key, made from the shape of the file, so that it cannot say anything
//! else. Only tests make it: what people read is `src/docs/configuration.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::shape::{FILE, Field, Kind, QUOTA, RULE, Table};

const INTRODUCTION: &str = "\
# Every key of a policy file

What a file can say, table by table, as TOML has it; JSON has the same names. How a file is
read, what the environment has to do with it, and an example of everything are in
`tollgate::config`. Editors know all this as well, from `schema/tollgate.schema.json`.

Names in capitals are for you to choose.
";

const RULE_INTRODUCTION: &str = "\
`global.authenticated` and `global.anonymous` are quotas, or tables with these keys.";

const QUOTA_INTRODUCTION: &str = "\
Wherever a quota can be, it is a text (`\"500/hour\"`, `\"10/15m\"`, `\"50 per 10 seconds\"`, \
`\"50/minute, token-bucket, burst 20\"`, `\"unlimited\"`, `\"blocked\"`) or a table with these keys.";

fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for field in FILE.fields {
        section(&mut page, field.key, field.kind, field.doc);
    }
    heading(&mut page, "A rule", RULE_INTRODUCTION);
    keys(&mut page, &RULE);
    heading(&mut page, "A quota", QUOTA_INTRODUCTION);
    keys(&mut page, &QUOTA);
    page
}

fn heading(page: &mut String, title: &str, doc: &str) {
    // Writing to a text does not fail.
    let _ = write!(page, "\n## {title}\n\n{doc}\n");
}

/// A table, and then those in it; nothing for other values, which are lines of a table.
fn section(page: &mut String, path: &str, kind: Kind, doc: &str) {
    let (title, table) = match kind {
        Kind::Table(table) => (format!("`[{path}]`"), table),
        Kind::Tables(table) => (format!("`[[{path}]]`"), table),
        _ => return,
    };
    // What has only tables in it needs no words of its own.
    let own = table.fields.iter().any(|field| !is_table(field.kind));
    let others = table.others.as_ref();
    if own || others.is_some_and(|others| !is_table(others.kind)) {
        heading(page, &title, doc);
        keys(page, table);
    }
    for field in table.fields {
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

const fn is_table(kind: Kind) -> bool {
    matches!(kind, Kind::Table(_) | Kind::Tables(_))
}

fn keys(page: &mut String, table: &Table) {
    page.push_str("\n| key | takes | if not said | means |\n|---|---|---|---|\n");
    for field in table.fields.iter().filter(|field| !is_table(field.kind)) {
        line(page, field.key, field.kind, &unsaid(field), field.doc);
    }
    if let Some(others) = table
        .others
        .as_ref()
        .filter(|others| !is_table(others.kind))
    {
        let name = others.noun.to_uppercase();
        line(page, &name, others.kind, "", others.doc);
    }
}

fn unsaid(field: &Field) -> String {
    match field.default {
        _ if field.required => "an error".to_owned(),
        Some(default) => format!("`{default}`"),
        None => String::new(),
    }
}

fn line(page: &mut String, key: &str, kind: Kind, unsaid: &str, doc: &str) {
    let takes = match kind {
        // At length below.
        Kind::Quota => "a quota".to_owned(),
        Kind::Quotas => "a quota, or a list of quotas".to_owned(),
        Kind::RuleOrQuotas => "a rule, a quota, or a list of quotas".to_owned(),
        other => other.expected(),
    };
    let _ = writeln!(page, "| `{key}` | {takes} | {unsaid} | {doc} |");
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

/// No key is forgotten, however deep.
#[test]
fn the_guide_has_every_key() {
    fn check(table: &Table, page: &str) {
        for field in table.fields {
            let line = format!("| `{}` |", field.key);
            let is_heading = is_table(field.kind) && page.contains(field.key);
            assert!(
                is_heading || field.key == "$schema" || page.contains(&line),
                "{line}"
            );
            if let Kind::Table(table) | Kind::Tables(table) = field.kind {
                check(table, page);
            }
        }
        if let Some(Kind::Table(table)) = table.others.as_ref().map(|others| others.kind) {
            check(table, page);
        }
    }
    check(&FILE, &reference());
}
