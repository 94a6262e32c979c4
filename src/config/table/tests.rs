//! Every described key is read.

use std::collections::{BTreeMap, BTreeSet};

use super::{FILE, QUOTA, RULE, TableSpec, ValueKind, is_quota_table, read};
use crate::config::context::ReadContext;
use crate::config::report::ProblemReport;
use crate::config::syntax::Syntax;
use crate::config::tree::{ConfigNode, ConfigValue, Setting};

/// Every key, in every table that has it.
const COMPLETE: &str = include_str!("complete.toml");

/// Returns the complete file, and one with `global.everyone`, which `global.authenticated` would
/// override.
fn complete_files() -> [String; 2] {
    let with_everyone = COMPLETE.replace("[global.authenticated]", "[global.everyone]");
    [COMPLETE.to_owned(), with_everyone]
}

fn parse(text: &str) -> ConfigNode {
    Syntax::Toml.parse(text).unwrap()
}

/// Returns everything that is read from a file, including problems with key files. Missing keys
/// are no problem here, because the check is not run.
fn settings(root: &ConfigNode) -> String {
    let read_with = |with_keys| {
        let context = ReadContext {
            variables: Some(BTreeMap::new()),
            with_keys,
            ..ReadContext::new("no-such-directory".into())
        };
        let mut report = ProblemReport::default();
        let settings = read(&Setting::root(root), &context, &mut report);
        let (policy, overrides) = (settings.policy, settings.overrides);
        // `Debug` of a policy hides subjects.
        let subjects = policy.exempt.subjects.clone();
        let (problems, _) = report.into_parts();
        format!(
            "{policy:#?}\n{subjects:?}\n{overrides:#?}\n{problems:#?}\n{:#?}",
            settings.key_files
        )
    };
    read_with(true) + &read_with(false)
}

/// A key in the complete file: the names and indexes that lead to it.
type KeyPath = Vec<String>;

/// Adds the paths of all described keys of a table, and the description of each.
fn described_keys(
    setting: &Setting<'_>,
    kind: ValueKind,
    path: &KeyPath,
    found: &mut Vec<(String, KeyPath)>,
    spec_name: &str,
) {
    let spec: &TableSpec = match kind {
        ValueKind::Table(spec) => spec,
        ValueKind::Tables(spec) => {
            for (index, item) in setting.items().enumerate() {
                let path = [path.as_slice(), &[index.to_string()]].concat();
                described_keys(&item, ValueKind::Table(spec), &path, found, spec_name);
            }
            return;
        }
        ValueKind::Quota | ValueKind::RuleOrQuotas if is_quota_table(setting) => &QUOTA,
        ValueKind::RuleOrQuotas if setting.table().is_some() => &RULE,
        _ => return,
    };
    let spec_name = if is_quota_table(setting) {
        "quota"
    } else {
        spec_name
    };
    for (key, value) in setting.entries() {
        let Some(kind) = spec.kind_of(&key.name) else {
            panic!("unknown key {}", key.name);
        };
        let path = [path.as_slice(), std::slice::from_ref(&key.name)].concat();
        let name = match spec.key(&key.name) {
            Some(_) => format!("{spec_name}.{}", key.name),
            None => format!("{spec_name}.*"),
        };
        described_keys(&value, kind, &path, found, &name);
        found.push((name, path));
    }
}

fn remove(node: &mut ConfigNode, path: &[String]) {
    let (first, rest) = path.split_first().unwrap();
    match &mut node.value {
        ConfigValue::Table(table) if rest.is_empty() => {
            table.entries.retain(|(key, _)| key.name != *first);
        }
        ConfigValue::Table(table) => {
            let mut entries = table.entries.iter_mut();
            let (_, next) = entries.find(|(key, _)| key.name == *first).unwrap();
            remove(next, rest);
        }
        ConfigValue::List(items) => remove(&mut items[first.parse::<usize>().unwrap()], rest),
        _ => panic!("no table at {path:?}"),
    }
}

/// Adds the names of all described keys, below a table.
fn all_names(spec: &'static TableSpec, spec_name: &str, names: &mut BTreeSet<String>) {
    let fixed = spec.keys().map(|key| (key.key, key.kind));
    let chosen = spec.chosen.iter().map(|chosen| ("*", chosen.kind));
    for (key, kind) in fixed.chain(chosen) {
        let name = format!("{spec_name}.{key}");
        match kind {
            ValueKind::Table(spec) | ValueKind::Tables(spec) => all_names(spec, &name, names),
            ValueKind::RuleOrQuotas => all_names(&RULE, &name, names),
            _ => {}
        }
        names.insert(name);
    }
}

#[test]
fn removing_any_described_key_changes_the_settings() {
    let mut tested = BTreeSet::new();
    for text in complete_files() {
        let root = parse(&text);
        let complete = settings(&root);
        let mut keys = Vec::new();
        let start = Setting::root(&root);
        described_keys(&start, ValueKind::Table(&FILE), &Vec::new(), &mut keys, "");
        for (name, path) in keys {
            let mut changed = parse(&text);
            remove(&mut changed, &path);
            assert_ne!(
                settings(&changed),
                complete,
                "{} is not read",
                path.join(".")
            );
            tested.insert(name);
        }
    }
    // The files have all of them, so none is left out above. Editors read `$schema`.
    let mut names = BTreeSet::new();
    all_names(&FILE, "", &mut names);
    all_names(&QUOTA, "quota", &mut names);
    names.remove(".$schema");
    assert_eq!(names, tested);
}
