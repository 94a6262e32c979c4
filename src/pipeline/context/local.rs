//! What becomes of a case while the store cannot answer.

use std::ops::Deref;
use std::sync::Arc;

use super::{Overridden, RequestContext};
use crate::error::StoreErrorKind;
use crate::pipeline::Snapshot;
use crate::policy::{OnStoreFailure, PlannedCheck};

impl<R: Deref<Target = Snapshot>> RequestContext<R> {
    /// What of it is counted in memory while the store cannot answer; `None` if nothing is.
    pub(in crate::pipeline) fn locally(&self, why: StoreErrorKind) -> Option<Self>
    where
        R: Clone,
    {
        let mut applying = 0;
        for (index, entry) in self.entries() {
            // Who is blocked is blocked, and it takes no store to know that.
            let is_blocked = self.quota(index, entry).is_blocked();
            let is_local = is_blocked || self.is_counted_locally(entry, why);
            applying |= u8::from(is_local) << index;
        }
        (applying != 0).then(|| {
            let mut local = self.clone();
            local.charges.applying = applying;
            local.local = true;
            local.with_local_quotas()
        })
    }

    /// Whether an entry is counted in memory meanwhile.
    fn is_counted_locally(&self, entry: &PlannedCheck, why: StoreErrorKind) -> bool {
        match self.rules.policy.on_store_failure(self.plan(), entry) {
            OnStoreFailure::Local => true,
            // Letting requests through is for outages, which end. A wrong password does not, and
            // nobody has said that there should be no limit until somebody reads the log.
            OnStoreFailure::Allow => why == StoreErrorKind::Refused,
            OnStoreFailure::Deny => false,
        }
    }

    /// With the share of each quota that this process may admit on its own.
    fn with_local_quotas(mut self) -> Self {
        let policy = &self.rules.policy;
        if policy.has_whole_local_share() {
            return self;
        }
        let mut shares = Overridden::default();
        for (index, entry) in self.entries() {
            let quota = policy.local_share_of(self.quota(index, entry));
            shares[index] = self.with_label(entry, quota);
        }
        self.overridden = Some(Arc::new(shares));
        self
    }

    /// The same, decided where `local` was.
    pub(in crate::pipeline) fn made_local<L>(mut self, local: &RequestContext<L>) -> Self {
        self.charges.applying = local.charges.applying;
        self.local = local.local;
        self.overridden.clone_from(&local.overridden);
        self
    }

    pub(in crate::pipeline) const fn is_local(&self) -> bool {
        self.local
    }

    /// Whether one of its rules must not go on uncounted while the store cannot answer.
    pub(in crate::pipeline) fn needs_store(&self) -> bool {
        let policy = &self.rules.policy;
        self.entries()
            .any(|(_, entry)| policy.on_store_failure(self.plan(), entry) == OnStoreFailure::Deny)
    }
}
