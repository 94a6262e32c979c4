//! Look-up of the last denial of a caller.

use super::Telemetry;
use super::violations::RecentDenial;
use crate::clock::Timestamp;
use crate::key::Subject;
use crate::sync::lock;

impl Telemetry {
    /// Returns the last denial of a caller within an hour, if it is one of the latest.
    pub(crate) fn recent_denial(
        &self,
        caller: &Subject<'_>,
        now: Timestamp,
    ) -> Option<RecentDenial> {
        let caller = self.hash(caller);
        lock(&self.violations).recent_denial(caller, now).cloned()
    }

    /// Ends the denial of a caller by one of these counters, which an operator has changed.
    pub(crate) fn end_denial(&self, caller: &Subject<'_>, counters: &[u64], now: Timestamp) {
        let caller = self.hash(caller);
        lock(&self.violations).end_denial(caller, counters, now);
    }
}
