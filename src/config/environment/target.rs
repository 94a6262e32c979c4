//! Which part of a file a variable names.

use crate::config::suggest::{nearest, plain};
use crate::config::table::{FILE, QUOTA, RULE, TableSpec, ValueKind, is_quota_table};
use crate::config::tree::{ConfigNode, ConfigValue, Setting};

/// A part of the way from the root to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    Key(String),
    Item(usize),
}

/// Why a variable names nothing.
pub(super) struct UnknownVariable {
    pub(super) message: String,
    pub(super) expected: String,
    pub(super) meant: Option<String>,
}

/// What a name such as `CATEGORIES__SECRETS__LIMIT` leads to, and what can be there.
///
/// Keys of the file are found whatever their case, and `_` stands for whatever in them is
/// neither letter nor digit. Keys that the file's author has chosen have to be there, as have
/// items of lists.
pub(super) fn find(
    name: &str,
    root: &ConfigNode,
) -> Result<(Vec<PathStep>, ValueKind), UnknownVariable> {
    let mut here = VariableLookup {
        setting: Some(Setting::root(root)),
        kind: ValueKind::Table(&FILE),
        steps: Vec::new(),
        said: String::new(),
    };
    for part in name.split("__") {
        here = here.step(part)?;
    }
    match here.kind {
        ValueKind::Table(table) => {
            let keys = table.names().into_iter();
            Err(UnknownVariable {
                message: format!("`{}` is a table", here.said),
                expected: format!("one of its keys: {}", listed(keys)),
                meant: None,
            })
        }
        ValueKind::Tables(_) => Err(UnknownVariable {
            message: format!("`{}` is a list of tables", here.said),
            expected: "a number or a name, and a key".to_owned(),
            meant: None,
        }),
        kind => Ok((here.steps, kind)),
    }
}

/// On the way.
struct VariableLookup<'a> {
    /// What the file has here, if it has.
    setting: Option<Setting<'a>>,
    kind: ValueKind,
    steps: Vec<PathStep>,
    /// What was gone so far, as it was written.
    said: String,
}

impl<'a> VariableLookup<'a> {
    fn step(self, part: &str) -> Result<Self, UnknownVariable> {
        match self.kind {
            ValueKind::Table(table) => self.key(part, table),
            ValueKind::Tables(table) => self.table_in_list(part, table),
            ValueKind::RuleOrQuotas if self.has_table() => {
                let is_quota = self.setting.as_ref().is_some_and(is_quota_table);
                self.key(part, if is_quota { &QUOTA } else { &RULE })
            }
            ValueKind::Quota | ValueKind::Quotas if self.has_table() => self.key(part, &QUOTA),
            ValueKind::Quotas | ValueKind::RuleOrQuotas => self.item(part, ValueKind::Quota),
            ValueKind::Texts(what) | ValueKind::TextOrTexts(what) => {
                self.item(part, ValueKind::Text(what))
            }
            ValueKind::Choices(choices) => self.item(part, ValueKind::Choice(choices)),
            ValueKind::Outcomes => self.item(part, ValueKind::Outcomes),
            _ => Err(UnknownVariable {
                message: format!("`{}` has no parts", self.said),
                expected: format!("nothing after `{}`", self.said),
                meant: None,
            }),
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
        if !self.said.is_empty() {
            self.said.push_str("__");
        }
        self.said.push_str(part);
        self.steps.push(step);
        self.kind = kind;
        self
    }

    /// A key of a table: one with a meaning, or one that the file has.
    fn key(self, part: &str, table: &'static TableSpec) -> Result<Self, UnknownVariable> {
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
                Err(self.missing(part, noun, &names))
            }
        }
    }

    /// A table in a list, by its number, or by the name that it has.
    fn table_in_list(self, part: &str, table: &'static TableSpec) -> Result<Self, UnknownVariable> {
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
        Err(UnknownVariable {
            expected,
            ..self.missing(part, "item", &names)
        })
    }

    /// An item of a list, by its number.
    fn item(self, part: &str, kind: ValueKind) -> Result<Self, UnknownVariable> {
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
                Err(UnknownVariable {
                    expected,
                    ..self.missing(part, "item", &[])
                })
            }
        }
    }

    fn missing(&self, part: &str, noun: &str, names: &[&str]) -> UnknownVariable {
        let span = match self.said.as_str() {
            "" => String::new(),
            said => format!(" in `{said}`"),
        };
        UnknownVariable {
            message: format!("there is no {noun} `{part}`{span}"),
            expected: listed(names.iter().copied()),
            meant: nearest(part, names.iter().copied())
                .map(|name| format!("did you mean `{}`?", plain(name).to_ascii_uppercase())),
        }
    }
}

fn ambiguous(part: &str, one: &str, other: &str) -> UnknownVariable {
    UnknownVariable {
        message: format!("`{part}` may be `{one}` or `{other}`"),
        expected: "names that differ in more than `-` and `_`".to_owned(),
        meant: None,
    }
}

/// A few names, as variables have them.
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
