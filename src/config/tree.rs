//! The values of a file with their positions, independent of its syntax.

use std::fmt::Write;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

/// Position of a value: a range of the file or of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceSpan {
    pub(super) origin: SpanOrigin,
    /// Bytes of the file, or of the value of the variable.
    pub(super) range: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpanOrigin {
    File,
    Variable(Arc<Variable>),
}

/// An environment variable.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: String,
}

/// Shows the name only, because the value may be a secret.
impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Variable({})", self.name)
    }
}

impl SourceSpan {
    pub(super) const fn in_file(range: Range<usize>) -> Self {
        Self {
            origin: SpanOrigin::File,
            range,
        }
    }

    /// A variable whose value must not be shown.
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

/// A value and its position.
#[derive(Clone, Debug)]
pub(super) struct ConfigNode {
    pub(super) span: SourceSpan,
    pub(super) value: ConfigValue,
}

#[derive(Clone, Debug)]
pub(super) enum ConfigValue {
    /// Only in JSON.
    Null,
    Flag(bool),
    Whole(i64),
    Number(f64),
    Text(String),
    /// Only in TOML; as it was written.
    Time(String),
    List(Vec<ConfigNode>),
    Table(ConfigTable),
}

impl ConfigValue {
    /// Returns the name of the kind.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Flag(_) => "true or false",
            Self::Whole(_) | Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::Time(_) => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    /// Returns the value for messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Flag(flag) => format!("`{flag}`"),
            Self::Whole(number) => format!("the number {number}"),
            Self::Number(number) => format!("the number {number}"),
            Self::Text(text) => format!("the text `{}`", shortened(text)),
            Self::Time(text) => format!("the date `{}`", shortened(text)),
            Self::Null | Self::List(_) | Self::Table(_) => self.kind().to_owned(),
        }
    }
}

/// Cuts a text to the length of a message.
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

/// Path of a value: `endpoints[3].limit`.
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
            // Writing to a string cannot fail.
            let _ = write!(path, "{:?}", shortened(name));
        }
        Self(path)
    }

    pub(super) fn item(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// Appends the rest of a path.
    pub(super) fn then(&self, rest: &str) -> Self {
        match self.0.as_str() {
            "" => Self(rest.trim_start_matches('.').to_owned()),
            path => Self(format!("{path}{rest}")),
        }
    }
}

/// A value of the tree and its path.
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

    /// Returns the value of a key, if this is a table that has it.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        let node = self.table()?.get(key)?;
        let path = self.path.key(key);
        Some(Self { path, node })
    }

    /// Returns keys and values, if this is a table.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a ConfigKey, Self)> {
        let entries = self.table().map_or(&[][..], |table| &table.entries);
        entries.iter().map(|(key, node)| {
            let path = self.path.key(&key.name);
            (key, Self { path, node })
        })
    }

    /// Returns the items, if this is a list.
    pub(super) fn items(&self) -> impl Iterator<Item = Self> {
        let count = self.list().len();
        (0..count).filter_map(|index| self.item(index))
    }

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

    /// Returns the items of a list, or else the value itself.
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

    /// Returns the text of a key.
    pub(super) fn text_of(&self, key: &str) -> Option<&'a str> {
        self.get(key)?.text()
    }

    /// Returns the flag of a key.
    pub(super) fn flag_of(&self, key: &str) -> Option<bool> {
        self.get(key)?.flag()
    }

    /// Returns the text or the texts of a key. What is no text is empty, so that indexes stay
    /// those of the file.
    pub(super) fn texts_of(&self, key: &str) -> Vec<String> {
        let items = self.get(key).map(|value| value.one_or_more());
        let text = |item: &Self| item.text().unwrap_or_default().to_owned();
        items.iter().flatten().map(text).collect()
    }

    /// Returns the parsed text of a key. What cannot be parsed was reported by the check.
    pub(super) fn parse<T: FromStr>(&self, key: &str) -> Option<T> {
        self.text_of(key)?.parse().ok()
    }

    pub(super) const fn flag(&self) -> Option<bool> {
        match self.node.value {
            ConfigValue::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// Returns a whole number that is not negative.
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

    /// Follows the path of a [`ValidationError`](crate::error::ValidationError) as far as the tree
    /// has it. Returns the setting and the rest of the path. Names may contain dots.
    pub(super) fn follow(self, path: &str) -> (Self, &str) {
        let mut here = self;
        let mut rest = path;
        while !rest.is_empty() {
            let next = if let Some(inside) = rest.strip_prefix('[') {
                inside.split_once(']').and_then(|(index, rest)| {
                    let item = here.item(index.parse().ok()?)?;
                    Some((item, rest))
                })
            } else {
                let name_and_rest = rest.strip_prefix('.').unwrap_or(rest);
                let ends = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
                let named = here.entries().filter_map(|(key, setting)| {
                    let rest = name_and_rest.strip_prefix(key.name.as_str())?;
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
