//! Somebody, as operators name them: `{"user": "alice", "tenant": "acme"}`.

use std::fmt;
use std::net::IpAddr;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::refusal::Refusal;
use crate::error::ValidationError;
use crate::identity_types::Identity;
use crate::key::{MAX_DIMENSIONS, Subject, Value};

/// Dimensions and their values, in the order in which they were written.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Dimensions(Vec<(String, String)>);

impl Dimensions {
    /// Whose counter it is.
    pub(super) fn subject(&self) -> Subject<'_> {
        let dimensions = self.0.iter();
        let dimensions = dimensions.map(|(name, value)| (&**name, Value::Text(value)));
        let dimensions: Vec<_> = dimensions.collect();
        // There are never too many.
        Subject::from_dimensions(&dimensions).unwrap_or(Subject::all())
    }

    /// The address that is among them.
    pub(super) fn ip(&self) -> Result<Option<IpAddr>, ValidationError> {
        let text = self.get(Identity::IP);
        let ip = text.map(|text| {
            let expected = "an address, such as `203.0.113.9` or `2001:db8::1`";
            text.parse()
                .map_err(|_| ValidationError::new("ip", text.escape_debug(), expected))
        });
        ip.transpose()
    }

    /// Who that is; `None` if it is somebody who is only known by address.
    ///
    /// What they are known by is the user, if there is one, else whatever was named first. A
    /// name of an issuer stands behind an `@`, as counters have it.
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

    pub(super) fn require_somebody(&self) -> Result<(), Refusal> {
        if !self.0.is_empty() {
            return Ok(());
        }
        let expected = r#"somebody, such as `{"user": "alice"}` or `{"ip": "203.0.113.9"}`"#;
        Err(ValidationError::new("subject", "{}", expected).into())
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

impl From<&Subject<'_>> for Dimensions {
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

impl Serialize for Dimensions {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Dimensions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Dimensions;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"somebody, such as {"user": "alice"}"#)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Dimensions, M::Error> {
        let mut dimensions = Dimensions::default();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            if dimensions.get(&name).is_some() {
                return Err(M::Error::custom("a dimension is there twice"));
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

/// Shows which dimensions there are, and not whose they are.
impl fmt::Debug for Dimensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}
