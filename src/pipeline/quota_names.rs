//! The names of quotas as callers see them, made when they are first needed.

use std::sync::{Arc, OnceLock};

use crate::error::Invalid;
use crate::headers::Label;
use crate::observe::{Tally, Watch};
use crate::policy::Policy;
use crate::who::Identity;

/// QuotaNames by who is counted (`user`, `ip`, …), line and tier.
#[derive(Debug)]
pub(super) struct QuotaNames {
    /// One for each kind of caller that was seen. There are few: they come from code, not from
    /// requests. The last is for all those that would be too many, or cannot be written.
    slots: [OnceLock<Slot>; SLOTS],
    /// For addresses and users, whom nearly all quotas count: found without searching.
    addresses: Slot,
    users: Slot,
    lines: usize,
    tiers: usize,
    watch: Arc<Watch>,
}

/// The name of a quota, and what is counted under it.
#[derive(Debug)]
pub(super) struct QuotaMetadata {
    pub(super) label: Label,
    pub(super) tally: Arc<Tally>,
}

#[derive(Debug)]
struct Slot {
    who: Box<str>,
    labels: Box<[OnceLock<Arc<QuotaMetadata>>]>,
}

const SLOTS: usize = 16;

impl QuotaNames {
    /// Stands for callers of a kind that cannot be written in a header.
    pub(super) const UNNAMED: &str = "caller";

    pub(super) fn new(policy: &Policy, watch: &Arc<Watch>) -> Self {
        let (lines, tiers) = (policy.lines().len(), policy.tiers().len());
        Self {
            slots: [const { OnceLock::new() }; SLOTS],
            addresses: Slot::new(Identity::IP, lines * tiers),
            users: Slot::new(Identity::USER, lines * tiers),
            lines,
            tiers,
            watch: Arc::clone(watch),
        }
    }

    /// The label of a line for callers of this kind and tier.
    #[inline(always)]
    pub(super) fn get(
        &self,
        policy: &Policy,
        who: &str,
        line: usize,
        tier: usize,
    ) -> Result<&Arc<QuotaMetadata>, Invalid> {
        let slot = self.slot(who);
        let place = &slot.labels[line * self.tiers + tier];
        match place.get() {
            Some(named) => Ok(named),
            None => self.make(slot, policy, line, tier),
        }
    }

    #[cold]
    fn make<'a>(
        &'a self,
        slot: &'a Slot,
        policy: &Policy,
        line: usize,
        tier: usize,
    ) -> Result<&'a Arc<QuotaMetadata>, Invalid> {
        let place = &slot.labels[line * self.tiers + tier];
        let described = &policy.lines()[line];
        let label = Label::new(&slot.who, &described.counter, described.quota(tier))?;
        Ok(place.get_or_init(|| {
            let tally = self.watch.policies().of(label.as_str());
            Arc::new(QuotaMetadata { label, tally })
        }))
    }

    #[inline(always)]
    fn slot(&self, who: &str) -> &Slot {
        match who {
            Identity::IP => &self.addresses,
            Identity::USER => &self.users,
            other => self.other_slot(other),
        }
    }

    #[inline(never)]
    fn other_slot(&self, who: &str) -> &Slot {
        let (last, slots) = (&self.slots[SLOTS - 1], &self.slots[..SLOTS - 1]);
        for place in slots {
            let slot = match place.get() {
                Some(slot) => slot,
                None if Label::can_name(who) => {
                    place.get_or_init(|| Slot::new(who, self.lines * self.tiers))
                }
                None => break,
            };
            if *slot.who == *who {
                return slot;
            }
        }
        last.get_or_init(|| Slot::new(Self::UNNAMED, self.lines * self.tiers))
    }
}

impl Slot {
    fn new(who: &str, labels: usize) -> Self {
        Self {
            who: who.into(),
            labels: (0..labels).map(|_| OnceLock::new()).collect(),
        }
    }
}
