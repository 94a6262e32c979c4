//! Finds the setting that an environment variable names.

use crate::config::problem::ConfigProblem;
use crate::config::suggest::{nearest, plain};
use crate::config::table::{FILE, QUOTA, RULE, TableSpec, ValueKind, is_quota_table};
use crate::config::tree::{ConfigNode, ConfigValue, Setting};

/// One step of the path from the root to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    Key(String),
    Item(usize),
}

/// Finds the setting that a name such as `CATEGORIES__SECRETS__LIMIT` refers to. Returns its path
/// and the kind of value that it takes.
///
/// Case is ignored, and `_` matches every character that is neither letter nor digit. Keys that the
/// author of the file has chosen, and items of lists, must exist in the file.
pub(super) fn find(
    name: &str,
    root: &ConfigNode,
) -> Result<(Vec<PathStep>, ValueKind), Box<ConfigProblem>> {
    let mut here = VariableLookup {
        setting: Some(Setting::root(root)),
        kind: ValueKind::Table(&FILE),
        steps: Vec::new(),
        prefix: String::new(),
    };
    for part in name.split("__") {
        here = here.step(part)?;
    }
    match here.kind {
        ValueKind::Table(table) => {
            let keys = table.names().into_iter();
            let expected = format!("one of its keys: {}", listed(keys));
            Err(unknown(format!("`{}` is a table", here.prefix), expected))
        }
        ValueKind::Tables(_) => {
            let message = format!("`{}` is a list of tables", here.prefix);
            Err(unknown(message, "a number or a name, and a key"))
        }
        kind => Ok((here.steps, kind)),
    }
}

/// State of the look-up, after some parts of the name.
struct VariableLookup<'a> {
    /// The value that the file has here.
    setting: Option<Setting<'a>>,
    kind: ValueKind,
    steps: Vec<PathStep>,
    /// The parts of the name so far, as they are written.
    prefix: String,
}

impl<'a> VariableLookup<'a> {
    fn step(self, part: &str) -> Result<Self, Box<ConfigProblem>> {
        match self.kind {
            ValueKind::Table(table) => self.key(part, table),
            ValueKind::Tables(table) => self.table_in_list(part, table),
            ValueKind::RuleOrQuotas if self.has_table() => {
                let is_quota = self.setting.as_ref().is_some_and(is_quota_table);
                self.key(part, if is_quota { &QUOTA } else { &RULE })
            }
            ValueKind::Quota | ValueKind::Quotas if self.has_table() => self.key(part, &QUOTA),
            kind => {
                if let Some(item) = kind.item() {
                    return self.item(part, item);
                }
                let expected = format!("nothing after `{}`", self.prefix);
                Err(unknown(format!("`{}` has no parts", self.prefix), expected))
            }
        }
    }

    fn has_table(&self) -> bool {
        self.setting
            .as_ref()
            .is_some_and(|setting| setting.table().is_some())
    }

    fn then(mut self, part: &str, step: PathStep, kind: ValueKind) -> Self {
        self.setting = self.setting.and_then(|setting| match &step {
            PathStep::Key(name) => setting.get(name),
            PathStep::Item(index) => setting.item(*index),
        });
        if !self.prefix.is_empty() {
            self.prefix.push_str("__");
        }
        self.prefix.push_str(part);
        self.steps.push(step);
        self.kind = kind;
        self
    }

    /// Follows a key of a table: a fixed key, or a chosen key that the file has.
    fn key(self, part: &str, table: &'static TableSpec) -> Result<Self, Box<ConfigProblem>> {
        let written = plain(part);
        let keys = table.keys().filter(|key| !key.key.starts_with('$'));
        let own = keys.clone().find(|field| plain(field.key) == written);
        if let Some(field) = own {
            return Ok(self.then(part, PathStep::Key(field.key.to_owned()), field.kind));
        }
        let chosen: Vec<&'a str> = match (&table.chosen, &self.setting) {
            (Some(_), Some(setting)) => setting
                .entries()
                .map(|(key, _)| key.name.as_str())
                .collect(),
            _ => Vec::new(),
        };
        let mut same = chosen.iter().filter(|name| plain(name) == written);
        match (&table.chosen, same.next(), same.next()) {
            (Some(others), Some(name), None) => {
                Ok(self.then(part, PathStep::Key((*name).to_owned()), others.kind))
            }
            (_, Some(one), Some(other)) => Err(ambiguous(part, one, other)),
            _ => {
                let names: Vec<&str> = keys.map(|key| key.key).chain(chosen).collect();
                let noun = table.chosen.as_ref().map_or("key", |others| others.noun);
                Err(Box::new(self.missing(part, noun, &names)))
            }
        }
    }

    /// Follows a table in a list, by its index or its name.
    fn table_in_list(
        self,
        part: &str,
        table: &'static TableSpec,
    ) -> Result<Self, Box<ConfigProblem>> {
        let items: Vec<Setting<'_>> = self.setting.iter().flat_map(Setting::items).collect();
        let names: Vec<Option<&str>> = items.iter().map(|item| item.get("name")?.text()).collect();
        let by_number = part.parse().ok();
        let index = by_number.or_else(|| {
            let written = plain(part);
            let mut names = names.iter().copied();
            names.position(|name| name.is_some_and(|name| plain(name) == written))
        });
        let meant = index
            .filter(|_| by_number.is_none())
            .and_then(|at| names[at]);
        let another = meant.and_then(|one| {
            let mut others = names.iter().flatten().filter(|other| **other != one);
            let other = others.find(|other| plain(other) == plain(one))?;
            Some((one, *other))
        });
        if let Some((one, other)) = another {
            return Err(ambiguous(part, one, other));
        }
        if let Some(index) = index.filter(|index| *index < items.len()) {
            return Ok(self.then(part, PathStep::Item(index), ValueKind::Table(table)));
        }
        let names: Vec<&str> = names.into_iter().flatten().collect();
        let expected = match items.len() {
            0 => "nothing: the list is empty".to_owned(),
            1 => "`0`, or a name that the file has".to_owned(),
            count => format!("`0` to `{}`, or a name that the file has", count - 1),
        };
        Err(Box::new(
            self.missing(part, "item", &names).with_expected(expected),
        ))
    }

    /// Follows an item of a list, by its index.
    fn item(self, part: &str, kind: ValueKind) -> Result<Self, Box<ConfigProblem>> {
        let count = match self.setting.as_ref().map(|setting| &setting.node.value) {
            Some(ConfigValue::List(items)) => items.len(),
            _ => 0,
        };
        match part.parse::<usize>() {
            Ok(index) if index < count => Ok(self.then(part, PathStep::Item(index), kind)),
            _ => {
                let expected = match count {
                    0 => "nothing after it: the file has no list there".to_owned(),
                    1 => "`0`".to_owned(),
                    count => format!("`0` to `{}`", count - 1),
                };
                Err(Box::new(
                    self.missing(part, "item", &[]).with_expected(expected),
                ))
            }
        }
    }

    fn missing(&self, part: &str, noun: &str, names: &[&str]) -> ConfigProblem {
        let span = match self.prefix.as_str() {
            "" => String::new(),
            prefix => format!(" in `{prefix}`"),
        };
        let meant = nearest(part, names.iter().copied())
            .map(|name| format!("did you mean `{}`?", plain(name).to_ascii_uppercase()));
        ConfigProblem::new(format!("there is no {noun} `{part}`{span}"))
            .with_expected(listed(names.iter().copied()))
            .with_help(meant)
    }
}

fn ambiguous(part: &str, one: &str, other: &str) -> Box<ConfigProblem> {
    let message = format!("`{part}` may be `{one}` or `{other}`");
    unknown(message, "names that differ in more than `-` and `_`")
}

/// Returns the problem of a variable that names no setting.
fn unknown(message: String, expected: impl Into<String>) -> Box<ConfigProblem> {
    Box::new(ConfigProblem::new(message).with_expected(expected))
}

/// Lists some names, in the spelling of variables.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const MOST: usize = 20;
    let all: Vec<String> = names
        .map(|name| format!("`{}`", plain(name).to_ascii_uppercase()))
        .collect();
    match all.len() {
        0 => "nothing, for the file has none".to_owned(),
        count if count > MOST => format!("{}, …", all[..MOST].join(", ")),
        _ => all.join(", "),
    }
}
