//! Callers with the most denials: [`Offender`].

use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::clock::Timestamp;
use crate::key::OwnedSubject;
use crate::observe::truncate::{MAX_TEXT, truncate};

/// A caller that was denied within the last hour.
///
/// 500 callers are counted at a time, exactly as long as there are no more. Beyond that a new caller
/// replaces the one with the fewest denials and inherits its count, so that the true number is
/// between [`at_least`](Self::at_least) and [`denied`](Self::denied). A caller with more than one
/// in 500 of all denials is always among them.
///
/// `Debug` does not show the subject. `Serialize` does, without values longer than 256 bytes.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offender {
    /// The subject of the caller. Do not log it.
    pub subject: OwnedSubject,
    /// Upper bound of its denials within the last hour, in steps of five minutes.
    pub denied: u64,
    /// Lower bound of its denials.
    pub at_least: u64,
    /// Its last denial.
    pub last_seen: Timestamp,
    /// The quota of its last denial: `user:secrets:1h`.
    pub policy: Arc<str>,
}

/// Hides the values of the subject.
impl fmt::Debug for Offender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offender")
            .field("subject", &self.subject)
            .field("denied", &self.denied)
            .field("at_least", &self.at_least)
            .field("last_seen", &self.last_seen)
            .field("policy", &self.policy)
            .finish()
    }
}

impl Serialize for Offender {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut offender = serializer.serialize_struct("Offender", 6)?;
        offender.serialize_field("subject", &serialized_subject(&self.subject))?;
        offender.serialize_field("counter", &counter_text(&self.subject))?;
        offender.serialize_field("denied", &self.denied)?;
        offender.serialize_field("at_least", &self.at_least)?;
        offender.serialize_field("last_seen", &self.last_seen)?;
        offender.serialize_field("policy", &truncate(&self.policy, MAX_TEXT))?;
        offender.end()
    }
}

/// Returns the text of a subject in JSON, `user=alice`, cut at 256 bytes.
pub(in crate::observe) fn counter_text(subject: &OwnedSubject) -> String {
    truncate(&subject.as_subject().to_text(), MAX_TEXT).into_owned()
}

/// Returns the subject, or `None` if its text would be cut: a part of it is another subject.
pub(in crate::observe) fn serialized_subject(subject: &OwnedSubject) -> Option<&OwnedSubject> {
    (subject.as_subject().to_text().len() <= MAX_TEXT).then_some(subject)
}
