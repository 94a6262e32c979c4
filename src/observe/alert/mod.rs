//! Alerts: [`Alert`].

mod evaluator;
mod thresholds;

use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::clock::Timestamp;
use crate::key::OwnedSubject;
use crate::observe::statistics::{Distinct, counter_text, serialized_subject};

pub(super) use self::evaluator::AlertEvaluator;
pub use self::thresholds::Alerts;

/// Kind of an [`Alert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AlertKind {
    /// Many denials from many addresses within ten minutes.
    DistributedAttack,
    /// Too many ordinary callers are denied:
    /// [`Statistics::ordinary_denied`](crate::observe::Statistics::ordinary_denied).
    OrdinaryCallersDenied,
    /// Many denials within an hour.
    ManyDenials,
    /// Many denials of one caller within an hour.
    Offender,
}

impl AlertKind {
    /// All kinds, most severe first.
    pub const ALL: [Self; 4] = [
        Self::DistributedAttack,
        Self::OrdinaryCallersDenied,
        Self::ManyDenials,
        Self::Offender,
    ];

    /// Returns the name in events, metrics and JSON: `distributed_attack`,
    /// `ordinary_callers_denied`, `many_denials`, `offender`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DistributedAttack => "distributed_attack",
            Self::OrdinaryCallersDenied => "ordinary_callers_denied",
            Self::ManyDenials => "many_denials",
            Self::Offender => "offender",
        }
    }

    /// Returns the severity.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self {
            Self::DistributedAttack => Severity::Critical,
            Self::OrdinaryCallersDenied => Severity::High,
            Self::ManyDenials => Severity::Medium,
            Self::Offender => Severity::Low,
        }
    }
}

impl fmt::Display for AlertKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Severity of an [`Alert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// For information. (P3)
    Low,
    /// Needs attention in working hours. (P2)
    Medium,
    /// Needs attention now. (P1)
    High,
    /// Needs the attention of the whole team now. (P0)
    Critical,
}

impl Severity {
    /// Returns the name: `low`, `medium`, `high`, `critical`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An alert that fires or is resolved. Each is delivered once per state.
///
/// `Display` and `Debug` do not show the subject. `Serialize` does, without values longer than 256
/// bytes.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Alert {
    /// The kind.
    pub kind: AlertKind,
    /// When it began to fire.
    pub since: Timestamp,
    /// When it was resolved; `None` while it fires.
    pub resolved_at: Option<Timestamp>,
    /// The measured value: a number of denials, or a share from 0 to 1.
    pub value: f64,
    /// The alert fires while the value is above this.
    pub threshold: f64,
    /// The number of addresses that were denied within ten minutes, of a
    /// [`DistributedAttack`](AlertKind::DistributedAttack).
    pub addresses: Option<Distinct>,
    /// The caller, if the alert is about one. Do not log it.
    pub subject: Option<OwnedSubject>,
}

impl Alert {
    /// Returns this alert with its instants moved by `micros` microseconds, from monotonic time to
    /// wall-clock time.
    pub(crate) fn offset_by(self, micros: i64) -> Self {
        Self {
            since: self.since.offset_by(micros),
            resolved_at: self.resolved_at.map(|at| at.offset_by(micros)),
            ..self
        }
    }

    /// Returns the severity of its kind.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.kind.severity()
    }

    /// Returns whether it fires.
    #[must_use]
    pub const fn is_firing(&self) -> bool {
        self.resolved_at.is_none()
    }
}

/// One sentence, without the subject.
impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_firing() {
            f.write_str("over: ")?;
        }
        let Self {
            value, threshold, ..
        } = self;
        match self.kind {
            AlertKind::DistributedAttack => {
                let Distinct { count, exact } = self.addresses.unwrap_or_default();
                let about = if exact { "" } else { "about " };
                write!(
                    f,
                    "{value} requests from {about}{count} addresses were denied within ten minutes, more than {threshold}"
                )
            }
            AlertKind::OrdinaryCallersDenied => write!(
                f,
                "an estimated {:.2} % of the requests of ordinary callers were denied within an hour, more than {:.2} %",
                value * 100.0,
                threshold * 100.0
            ),
            AlertKind::ManyDenials => write!(
                f,
                "{value} requests were denied within an hour, more than {threshold}"
            ),
            AlertKind::Offender => write!(
                f,
                "{value} requests of one caller were denied within an hour, more than {threshold}"
            ),
        }
    }
}

/// Hides the values of the subject.
impl fmt::Debug for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alert")
            .field("kind", &self.kind)
            .field("since", &self.since)
            .field("resolved_at", &self.resolved_at)
            .field("value", &self.value)
            .field("threshold", &self.threshold)
            .field("addresses", &self.addresses)
            .field("subject", &self.subject)
            .finish()
    }
}

impl Serialize for Alert {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let subject = self.subject.as_ref();
        let mut alert = serializer.serialize_struct("Alert", 10)?;
        alert.serialize_field("kind", self.kind.name())?;
        alert.serialize_field("severity", self.severity().name())?;
        alert.serialize_field("since", &self.since)?;
        alert.serialize_field("resolved_at", &self.resolved_at)?;
        alert.serialize_field("text", &self.to_string())?;
        alert.serialize_field("value", &self.value)?;
        alert.serialize_field("threshold", &self.threshold)?;
        alert.serialize_field("addresses", &self.addresses)?;
        alert.serialize_field("subject", &subject.and_then(serialized_subject))?;
        alert.serialize_field("counter", &subject.map(counter_text))?;
        alert.end()
    }
}
