//! Names of quotas, created when they are first needed.

use std::sync::{Arc, OnceLock};

use crate::error::ValidationError;
use crate::headers::QuotaName;
use crate::identity_types::Identity;
use crate::key::UNNAMED_LABEL;
use crate::observe::{DecisionCounters, Telemetry};
use crate::policy::Policy;

/// Names by key name (`user`, `ip`, …), quota and tier.
#[derive(Debug)]
pub(super) struct QuotaNames {
    /// One for each key name. There are few: they come from the policy and from identity sources, not
    /// from requests. The last stands for names that do not fit or cannot be written in a header.
    slots: [OnceLock<QuotaNameSlot>; SLOTS],
    /// Found without a search, because nearly all quotas count per client IP or user.
    addresses: QuotaNameSlot,
    users: QuotaNameSlot,
    quotas: usize,
    tiers: usize,
    telemetry: Arc<Telemetry>,
}

/// Name and statistics of one quota.
#[derive(Debug)]
pub(super) struct QuotaMetadata {
    pub(super) name: QuotaName,
    pub(super) counters: Arc<DecisionCounters>,
}

#[derive(Debug)]
struct QuotaNameSlot {
    label: Box<str>,
    metadata: Box<[OnceLock<QuotaMetadata>]>,
}

const SLOTS: usize = 16;

impl QuotaNames {
    pub(super) fn new(policy: &Policy, telemetry: &Arc<Telemetry>) -> Self {
        let (quotas, tiers) = (policy.quotas().len(), policy.tiers().len());
        Self {
            slots: [const { OnceLock::new() }; SLOTS],
            addresses: QuotaNameSlot::new(Identity::IP, quotas * tiers),
            users: QuotaNameSlot::new(Identity::USER, quotas * tiers),
            quotas,
            tiers,
            telemetry: Arc::clone(telemetry),
        }
    }

    /// Returns the metadata of a quota for a key name and a tier.
    #[inline]
    pub(super) fn get(
        &self,
        policy: &Policy,
        label: &str,
        quota: usize,
        tier: usize,
    ) -> Result<&QuotaMetadata, ValidationError> {
        let slot = self.slot(label);
        match slot.metadata[quota * self.tiers + tier].get() {
            Some(known) => Ok(known),
            None => self.create(slot, policy, quota, tier),
        }
    }

    #[cold]
    fn create<'a>(
        &'a self,
        slot: &'a QuotaNameSlot,
        policy: &Policy,
        quota: usize,
        tier: usize,
    ) -> Result<&'a QuotaMetadata, ValidationError> {
        let compiled = &policy.quotas()[quota];
        let name = QuotaName::new(&slot.label, &compiled.counter, compiled.quota(tier))?;
        let metadata = &slot.metadata[quota * self.tiers + tier];
        Ok(metadata.get_or_init(|| {
            let counters = self.telemetry.policy(name.as_str());
            QuotaMetadata { name, counters }
        }))
    }

    #[inline]
    fn slot(&self, label: &str) -> &QuotaNameSlot {
        match label {
            Identity::IP => &self.addresses,
            Identity::USER => &self.users,
            other => self.other_slot(other),
        }
    }

    fn other_slot(&self, label: &str) -> &QuotaNameSlot {
        let (last, slots) = (&self.slots[SLOTS - 1], &self.slots[..SLOTS - 1]);
        for place in slots {
            let slot = match place.get() {
                Some(slot) => slot,
                None if QuotaName::can_name(label) => {
                    place.get_or_init(|| QuotaNameSlot::new(label, self.quotas * self.tiers))
                }
                None => break,
            };
            if *slot.label == *label {
                return slot;
            }
        }
        last.get_or_init(|| QuotaNameSlot::new(UNNAMED_LABEL, self.quotas * self.tiers))
    }
}

impl QuotaNameSlot {
    fn new(label: &str, quotas: usize) -> Self {
        Self {
            label: label.into(),
            metadata: (0..quotas).map(|_| OnceLock::new()).collect(),
        }
    }
}
