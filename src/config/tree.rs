//! What a file says, whatever its syntax: values that know where they were said.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

/// Where something was said: a part of the file, or of a variable of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceSpan {
    pub(super) origin: SpanOrigin,
    /// In bytes of the file, or of the variable's value.
    pub(super) range: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpanOrigin {
    File,
    Variable(Arc<Variable>),
}

/// A variable of the environment.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: String,
}

/// The name, and not the value: some are secrets.
impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Variable({})", self.name)
    }
}

impl SourceSpan {
    pub(super) const fn in_file(span: Range<usize>) -> Self {
        Self {
            origin: SpanOrigin::File,
            range: span,
        }
    }

    /// A variable whose value is not to be shown.
    pub(super) fn of_variable(name: &str) -> Self {
        let variable = Variable {
            name: name.to_owned(),
            value: "…".to_owned(),
        };
        Self {
            origin: SpanOrigin::Variable(Arc::new(variable)),
            range: 0..0,
        }
    }

    /// The whole value of a variable.
    pub(super) fn in_variable(variable: &Arc<Variable>) -> Self {
        Self {
            range: 0..variable.value.len(),
            origin: SpanOrigin::Variable(Arc::clone(variable)),
        }
    }
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct ConfigNode {
    pub(super) span: SourceSpan,
    pub(super) value: ConfigValue,
}

#[derive(Clone, Debug)]
pub(super) enum ConfigValue {
    /// Only JSON has it.
    Null,
    Flag(bool),
    Whole(i64),
    Number(f64),
    Text(String),
    /// Only TOML has it; as it was written.
    Instant(String),
    List(Vec<ConfigNode>),
    Table(ConfigTable),
}

impl ConfigValue {
    /// What it is, for people, without showing it.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Flag(_) => "true or false",
            Self::Whole(_) | Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::Instant(_) => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    /// The value, for people.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Flag(flag) => format!("`{flag}`"),
            Self::Whole(number) => format!("the number {number}"),
            Self::Number(number) => format!("the number {number}"),
            Self::Text(text) => format!("the text `{}`", shortened(text)),
            Self::Instant(text) => format!("the date `{}`", shortened(text)),
            Self::Null | Self::List(_) | Self::Table(_) => self.kind().to_owned(),
        }
    }
}

/// A text that fits into a message.
pub(super) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown: String = text.chars().take(LONGEST).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Keys and values in the order of the file, each key once.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfigTable {
    pub(super) entries: Vec<(ConfigKey, ConfigNode)>,
}

#[derive(Clone, Debug)]
pub(super) struct ConfigKey {
    pub(super) name: String,
    pub(super) span: SourceSpan,
}

impl ConfigTable {
    pub(super) fn get(&self, name: &str) -> Option<&ConfigNode> {
        let found = self.entries.iter().find(|(key, _)| key.name == name);
        found.map(|(_, node)| node)
    }
}

/// The way to a value: `endpoints[3].limit`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConfigPath(String);

impl ConfigPath {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn key(&self, name: &str) -> Self {
        let mut path = self.0.clone();
        if !path.is_empty() {
            path.push('.');
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !name.is_empty() && name.bytes().all(plain) {
            path.push_str(name);
        } else {
            // Writing to a text does not fail.
            let _ = write!(path, "{:?}", shortened(name));
        }
        Self(path)
    }

    pub(super) fn item(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The way on, as somebody else has put it together.
    pub(super) fn then(&self, rest: &str) -> Self {
        match self.0.as_str() {
            "" => Self(rest.trim_start_matches('.').to_owned()),
            path => Self(format!("{path}{rest}")),
        }
    }
}

/// A value, its place, and the way to it.
#[derive(Clone, Debug)]
pub(super) struct Setting<'a> {
    pub(super) path: ConfigPath,
    pub(super) node: &'a ConfigNode,
}

impl<'a> Setting<'a> {
    pub(super) fn root(node: &'a ConfigNode) -> Self {
        let path = ConfigPath::default();
        Self { path, node }
    }

    pub(super) fn table(&self) -> Option<&'a ConfigTable> {
        match &self.node.value {
            ConfigValue::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The value of a key, if this is a table that has it.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        let node = self.table()?.get(key)?;
        let path = self.path.key(key);
        Some(Self { path, node })
    }

    /// Keys with their values, if this is a table.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a ConfigKey, Self)> {
        let entries = self.table().map_or(&[][..], |table| &table.entries);
        entries.iter().map(|(key, node)| {
            let path = self.path.key(&key.name);
            (key, Self { path, node })
        })
    }

    /// The items, if this is a list.
    pub(super) fn items(&self) -> impl Iterator<Item = Self> {
        let count = self.list().len();
        (0..count).filter_map(|index| self.item(index))
    }

    /// One of the items.
    pub(super) fn item(&self, index: usize) -> Option<Self> {
        let node = self.list().get(index)?;
        let path = self.path.item(index);
        Some(Self { path, node })
    }

    fn list(&self) -> &'a [ConfigNode] {
        match &self.node.value {
            ConfigValue::List(items) => items,
            _ => &[],
        }
    }

    /// The items of a list, or else the value itself.
    pub(super) fn one_or_more(&self) -> Vec<Self> {
        match self.node.value {
            ConfigValue::List(_) => self.items().collect(),
            _ => vec![self.clone()],
        }
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            ConfigValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) const fn flag(&self) -> Option<bool> {
        match self.node.value {
            ConfigValue::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// A whole number that is not negative.
    pub(super) fn whole(&self) -> Option<u64> {
        match self.node.value {
            ConfigValue::Whole(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "shares and multipliers, which are small"
    )]
    pub(super) const fn number(&self) -> Option<f64> {
        match self.node.value {
            ConfigValue::Whole(number) => Some(number as f64),
            ConfigValue::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Goes along a path that somebody else has put together, as far as it leads; what is left
    /// of it comes back. Names are taken as they are, dots and all.
    pub(super) fn follow(self, way: &str) -> (Self, &str) {
        let mut here = self;
        let mut rest = way;
        while !rest.is_empty() {
            let next = if let Some(inside) = rest.strip_prefix('[') {
                inside.split_once(']').and_then(|(index, rest)| {
                    let item = here.item(index.parse().ok()?)?;
                    Some((item, rest))
                })
            } else {
                let way = rest.strip_prefix('.').unwrap_or(rest);
                let ends = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
                let named = here.entries().filter_map(|(key, setting)| {
                    let rest = way.strip_prefix(key.name.as_str())?;
                    ends(rest).then_some((setting, rest))
                });
                named.min_by_key(|(_, rest)| rest.len())
            };
            let Some((setting, after)) = next else {
                break;
            };
            (here, rest) = (setting, after);
        }
        (here, rest)
    }
}
