//! Subjects in request bodies: `{"user": "alice", "tenant": "acme"}`.

use std::fmt;
use std::net::IpAddr;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::error::ValidationError;
use crate::identity_types::Identity;
use crate::key::{MAX_DIMENSIONS, MAX_LABEL, Subject, Value, is_plain};

/// Names and values of a subject, in the order of the request.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct SubjectBody(Vec<(String, String)>);

impl SubjectBody {
    /// Returns the subject.
    pub(super) fn subject(&self) -> Subject<'_> {
        let dimensions = self.0.iter();
        let dimensions = dimensions.map(|(name, value)| (&**name, Value::Text(value)));
        let dimensions: Vec<_> = dimensions.collect();
        // The visitor limits the number of dimensions.
        Subject::from_dimensions(&dimensions).unwrap_or(Subject::all())
    }

    /// Returns the address, if there is one.
    pub(super) fn ip(&self) -> Result<Option<IpAddr>, ValidationError> {
        let text = self.get(Identity::IP);
        let ip = text.map(|text| {
            let expected = "an address, such as `203.0.113.9` or `2001:db8::1`";
            text.parse()
                .map_err(|_| ValidationError::new("ip", text.escape_debug(), expected))
        });
        ip.transpose()
    }

    /// Returns the identity; `None` if there is only an address.
    ///
    /// The primary dimension is the user, or else the first one. An issuer follows the name after an
    /// `@`, as in counters.
    pub(super) fn identity(&self) -> Option<Identity> {
        let known = || self.0.iter().filter(|(name, _)| name != Identity::IP);
        let is_user = |(name, _): &&(String, String)| before_at(name) == Identity::USER;
        let first = known().find(is_user).or_else(|| known().next())?;
        let mut identity = Identity::new(before_at(&first.0), &first.1);
        for (name, value) in known().filter(|other| *other != first) {
            identity = identity.with(name, value);
        }
        Some(match first.0.split_once('@') {
            Some((_, issuer)) => identity.of_issuer(issuer),
            None => identity,
        })
    }

    /// Rejects a subject without dimensions.
    pub(super) fn require_dimension(&self) -> Result<(), ValidationError> {
        if !self.0.is_empty() {
            return Ok(());
        }
        let expected = r#"a subject, such as `{"user": "alice"}` or `{"ip": "203.0.113.9"}`"#;
        Err(ValidationError::new("subject", "{}", expected))
    }

    /// Rejects names that no dimension has. An issuer after the name can have any character.
    pub(super) fn require_names(&self) -> Result<(), ValidationError> {
        let mut names = self.0.iter().map(|(name, _)| match name.split_once('@') {
            Some((name, _)) if !name.is_empty() => name,
            _ => name,
        });
        match names.find(|name| !is_plain(name, MAX_LABEL)) {
            Some(name) => {
                let shown: String = name.chars().take(MAX_LABEL).collect();
                let expected = "1 to 64 visible ASCII characters, without quotes and backslashes, such as `user`";
                Err(ValidationError::new(
                    "dimension name",
                    shown.escape_debug(),
                    expected,
                ))
            }
            None => Ok(()),
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let mut dimensions = self.0.iter();
        let found = dimensions.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

fn before_at(name: &str) -> &str {
    name.split_once('@').map_or(name, |(before, _)| before)
}

impl From<&Subject<'_>> for SubjectBody {
    fn from(subject: &Subject<'_>) -> Self {
        let dimensions = subject.dimensions().map(|(name, value)| {
            let value = match value {
                Value::Text(text) => text.to_owned(),
                Value::Number(number) => number.to_string(),
                Value::Negative(number) => number.to_string(),
                Value::Address(address) => address.to_string(),
            };
            (name.to_owned(), value)
        });
        Self(dimensions.collect())
    }
}

impl Serialize for SubjectBody {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for SubjectBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(SubjectVisitor)
    }
}

struct SubjectVisitor;

impl<'de> Visitor<'de> for SubjectVisitor {
    type Value = SubjectBody;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"a subject, such as {"user": "alice"}"#)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<SubjectBody, M::Error> {
        let mut dimensions = SubjectBody::default();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            if dimensions.get(&name).is_some() {
                return Err(M::Error::custom("a dimension is given twice"));
            }
            if dimensions.0.len() == MAX_DIMENSIONS {
                let most = format!("a subject has at most {MAX_DIMENSIONS} dimensions");
                return Err(M::Error::custom(most));
            }
            dimensions.0.push((name, value));
        }
        Ok(dimensions)
    }
}

/// Hides the values.
impl fmt::Debug for SubjectBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}
