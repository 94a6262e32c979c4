//! What a file may say: each table with its keys, and what each key takes.
//!
//! From this one description follow the [check](super::check) of a file, which variables of
//! the environment there are, and the schema for editors.

mod file;
mod rules;

pub(super) use self::file::FILE;
pub(super) use self::rules::{QUOTA, RULE};

/// A table of the file.
#[derive(Debug)]
pub(super) struct Table {
    /// Keys with a meaning of their own.
    pub(super) fields: &'static [Field],
    /// What other keys are, where people may choose them.
    pub(super) others: Option<Others>,
}

/// A key of a table.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) key: &'static str,
    pub(super) kind: Kind,
    /// What it is for, in a sentence.
    pub(super) doc: &'static str,
    pub(super) required: bool,
    /// What goes without saying, as TOML.
    pub(super) default: Option<&'static str>,
    /// What people call it who have not read the documentation.
    pub(super) aliases: &'static [&'static str],
}

/// Keys that people choose.
#[derive(Debug)]
pub(super) struct Others {
    /// What such a key names: `category`, `tier`, …
    pub(super) noun: &'static str,
    pub(super) kind: Kind,
    pub(super) doc: &'static str,
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A text; what it should say is for people.
    Text(&'static str),
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A whole number that is not negative.
    Whole(&'static str),
    /// Any number.
    Number(&'static str),
    /// `true` or `false`.
    Flag,
    /// A date with time and offset.
    Instant,
    /// A list of texts.
    Texts(&'static str),
    /// A list of some of these texts.
    Choices(&'static [&'static str]),
    /// A text, or a list of texts.
    TextOrTexts(&'static str),
    /// Which responses count.
    Outcomes,
    /// A quota, as text or table.
    Quota,
    /// One or more quotas.
    Quotas,
    /// A whole rule, or just its quotas.
    RuleOrQuotas,
    Table(&'static Table),
    /// A list of tables.
    Tables(&'static Table),
}

impl Field {
    const fn new(key: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self {
            key,
            kind,
            doc,
            required: false,
            default: None,
            aliases: &[],
        }
    }

    const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    const fn called(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }
}

impl Table {
    const fn of(fields: &'static [Field]) -> Self {
        Self {
            fields,
            others: None,
        }
    }

    const fn named(noun: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self {
            fields: &[],
            others: Some(Others { noun, kind, doc }),
        }
    }

    pub(super) fn field(&self, key: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// What a key takes, if the table has it.
    pub(super) fn kind_of(&self, key: &str) -> Option<Kind> {
        let own = self.field(key).map(|field| field.kind);
        own.or_else(|| self.others.as_ref().map(|others| others.kind))
    }
}

impl Kind {
    /// What was expected, for people.
    pub(super) fn expected(self) -> String {
        match self {
            Self::Text(what) | Self::Whole(what) | Self::Number(what) => what.to_owned(),
            Self::TextOrTexts(what) => format!("{what}, or a list of them"),
            Self::Choice(choices) => one_of(choices),
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Instant => "a date with time and offset, such as `2026-12-01T06:00:00Z`".to_owned(),
            Self::Texts(what) => format!("a list in which each is {what}"),
            Self::Choices(choices) => format!("a list in which each is {}", one_of(choices)),
            Self::Outcomes => {
                "`all`, `success`, `failure`, or a list of status codes and classes such as `[429, \"5xx\"]`"
                    .to_owned()
            }
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

/// `a`, `b` or `c`
pub(super) fn one_of(names: &[&str]) -> String {
    let ticked: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match ticked.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::rules::{ALGORITHMS, ON_STORE_FAILURE};
    use super::*;

    #[test]
    fn texts_for_people() {
        assert_eq!(one_of(&["a"]), "`a`");
        assert_eq!(one_of(&["a", "b", "c"]), "`a`, `b` or `c`");
    }

    /// Every choice that the file offers is one that the model knows.
    #[test]
    fn choices_are_known() {
        for name in ALGORITHMS {
            assert_eq!(
                crate::quota::Algorithm::from_str(name).unwrap().name(),
                *name
            );
        }
        for name in file::HEADERS {
            let set = crate::headers::HeaderSet::from_str(name).unwrap();
            assert_eq!(set.to_string(), *name);
        }
        for name in file::RESET {
            let style = crate::headers::ResetStyle::from_str(name).unwrap();
            assert_eq!(style.to_string(), *name);
        }
        for name in file::FORWARDED {
            let header = crate::identity::ForwardedHeader::from_str(name).unwrap();
            assert_eq!(header.as_str(), *name);
        }
        #[cfg(feature = "jwt")]
        for name in file::JWT_ALGORITHMS {
            let algorithm = crate::identity::JwtAlgorithm::from_str(name).unwrap();
            assert_eq!(algorithm.as_str(), *name);
        }
        assert_eq!(ON_STORE_FAILURE, ["local", "allow", "deny"]);
    }
}
