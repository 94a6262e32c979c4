//! Subjects that own their values.

use std::fmt;
use std::net::IpAddr;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Dimension, Subject, Value, ValueText};

/// A [`Subject`] that owns its names and values.
///
/// `Debug` does not show the values. `Serialize` does, as a map from names to text.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnedSubject(Box<[(Box<str>, OwnedValue)]>);

#[derive(Clone, PartialEq, Eq)]
enum OwnedValue {
    Text(Box<str>),
    Number(u64),
    Negative(i64),
    Address(IpAddr),
}

impl From<&Subject<'_>> for OwnedSubject {
    fn from(subject: &Subject<'_>) -> Self {
        let owned = subject.dimensions().map(|(name, value)| {
            let value = match value {
                Value::Text(text) => OwnedValue::Text(text.into()),
                Value::Number(number) => OwnedValue::Number(number),
                Value::Negative(number) => OwnedValue::Negative(number),
                Value::Address(address) => OwnedValue::Address(address.to_canonical()),
            };
            (name.into(), value)
        });
        Self(owned.collect())
    }
}

impl OwnedSubject {
    /// Replaces each address.
    pub(crate) fn change_addresses(&mut self, change: impl Fn(IpAddr) -> IpAddr) {
        for (_, value) in &mut self.0 {
            if let OwnedValue::Address(address) = value {
                *address = change(*address);
            }
        }
    }

    /// Returns the subject, borrowed.
    #[must_use]
    pub fn as_subject(&self) -> Subject<'_> {
        let mut subject = Subject::all();
        for (slot, (name, value)) in subject.dimensions.iter_mut().zip(&self.0) {
            let value = match value {
                OwnedValue::Text(text) => Value::Text(text),
                OwnedValue::Number(number) => Value::Number(*number),
                OwnedValue::Negative(number) => Value::Negative(*number),
                OwnedValue::Address(address) => Value::Address(*address),
            };
            *slot = Some(Dimension { name, value });
        }
        subject
    }
}

impl fmt::Debug for OwnedSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_subject().fmt(f)
    }
}

impl Serialize for OwnedSubject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.as_subject().dimensions() {
            map.serialize_entry(name, &ValueText(value).to_string())?;
        }
        map.end()
    }
}
