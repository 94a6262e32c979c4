//! What a rule counts per.

use std::net::IpAddr;

use crate::error::ValidationError;
use crate::identity_types::Identity;
use crate::key::{MAX_DIMENSIONS, Subject, Value};

/// What a rule counts per.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyBy {
    /// Whatever the caller is known by: mostly a user, or else the address.
    Caller,
    /// These; if there are none, the whole instance.
    Dimensions {
        names: Box<[Box<str>]>,
        /// Their names as policy strings say them.
        who: Box<str>,
        /// Whether those who lack one are not counted at all, or by what they are known by.
        optional: bool,
    },
}

/// Whom a request is counted for.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) identity: Option<&'a Identity>,
    /// The client's address, or the network that counts as one client.
    pub(crate) ip: Option<IpAddr>,
}

impl KeyBy {
    /// Checked, from names; if there are none given, the caller. Whoever lacks one of them is
    /// not counted if they are `optional`, else by whatever the caller is known by.
    pub(super) fn new(names: Option<&[String]>, optional: bool) -> Result<Self, ValidationError> {
        let Some(names) = names else {
            return Ok(Self::Caller);
        };
        if names.len() > MAX_DIMENSIONS {
            let expected = format!("at most {MAX_DIMENSIONS} dimensions");
            return Err(ValidationError::new("per", names.join(", "), expected));
        }
        let plain =
            |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' || byte == b'.';
        for (index, name) in names.iter().enumerate() {
            if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
                let expected = "dimensions such as `user`, `ip` or `tenant`: letters, digits, `-`, `_` and `.`";
                return Err(ValidationError::new("per", name.escape_debug(), expected));
            }
            if names[..index].contains(name) {
                return Err(ValidationError::new(
                    "per",
                    name,
                    "each dimension only once",
                ));
            }
        }
        let who = if names.is_empty() {
            "all".into()
        } else {
            names.join("+").into()
        };
        let names = names.iter().map(|name| name.as_str().into()).collect();
        Ok(Self::Dimensions {
            names,
            who,
            optional,
        })
    }

    /// Whether the whole instance shares one counter.
    pub(super) fn is_everybody(&self) -> bool {
        matches!(self, Self::Dimensions { names, .. } if names.is_empty())
    }

    /// Whose counters are meant; `None` if the caller is not counted.
    #[inline]
    pub(crate) fn subject<'a>(&'a self, caller: &Caller<'a>) -> Option<Subject<'a>> {
        match self {
            Self::Caller => Some(caller.known_by()),
            Self::Dimensions {
                names, optional, ..
            } => subject_or_caller(names, *optional, caller),
        }
    }

    /// Whether some callers are not counted.
    pub(super) const fn is_optional(&self) -> bool {
        matches!(self, Self::Dimensions { optional: true, .. })
    }

    /// Whether there is such a subject.
    pub(crate) fn applies<'a>(&'a self, caller: &Caller<'a>) -> bool {
        match self {
            Self::Dimensions { names, .. } if self.is_optional() => has_all(names, caller),
            Self::Caller | Self::Dimensions { .. } => true,
        }
    }

    /// The first dimension that the caller would need and does not have.
    pub(super) fn lacking<'a>(&'a self, caller: &Caller<'a>) -> Option<&'a str> {
        let Self::Dimensions { names, .. } = self else {
            return None;
        };
        let mut names = names.iter().map(|name| &**name);
        names.find(|name| caller.value_or_address(name).is_none())
    }

    /// Who that is, as policy strings say it: `user`, `ip`, `group+user`, `all`.
    #[inline]
    pub(crate) fn who<'a>(&'a self, caller: &Caller<'a>) -> &'a str {
        match self {
            Self::Caller => caller.who(),
            Self::Dimensions { who, .. }
                if **who == *Identity::USER && caller.value(who).is_none() =>
            {
                Identity::IP
            }
            Self::Dimensions { names, .. } if !has_all(names, caller) => caller.who(),
            Self::Dimensions { who, .. } => who,
        }
    }
}

#[inline]
fn has_all<'a>(names: &'a [Box<str>], caller: &Caller<'a>) -> bool {
    names
        .iter()
        .all(|name| caller.value_or_address(name).is_some())
}

/// On its own, so that the usual case, which is short, is put where it is asked for.
#[inline(never)]
fn subject_or_caller<'a>(
    names: &'a [Box<str>],
    optional: bool,
    caller: &Caller<'a>,
) -> Option<Subject<'a>> {
    match subject_of(names, caller) {
        None if !optional => Some(caller.known_by()),
        found => found,
    }
}

#[inline]
fn subject_of<'a>(names: &'a [Box<str>], caller: &Caller<'a>) -> Option<Subject<'a>> {
    match names {
        [] => Some(Subject::all()),
        [only] => caller.value_or_address(only).map(Subject::named),
        several => {
            let mut dimensions = [("", Value::Number(0)); MAX_DIMENSIONS];
            for (place, name) in dimensions.iter_mut().zip(several) {
                *place = caller.value_or_address(name)?;
            }
            Subject::from_dimensions(&dimensions[..several.len()]).ok()
        }
    }
}

impl<'a> Caller<'a> {
    /// Stands in for the address of those who have none: all of them share it.
    const UNKNOWN: Value<'static> = Value::Text("unknown");

    #[inline]
    fn address(&self) -> Value<'a> {
        self.ip.map_or(Self::UNKNOWN, Value::Address)
    }

    /// Whom rules count that do not say otherwise.
    #[inline]
    pub(crate) fn known_by(&self) -> Subject<'a> {
        match self.identity.and_then(Identity::counter_key) {
            Some((name, value)) => Subject::named((name, Value::Text(value))),
            None => Subject::named((Identity::IP, self.address())),
        }
    }

    /// Everything that a limit can be set for at run time: the caller, then each dimension.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = Subject<'a>> {
        let dimensions = self.identity.into_iter().flat_map(Identity::dimensions);
        let named = dimensions.map(|(name, value)| Subject::named((name, Value::Text(value))));
        let address = Subject::named((Identity::IP, self.address()));
        std::iter::once(self.known_by())
            .chain(named)
            .chain([address])
    }

    /// What the caller is known by.
    fn who(&self) -> &'a str {
        let primary = self.identity.and_then(Identity::primary);
        primary.map_or(Identity::IP, |(name, _)| name)
    }

    /// Whether the caller has the plan of authenticated callers.
    #[inline]
    pub(crate) fn is_authenticated(&self) -> bool {
        self.identity.is_some_and(Identity::is_authenticated)
    }

    /// A dimension, by the name that counters know it by, and its value.
    fn value(&self, dimension: &'a str) -> Option<(&'a str, Value<'a>)> {
        if dimension == Identity::IP {
            return Some((dimension, self.address()));
        }
        let (name, value) = self.identity?.counter_key_of(dimension)?;
        Some((name, Value::Text(value)))
    }

    /// One dimension; for users who are none, the address.
    fn value_or_address(&self, dimension: &'a str) -> Option<(&'a str, Value<'a>)> {
        match self.value(dimension) {
            None if dimension == Identity::USER => Some((Identity::IP, self.address())),
            found => found,
        }
    }
}
