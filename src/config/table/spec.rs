//! Descriptions of tables, keys and values.

/// Creates a list of [`KeySpec`]s. The doc comment of a key is its description in the guide and in
/// the schema.
macro_rules! keys {
    ($(
        $(#[doc = $doc:literal])+
        $key:literal: $kind:expr
        $(, default $default:literal)?
        $(, aliases [$($alias:literal),+])?;
    )+) => {
        &[$($crate::config::table::KeySpec {
            key: $key,
            kind: $kind,
            doc: concat!($($doc),+).trim_ascii_start(),
            default: keys!(@default $($default)?),
            aliases: &[$($($alias),+)?],
        }),+]
    };
    (@default) => { None };
    (@default $default:literal) => { Some($default) };
}
pub(super) use keys;

/// Keys of one table.
#[derive(Debug)]
pub(in crate::config) struct TableSpec {
    own: &'static [KeySpec],
    /// Keys that several tables have.
    shared: &'static [KeySpec],
    required: &'static [&'static str],
    /// Keys that the author of the file chooses.
    pub(in crate::config) chosen: Option<ChosenKeys>,
}

/// Key with a fixed name.
#[derive(Debug)]
pub(in crate::config) struct KeySpec {
    pub(in crate::config) key: &'static str,
    pub(in crate::config) kind: ValueKind,
    /// Description, one or two sentences.
    pub(in crate::config) doc: &'static str,
    /// Default, as TOML.
    pub(in crate::config) default: Option<&'static str>,
    /// Other names that authors are likely to try.
    pub(in crate::config) aliases: &'static [&'static str],
}

/// Keys whose names the author chooses: of categories, tiers, dimensions.
#[derive(Debug)]
pub(in crate::config) struct ChosenKeys {
    /// What a key names: `category`, `tier`, …
    pub(in crate::config) noun: &'static str,
    pub(in crate::config) kind: ValueKind,
    pub(in crate::config) doc: &'static str,
}

/// Kind of value that a key takes. The text describes what is expected.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) enum ValueKind {
    Text(&'static str),
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// Whole number that is not negative.
    Whole(&'static str),
    Number(&'static str),
    Flag,
    /// Date with time and offset.
    Time,
    Texts(&'static str),
    /// List of some of these texts.
    Choices(&'static [&'static str]),
    TextOrTexts(&'static str),
    /// One of the texts, or a list whose items are described by the second value.
    ChoiceOrTexts(&'static [&'static str], &'static str),
    /// Responses that count.
    Outcomes,
    /// Status code, or class of status codes.
    Status,
    /// Quota as text or table.
    Quota,
    /// One or more quotas.
    Quotas,
    /// Table of a rule, or its quotas alone.
    RuleOrQuotas,
    Table(&'static TableSpec),
    /// List of tables.
    Tables(&'static TableSpec),
}

impl TableSpec {
    pub(super) const fn new(keys: &'static [KeySpec]) -> Self {
        Self {
            own: keys,
            shared: &[],
            required: &[],
            chosen: None,
        }
    }

    /// A table whose keys are all chosen by the author.
    pub(super) const fn chosen(noun: &'static str, kind: ValueKind, doc: &'static str) -> Self {
        Self::new(&[]).with_chosen(noun, kind, doc)
    }

    pub(super) const fn with_chosen(
        mut self,
        noun: &'static str,
        kind: ValueKind,
        doc: &'static str,
    ) -> Self {
        self.chosen = Some(ChosenKeys { noun, kind, doc });
        self
    }

    pub(super) const fn with_shared(mut self, keys: &'static [KeySpec]) -> Self {
        self.shared = keys;
        self
    }

    pub(super) const fn require(mut self, keys: &'static [&'static str]) -> Self {
        self.required = keys;
        self
    }

    /// Returns the keys with fixed names.
    pub(in crate::config) fn keys(&self) -> impl Iterator<Item = &'static KeySpec> + Clone + use<> {
        self.own.iter().chain(self.shared)
    }

    pub(in crate::config) fn names(&self) -> Vec<&'static str> {
        self.keys().map(|key| key.key).collect()
    }

    pub(in crate::config) fn is_required(&self, key: &KeySpec) -> bool {
        self.required.contains(&key.key)
    }

    pub(in crate::config) fn key(&self, name: &str) -> Option<&'static KeySpec> {
        self.keys().find(|key| key.key == name)
    }

    /// Returns what a key takes, if the table has the key.
    pub(in crate::config) fn kind_of(&self, name: &str) -> Option<ValueKind> {
        let own = self.key(name).map(|key| key.kind);
        own.or_else(|| self.chosen.as_ref().map(|chosen| chosen.kind))
    }
}

impl ValueKind {
    /// Returns the kind of the items, if the value can be a list.
    pub(in crate::config) const fn item(self) -> Option<Self> {
        match self {
            Self::Texts(what) | Self::TextOrTexts(what) | Self::ChoiceOrTexts(_, what) => {
                Some(Self::Text(what))
            }
            Self::Choices(choices) => Some(Self::Choice(choices)),
            Self::Outcomes => Some(Self::Status),
            Self::Quotas | Self::RuleOrQuotas => Some(Self::Quota),
            Self::Tables(spec) => Some(Self::Table(spec)),
            _ => None,
        }
    }

    /// Returns what is expected, for messages.
    pub(in crate::config) fn expected(self) -> String {
        match self {
            Self::Text(what) | Self::Whole(what) | Self::Number(what) => what.to_owned(),
            Self::TextOrTexts(what) => format!("{what}, or a list of them"),
            Self::ChoiceOrTexts(choices, what) => {
                format!("{}, or a list in which each is {what}", quoted_list(choices))
            }
            Self::Choice(choices) => quoted_list(choices),
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Time => "a date with time and offset, such as `2026-12-01T06:00:00Z`".to_owned(),
            Self::Texts(what) => format!("a list in which each is {what}"),
            Self::Choices(choices) => format!("a list in which each is {}", quoted_list(choices)),
            Self::Outcomes => {
                "`all`, `success`, `failure`, or a list of status codes and classes such as `[429, \"5xx\"]`"
                    .to_owned()
            }
            Self::Status => "a status code such as `429`, or a class such as `\"5xx\"`".to_owned(),
            Self::Quota => {
                "a quota such as `\"500/hour\"`, or a table such as `{ limit = 500, window = \"1h\" }`"
                    .to_owned()
            }
            Self::Quotas => {
                "a quota such as `\"500/hour\"`, a table such as `{ limit = 500, window = \"1h\" }`, or a list of these"
                    .to_owned()
            }
            Self::RuleOrQuotas => {
                "a quota such as `\"500/hour\"`, a list of quotas, or a table with `limit`".to_owned()
            }
            Self::Table(_) => "a table".to_owned(),
            Self::Tables(_) => "a list of tables".to_owned(),
        }
    }
}

/// Formats names as `` `a`, `b` or `c` ``.
pub(in crate::config) fn quoted_list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_with_or() {
        assert_eq!(quoted_list(&["a"]), "`a`");
        assert_eq!(quoted_list(&["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
