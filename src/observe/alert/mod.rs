//! What an operator should be told at once: [`Alert`].

mod evaluator;
mod thresholds;

use std::fmt;

use crate::clock::Timestamp;
use crate::key::{OwnedSubject, Subject};

pub(super) use self::evaluator::AlertEvaluator;
pub use self::thresholds::Alerts;

/// What an alert is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AlertKind {
    /// Very many denials from many addresses in ten minutes.
    DistributedAttack,
    /// Too many ordinary callers are turned away:
    /// [`Statistics::ordinary_denied`](crate::observe::Statistics::ordinary_denied).
    OrdinaryCallersDenied,
    /// Many denials in an hour.
    ManyDenials,
    /// Many denials of one caller in an hour.
    Offender,
}

impl AlertKind {
    /// All of them, the most severe first.
    pub const ALL: [Self; 4] = [
        Self::DistributedAttack,
        Self::OrdinaryCallersDenied,
        Self::ManyDenials,
        Self::Offender,
    ];

    /// What to call it, also in metrics: `distributed_attack`, `ordinary_callers_denied`,
    /// `many_denials`, `offender`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DistributedAttack => "distributed_attack",
            Self::OrdinaryCallersDenied => "ordinary_callers_denied",
            Self::ManyDenials => "many_denials",
            Self::Offender => "offender",
        }
    }

    /// How bad it is.
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

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Somebody should know. (P3)
    Low,
    /// Somebody should look, in working hours. (P2)
    Medium,
    /// Somebody should look now. (P1)
    High,
    /// Everybody should look now. (P0)
    Critical,
}

impl Severity {
    /// What to call it: `low`, `medium`, `high`, `critical`.
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

/// Something that an operator should be told: that it begins, or that it is over.
///
/// Each is told once when it begins and once when it is over. `Display` says it in a sentence
/// that names nobody.
#[derive(Clone, PartialEq)]
pub struct Alert {
    pub(in crate::observe) kind: AlertKind,
    pub(in crate::observe) since: Timestamp,
    pub(in crate::observe) resolved_at: Option<Timestamp>,
    pub(in crate::observe) value: f64,
    pub(in crate::observe) threshold: f64,
    pub(in crate::observe) subject: Option<OwnedSubject>,
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

    /// What it is about.
    #[must_use]
    pub const fn kind(&self) -> AlertKind {
        self.kind
    }

    /// How bad it is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.kind.severity()
    }

    /// When it began.
    #[must_use]
    pub const fn since(&self) -> Timestamp {
        self.since
    }

    /// Whether it goes on.
    #[must_use]
    pub const fn is_firing(&self) -> bool {
        self.resolved_at.is_none()
    }

    /// When it was over.
    #[must_use]
    pub const fn resolved_at(&self) -> Option<Timestamp> {
        self.resolved_at
    }

    /// What was measured: a number of denials, or a share from 0 to 1.
    #[must_use]
    pub const fn value(&self) -> f64 {
        self.value
    }

    /// What it has to be above to fire.
    #[must_use]
    pub const fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Who it is about, if it is about one caller. For the eyes of operators: do not log it.
    #[must_use]
    pub fn subject(&self) -> Option<Subject<'_>> {
        self.subject.as_ref().map(OwnedSubject::as_subject)
    }
}

/// In a sentence, without naming anybody.
impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_firing() {
            f.write_str("over: ")?;
        }
        let Self {
            value, threshold, ..
        } = self;
        match self.kind {
            AlertKind::DistributedAttack => write!(
                f,
                "{value} requests from many addresses were denied within ten minutes, more than {threshold}"
            ),
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

/// Shows whether it is about somebody, and not about whom.
impl fmt::Debug for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alert")
            .field("kind", &self.kind)
            .field("since", &self.since)
            .field("resolved_at", &self.resolved_at)
            .field("value", &self.value)
            .field("threshold", &self.threshold)
            .field("subject", &self.subject())
            .finish()
    }
}
