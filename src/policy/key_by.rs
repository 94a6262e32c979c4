//! Dimensions that a rule counts per.

use std::net::IpAddr;

use crate::error::ValidationError;
use crate::identity_types::Identity;
use crate::key::{MAX_DIMENSIONS, Subject, Value};

/// Dimensions that a rule counts per.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyBy {
    /// The primary dimension of the identity, usually `user`. Without an identity, the client IP.
    Caller,
    /// These dimensions. If there are none, all requests share one counter.
    Dimensions {
        names: Box<[Box<str>]>,
        /// The names, as in policy strings: `group+user`.
        label: Box<str>,
        /// Whether a caller that lacks a dimension is not counted. Otherwise it is counted as with
        /// [`KeyBy::Caller`].
        optional: bool,
    },
}

/// Caller of a request: its identity and its client IP.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) identity: Option<&'a Identity>,
    /// The client IP, or the network that counts as one client.
    pub(crate) ip: Option<IpAddr>,
}

impl KeyBy {
    /// The word for [`KeyBy::Caller`] in place of dimensions.
    const PER_CALLER: &str = "caller";
    /// The word for no dimensions.
    pub(super) const PER_INSTANCE: &str = "instance";

    /// Creates it from the names of dimensions, or one of the words `caller` and `instance`, and rejects
    /// invalid names. Without `names`, returns [`KeyBy::Caller`]. If `optional`, callers that lack a
    /// dimension are not counted.
    pub(super) fn new(names: Option<&[String]>, optional: bool) -> Result<Self, ValidationError> {
        let names = match names {
            None => return Ok(Self::Caller),
            Some([only]) if only == Self::PER_CALLER => return Ok(Self::Caller),
            Some([only]) if only == Self::PER_INSTANCE => &[],
            Some(names) => names,
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
            if name == Self::PER_CALLER || name == Self::PER_INSTANCE {
                let expected = format!("dimensions such as `user` and `ip`, or `{name}` alone");
                return Err(ValidationError::new("per", names.join(", "), expected));
            }
            if names[..index].contains(name) {
                return Err(ValidationError::new(
                    "per",
                    name,
                    "each dimension only once",
                ));
            }
        }
        let label = if names.is_empty() {
            "all".into()
        } else {
            names.join("+").into()
        };
        let names = names.iter().map(|name| name.as_str().into()).collect();
        Ok(Self::Dimensions {
            names,
            label,
            optional,
        })
    }

    /// Returns whether all requests share one counter.
    pub(super) fn is_shared_by_all(&self) -> bool {
        matches!(self, Self::Dimensions { names, .. } if names.is_empty())
    }

    /// Returns the subject whose counter is charged. `None` if the caller is not counted.
    #[inline]
    pub(crate) fn subject<'a>(&'a self, caller: &Caller<'a>) -> Option<Subject<'a>> {
        match self {
            Self::Caller => Some(caller.subject()),
            Self::Dimensions {
                names, optional, ..
            } => {
                let found = subject_of(names, caller);
                found.or_else(|| (!optional).then(|| caller.subject()))
            }
        }
    }

    /// Returns the subject of a check that [applies](Self::applies) to the caller.
    #[inline]
    pub(crate) fn subject_or_caller<'a>(&'a self, caller: &Caller<'a>) -> Subject<'a> {
        match self {
            Self::Caller => caller.subject(),
            Self::Dimensions { names, .. } => {
                subject_of(names, caller).unwrap_or_else(|| caller.subject())
            }
        }
    }

    /// Returns whether callers that lack a dimension are not counted.
    pub(super) const fn is_optional(&self) -> bool {
        matches!(self, Self::Dimensions { optional: true, .. })
    }

    /// Returns whether the caller is counted.
    pub(crate) fn applies<'a>(&'a self, caller: &Caller<'a>) -> bool {
        match self {
            Self::Dimensions { names, .. } if self.is_optional() => has_all(names, caller),
            Self::Caller | Self::Dimensions { .. } => true,
        }
    }

    /// Returns the first dimension that the caller lacks.
    pub(super) fn lacking<'a>(&'a self, caller: &Caller<'a>) -> Option<&'a str> {
        let Self::Dimensions { names, .. } = self else {
            return None;
        };
        let mut names = names.iter().map(|name| &**name);
        names.find(|name| caller.value_or_address(name).is_none())
    }

    /// Returns what [`label`](Self::label) returns for callers with these primary dimensions: `ip`, or those
    /// of identity sources.
    #[cfg(feature = "metrics")]
    pub(crate) fn possible_labels<'a>(&'a self, primary: &[&'a str]) -> Vec<&'a str> {
        match self {
            Self::Caller => primary.to_vec(),
            Self::Dimensions {
                names,
                label,
                optional,
            } => {
                let is_of_some = |name: &str| name != Identity::IP && name != Identity::USER;
                let may_lack = !optional && names.iter().any(|name| is_of_some(name));
                let is_unknown = **label == *Identity::USER && !primary.contains(&Identity::USER);
                let own = if is_unknown { Identity::IP } else { label };
                let callers = primary.iter().copied().filter(|_| may_lack);
                std::iter::once(own).chain(callers).collect()
            }
        }
    }

    /// Returns the dimensions of the [subject](Self::subject), as in policy strings: `user`, `ip`,
    /// `group+user`, `all`.
    #[inline]
    pub(crate) fn label<'a>(&'a self, caller: &Caller<'a>) -> &'a str {
        match self {
            Self::Caller => caller.label(),
            Self::Dimensions { label, .. }
                if **label == *Identity::USER && caller.value(label).is_none() =>
            {
                Identity::IP
            }
            Self::Dimensions { names, .. } if !has_all(names, caller) => caller.label(),
            Self::Dimensions { label, .. } => label,
        }
    }
}

#[inline]
fn has_all<'a>(names: &'a [Box<str>], caller: &Caller<'a>) -> bool {
    names
        .iter()
        .all(|name| caller.value_or_address(name).is_some())
}

/// Not inlined, so that the short and more frequent [`KeyBy::Caller`] can be inlined.
#[inline(never)]
fn subject_of<'a>(names: &'a [Box<str>], caller: &Caller<'a>) -> Option<Subject<'a>> {
    match names {
        [] => Some(Subject::all()),
        [only] => caller.value_or_address(only).map(Subject::named),
        several => {
            let mut dimensions = [("", Value::Number(0)); MAX_DIMENSIONS];
            for (slot, name) in dimensions.iter_mut().zip(several) {
                *slot = caller.value_or_address(name)?;
            }
            Subject::from_dimensions(&dimensions[..several.len()]).ok()
        }
    }
}

impl<'a> Caller<'a> {
    /// Value in place of the client IP if it is unknown. All such callers share one counter.
    const UNKNOWN: Value<'static> = Value::Text("unknown");

    #[inline]
    fn address(&self) -> Value<'a> {
        self.ip.map_or(Self::UNKNOWN, Value::Address)
    }

    /// Returns the subject for rules with [`KeyBy::Caller`].
    #[inline]
    pub(crate) fn subject(&self) -> Subject<'a> {
        match self.identity.and_then(Identity::counter_key) {
            Some((name, value)) => Subject::named((name, Value::Text(value))),
            None => Subject::named((Identity::IP, self.address())),
        }
    }

    /// Returns the subjects that an override can be set for: the caller, each dimension, the client
    /// IP.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = Subject<'a>> {
        let dimensions = self.identity.into_iter().flat_map(Identity::dimensions);
        let named = dimensions.map(|(name, value)| Subject::named((name, Value::Text(value))));
        let address = Subject::named((Identity::IP, self.address()));
        std::iter::once(self.subject())
            .chain(named)
            .chain([address])
    }

    /// Returns the name of the dimension in [`subject`](Self::subject): `user`, `ip`.
    pub(crate) fn label(&self) -> &'a str {
        let primary = self.identity.and_then(Identity::primary);
        primary.map_or(Identity::IP, |(name, _)| name)
    }

    /// Returns whether the plan for authenticated callers applies.
    #[inline]
    pub(crate) fn is_authenticated(&self) -> bool {
        self.identity.is_some_and(Identity::is_authenticated)
    }

    /// Returns the value of a dimension, with the name that keys of counters use for it.
    fn value(&self, dimension: &'a str) -> Option<(&'a str, Value<'a>)> {
        if dimension == Identity::IP {
            return Some((dimension, self.address()));
        }
        let (name, value) = self.identity?.counter_key_of(dimension)?;
        Some((name, Value::Text(value)))
    }

    /// Returns the value of a dimension, or the client IP in place of a missing `user`.
    fn value_or_address(&self, dimension: &'a str) -> Option<(&'a str, Value<'a>)> {
        match self.value(dimension) {
            None if dimension == Identity::USER => Some((Identity::IP, self.address())),
            found => found,
        }
    }
}
