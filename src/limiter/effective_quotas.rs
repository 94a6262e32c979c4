//! Quotas of one call: [`EffectiveQuotas`].

use std::borrow::Cow;
use std::slice;

use smallvec::SmallVec;

use super::Limiter;
use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::{self, Timestamp};
use crate::error::ValidationError;
use crate::key::{Counter, Subject};
use crate::quota::Quota;
use crate::store::{AppliedOverride, OverrideStore, Overrides, overrides_in_use};
use crate::usage::Usages;

/// Quotas of one call: some in place of the limiter's first, the limiter's own for the other counters.
#[derive(Clone, Debug)]
pub(super) struct EffectiveQuotas<'a> {
    quotas: Cow<'a, [Quota]>,
    block_ends: BlockEnds,
}

/// When the block of each counter ends, on the wall clock. Empty if none is blocked with an end.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockEnds(Vec<Option<Timestamp>>);

impl BlockEnds {
    /// Returns usages in which the checks of blocks that end are denied until then. `wall_offset`
    /// converts the store's instants to wall-clock time.
    #[inline]
    pub(super) fn apply<'u>(&self, usages: &'u Usages, wall_offset: i64) -> Cow<'u, Usages> {
        if self.0.is_empty() {
            return Cow::Borrowed(usages);
        }
        usages.with_block_ends(|index| self.0.get(index).copied().flatten(), wall_offset)
    }
}

impl<'a> EffectiveQuotas<'a> {
    /// The limiter's own.
    pub(super) const OWN: Self = Self::borrowed(&[]);

    const fn borrowed(quotas: &'a [Quota]) -> Self {
        Self {
            quotas: Cow::Borrowed(quotas),
            block_ends: BlockEnds(Vec::new()),
        }
    }

    /// Returns quotas with another amount of the first, which is stored in `first`.
    pub(super) fn amount(
        counters: &[Counter],
        amount: u64,
        first: &'a mut Option<Quota>,
    ) -> Result<Self, ValidationError> {
        let quota = first.insert(counters[0].quota().with_amount(amount)?);
        Ok(Self::borrowed(slice::from_ref(quota)))
    }

    /// Returns quotas that a caller chose, one for each counter.
    pub(super) fn each(counters: &[Counter], quotas: &'a [Quota]) -> Result<Self, ValidationError> {
        if quotas.len() != counters.len() {
            let expected = format!("{}, as many as the limiter has", counters.len());
            return Err(ValidationError::new(
                "number of quotas",
                quotas.len(),
                expected,
            ));
        }
        let all = Subject::all();
        for (counter, quota) in counters.iter().zip(quotas) {
            Batch::new(&[Check::new(&all, counter).with_quota(quota)])?;
        }
        Ok(Self::borrowed(quotas))
    }

    /// Returns the quota of each counter.
    #[inline]
    pub(super) fn of<'q>(
        &'q self,
        counters: &'q [Counter],
    ) -> impl ExactSizeIterator<Item = (&'q Counter, &'q Quota)> {
        let counters = counters.iter().enumerate();
        counters.map(|(index, counter)| (counter, self.quota(index, counter)))
    }

    /// Returns the quota of the counter at `index`.
    #[inline]
    pub(super) fn quota<'q>(&'q self, index: usize, counter: &'q Counter) -> &'q Quota {
        self.quotas.get(index).unwrap_or_else(|| counter.quota())
    }

    /// Copies borrowed quotas.
    pub(super) fn into_owned(self) -> EffectiveQuotas<'static> {
        EffectiveQuotas {
            quotas: Cow::Owned(self.quotas.into_owned()),
            block_ends: self.block_ends,
        }
    }

    /// Returns when the blocks end.
    #[inline]
    pub(super) const fn block_ends(&self) -> &BlockEnds {
        &self.block_ends
    }
}

impl Limiter {
    /// Returns the override store if its table has entries or is still loading. While it loads, the
    /// limits of a caller are unknown.
    #[inline]
    pub(super) fn override_store(&self) -> Option<&dyn OverrideStore> {
        overrides_in_use(&*self.shared.store)
    }

    /// Returns the quotas of a subject: those of the limiter, or those that were set at run time.
    #[inline]
    pub(super) fn effective_quotas(
        &self,
        overrides: Option<&dyn OverrideStore>,
        subject: &Subject<'_>,
        now: Timestamp,
    ) -> EffectiveQuotas<'static> {
        let table = overrides.map(OverrideStore::table);
        match table.filter(|table| table.may_have(subject)) {
            Some(table) => {
                let wall = clock::wall_at(&*self.shared.clock, now);
                self.overridden_quotas(table, subject, wall)
            }
            None => EffectiveQuotas::OWN,
        }
    }

    #[cold]
    fn overridden_quotas(
        &self,
        overrides: &Overrides,
        subject: &Subject<'_>,
        wall: Timestamp,
    ) -> EffectiveQuotas<'static> {
        // Overrides are stored with addresses that were written as text folded to addresses.
        let subject = subject.with_addresses();
        let set = |counter: &Counter| {
            // The whole subject comes first. Dimensions without a name are distinguished by
            // their position, so one of them alone is no subject.
            let named = subject.dimensions().filter(|(name, _)| !name.is_empty());
            let mut subjects = std::iter::once(subject).chain(named.map(Subject::named));
            subjects.find_map(|of| overrides.find(&of, counter.rule(), counter.quota(), wall))
        };
        let found: SmallVec<[Option<AppliedOverride>; MAX_CHECKS]> =
            self.counters().iter().map(set).collect();
        if found.iter().all(Option::is_none) {
            return EffectiveQuotas::OWN;
        }
        let own = self.counters().iter().map(|counter| *counter.quota());
        let each = found.iter().zip(own);
        let quotas = each.map(|(set, own)| set.map_or(own, |set| set.quota));
        let ends = found
            .iter()
            .map(|set| set.and_then(|set| set.blocked_until));
        let has_end = ends.clone().any(|end| end.is_some());
        EffectiveQuotas {
            quotas: quotas.collect(),
            block_ends: BlockEnds(if has_end { ends.collect() } else { Vec::new() }),
        }
    }
}
