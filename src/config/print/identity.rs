//! How callers are known, as the file said it: keys and secrets are somewhere else, and only
//! their names are here.

use super::page::{Page, Section, heading, inline, list, text};
use super::rule::quota;
use crate::config::conceal::is_variable_name;
use crate::config::shape::{FILE, Kind, Table};
use crate::config::tree::{Spot, Value};
use crate::quota::Quota;

/// What is printed of how callers are known.
pub(super) struct Identity<'a> {
    pub(super) said: Spot<'a>,
    /// With the algorithm that it is counted by.
    pub(super) failed_auth_quota: Option<Quota>,
    /// Whether the names of secrets were looked up, and are names.
    pub(super) with_keys: bool,
}

impl Identity<'_> {
    pub(super) fn print(&self, page: &mut Page) {
        let shape = FILE.kind_of("identity");
        if let Some(Kind::Table(shape)) = shape {
            self.table(page, &["identity"], &self.said, shape);
        }
    }

    /// A table, then those that are in it.
    fn table(&self, page: &mut Page, path: &[&str], spot: &Spot<'_>, shape: &Table) {
        let mut section = Section::default();
        let mut inner = Vec::new();
        for (key, value) in spot.entries() {
            let name = key.name.as_str();
            match shape.kind_of(name) {
                Some(Kind::Table(shape)) if shape.others.is_none() => {
                    inner.push((name, value, shape));
                }
                _ if name == "secret_env" && !self.is_name(&value) => {
                    section.remark("secret_env: this may be the secret itself, so it is not shown");
                }
                _ => {
                    let written = match self.failed_auth_quota {
                        Some(own) if name == "failed_auth_quota" => quota(&own),
                        _ => written(&value),
                    };
                    let default = shape.field(name).and_then(|field| field.default);
                    if default != Some(&written) {
                        section.set(name, &written);
                    }
                }
            }
        }
        page.add(&heading(path), &section);
        for (name, value, shape) in inner {
            let path: Vec<&str> = path.iter().copied().chain([name]).collect();
            self.table(page, &path, &value, shape);
        }
    }

    /// Whether this is certainly the name of a variable.
    fn is_name(&self, value: &Spot<'_>) -> bool {
        self.with_keys || value.text().is_some_and(is_variable_name)
    }
}

/// A value that has been checked, on one line.
fn written(spot: &Spot<'_>) -> String {
    match &spot.node.value {
        Value::Flag(flag) => flag.to_string(),
        Value::Whole(number) => number.to_string(),
        Value::Number(number) => format!("{number:?}"),
        Value::Text(said) => text(said),
        Value::Instant(said) => said.clone(),
        Value::List(_) => list(spot.items().map(|item| written(&item))),
        Value::Table(_) => {
            let entries = spot.entries();
            inline(entries.map(|(key, value)| (key.name.as_str(), written(&value))))
        }
        // No key takes it.
        Value::Null => text(""),
    }
}
