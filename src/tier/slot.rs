//! What is known of one caller's tier.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use quick_cache::Equivalent;

use super::flight::Flight;
use super::lookup::Outcome;
use crate::clock::Timestamp;
use crate::sync::locked;

/// How long nothing is tried after a failure.
const PAUSE: Duration = Duration::from_secs(5);

/// What is known of one caller's tier, and the lookup under way.
#[derive(Default)]
pub(super) struct Slot {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last tier that was found.
    tier: Option<Arc<str>>,
    /// Until then it counts without another lookup.
    until: Timestamp,
    flight: Option<Arc<Flight>>,
}

/// What a look at a slot shows.
pub(super) enum Look {
    Fresh(Option<Arc<str>>),
    Flying(Arc<Flight>),
}

impl Slot {
    /// The tier, or the lookup to wait for: the one under way, or a new one.
    pub(super) fn look(&self, now: Timestamp, depart: impl FnOnce() -> Arc<Flight>) -> Look {
        let mut state = self.state();
        if now < state.until {
            return Look::Fresh(state.tier.clone());
        }
        let under_way = state.flight.take().filter(|flight| !flight.is_overdue(now));
        let flight = under_way.unwrap_or_else(depart);
        state.flight = Some(Arc::clone(&flight));
        Look::Flying(flight)
    }

    /// Takes note of what `flight` came to, unless another of its passengers has, and gives
    /// the tier that counts now.
    pub(super) fn settle(
        &self,
        flight: &Arc<Flight>,
        outcome: Outcome,
        now: Timestamp,
        remember: Duration,
    ) -> Option<Arc<str>> {
        let mut state = self.state();
        let current = |known: &Arc<Flight>| Arc::ptr_eq(known, flight);
        if state.flight.as_ref().is_some_and(current) {
            state.flight = None;
            let good_for = if outcome.is_ok() {
                remember
            } else {
                PAUSE.min(remember)
            };
            state.until = now.saturating_add(good_for);
            if let Ok(tier) = &outcome {
                state.tier.clone_from(tier);
            }
        }
        outcome.unwrap_or_else(|_| state.tier.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

/// Whose slot it is: the dimension that a caller is told apart by, and its value.
#[derive(PartialEq, Eq)]
pub(super) struct Who {
    dimension: Box<str>,
    value: Box<str>,
}

impl Hash for Who {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Sought((&self.dimension, &self.value)).hash(state);
    }
}

/// A caller whose slot is looked for, borrowed.
#[derive(Hash)]
pub(super) struct Sought<'a>(pub(super) (&'a str, &'a str));

impl Sought<'_> {
    pub(super) fn keep(&self) -> Who {
        let (dimension, value) = self.0;
        Who {
            dimension: dimension.into(),
            value: value.into(),
        }
    }
}

impl Equivalent<Who> for Sought<'_> {
    fn equivalent(&self, who: &Who) -> bool {
        self.0 == (&*who.dimension, &*who.value)
    }
}
