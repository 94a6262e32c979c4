//! Who was turned away most often.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::key::{OwnedSubject, Subject};

/// A caller who was turned away within the last hour, and how often.
///
/// Five hundred callers are counted at a time. While there are no more, the counts are exact.
/// Beyond that a newcomer takes the place of the one with the fewest denials, and nobody can
/// say how many of these were its own: the truth lies between [`at_least`](Self::at_least) and
/// [`denied`](Self::denied). Whoever has more than one in five hundred of all denials is
/// certainly among them.
#[derive(Clone, PartialEq, Eq)]
pub struct Offender {
    pub(in crate::observe) subject: OwnedSubject,
    pub(in crate::observe) denied: u64,
    pub(in crate::observe) at_least: u64,
    pub(in crate::observe) last_seen: Timestamp,
    pub(in crate::observe) policy: Arc<str>,
}

impl Offender {
    /// Who it is, as counters know it: by user, key or address. For the eyes of operators: do
    /// not log it.
    #[must_use]
    pub fn subject(&self) -> Subject<'_> {
        self.subject.as_subject()
    }

    /// How often it was turned away within the last hour, in steps of five minutes: at most so
    /// often.
    #[must_use]
    pub const fn denied(&self) -> u64 {
        self.denied
    }

    /// How often it was turned away for certain.
    #[must_use]
    pub const fn at_least(&self) -> u64 {
        self.at_least
    }

    /// When it was last turned away.
    #[must_use]
    pub const fn last_seen(&self) -> Timestamp {
        self.last_seen
    }

    /// The quota that turned it away last: `user:secrets:1h`.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }
}

/// Shows how often, and not who.
impl std::fmt::Debug for Offender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offender")
            .field("subject", &self.subject())
            .field("denied", &self.denied)
            .field("at_least", &self.at_least)
            .field("last_seen", &self.last_seen)
            .field("policy", &self.policy)
            .finish()
    }
}
