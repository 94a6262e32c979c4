//! Maintenance: limits that are switched off for some time.

use super::RequestPipeline;
use crate::clock::Timestamp;
use crate::error::{Error, ValidationError};
use crate::observe;
use crate::store::{Override, StoreFuture, no_overrides};

impl RequestPipeline {
    /// Switches all limits off until then.
    pub(crate) fn start_maintenance(&self, until: Timestamp) -> StoreFuture<(), Error> {
        let now = self.wall_now();
        if until <= now {
            let expected = format!("an instant that is to come; it is {now} now");
            return StoreFuture::ready(Err(
                ValidationError::new("maintenance", until, expected).into()
            ));
        }
        let Some(store) = self.store.overrides() else {
            return StoreFuture::ready(Err(no_overrides().into()));
        };
        let set = store.set(Override::maintenance(until));
        set.map(move |set| {
            set?;
            observe::maintenance(Some(until));
            Ok(())
        })
    }

    /// Switches the limits on again. Returns whether they were off.
    pub(crate) fn end_maintenance(&self) -> StoreFuture<bool, Error> {
        let subject = Override::maintenance_subject();
        let Some(store) = self.store.overrides() else {
            return StoreFuture::ready(Ok(false));
        };
        let removed = store.remove(&subject, Override::MAINTENANCE);
        removed.map(|removed| {
            let removed = removed?;
            if removed {
                observe::maintenance(None);
            }
            Ok(removed)
        })
    }

    /// Returns until when the limits are off, and whether the policy has set it. Of two, the later
    /// applies.
    pub(crate) fn maintenance_until(&self) -> Option<(Timestamp, bool)> {
        let now = self.wall_now();
        let snapshot = self.snapshot.load();
        let by_policy = snapshot.policy.maintenance_until();
        let by_policy = by_policy.filter(|until| now < *until);
        let overrides = self.override_table();
        let by_operator = overrides.and_then(|overrides| overrides.maintenance_until(now));
        let by_policy = by_policy.map(|until| (until, true));
        by_policy.max(by_operator.map(|until| (until, false)))
    }
}
