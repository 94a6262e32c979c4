//! Single flight: one tier look-up for all requests that wait for it.

use futures_util::FutureExt as _;
use futures_util::future::Shared;

use super::lookup::Lookup;
use crate::clock::Timestamp;

/// A look-up in progress. It is driven by the requests that wait for it, without a task.
pub(super) struct Flight {
    lookup: Shared<Lookup>,
    deadline: Timestamp,
}

impl Flight {
    pub(super) fn new(lookup: Lookup, deadline: Timestamp) -> Self {
        Self {
            lookup: lookup.shared(),
            deadline,
        }
    }

    /// Returns whether the deadline has passed. No request waits for the look-up any more then.
    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        now >= self.deadline
    }

    /// Returns a future of the outcome. A panic of the look-up is an outcome, too.
    pub(super) fn join(&self) -> Shared<Lookup> {
        self.lookup.clone()
    }
}
