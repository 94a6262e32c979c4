//! The quotas of one call: the limiter's own, or others in their place.

use std::borrow::Cow;
use std::slice;

use smallvec::SmallVec;

use super::Limiter;
use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::{self, Timestamp};
use crate::error::ValidationError;
use crate::key::{Counter, Subject};
use crate::quota::Quota;
use crate::store::{OverrideStore, Overrides};

/// Quotas of one call: some in place of the limiter's first, the limiter's own for the other counters.
#[derive(Clone, Debug)]
pub(super) struct EffectiveQuotas<'a>(Cow<'a, [Quota]>);

impl<'a> EffectiveQuotas<'a> {
    /// The limiter's own.
    pub(super) const OWN: Self = Self(Cow::Borrowed(&[]));

    /// Returns quotas with another amount of the first, which is stored in `first`.
    pub(super) fn amount(
        counters: &[Counter],
        amount: u64,
        first: &'a mut Option<Quota>,
    ) -> Result<Self, ValidationError> {
        let quota = first.insert(counters[0].quota().with_amount(amount)?);
        Ok(Self(Cow::Borrowed(slice::from_ref(quota))))
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
        Ok(Self(Cow::Borrowed(quotas)))
    }

    /// Returns the quota of each counter.
    #[inline]
    pub(super) fn of<'q>(
        &'q self,
        counters: &'q [Counter],
    ) -> impl ExactSizeIterator<Item = (&'q Counter, &'q Quota)> {
        let replaced = &*self.0;
        let counters = counters.iter().enumerate();
        counters.map(|(index, counter)| {
            let quota = replaced.get(index).unwrap_or_else(|| counter.quota());
            (counter, quota)
        })
    }

    /// Returns the windows in microseconds, which rank usages with equally little left.
    #[inline]
    pub(super) fn windows<'q>(
        &'q self,
        counters: &'q [Counter],
    ) -> impl ExactSizeIterator<Item = u64> {
        let quotas = self.of(counters);
        quotas.map(|(_, quota)| quota.window_micros())
    }

    /// Copies borrowed quotas.
    pub(super) fn into_owned(self) -> EffectiveQuotas<'static> {
        EffectiveQuotas(Cow::Owned(self.0.into_owned()))
    }
}

impl Limiter {
    /// Returns the quotas of a subject: those of the limiter, or those that were set at run time.
    #[inline]
    pub(super) fn effective_quotas(
        &self,
        subject: &Subject<'_>,
        now: Timestamp,
    ) -> EffectiveQuotas<'static> {
        let overrides = self.inner.store.overrides().map(OverrideStore::table);
        match overrides.filter(|overrides| overrides.may_have(subject)) {
            Some(overrides) => {
                let wall = clock::wall_at(&*self.inner.clock, now);
                self.overridden_quotas(overrides, subject, wall)
            }
            None => EffectiveQuotas::OWN,
        }
    }

    fn overridden_quotas(
        &self,
        overrides: &Overrides,
        subject: &Subject<'_>,
        wall: Timestamp,
    ) -> EffectiveQuotas<'static> {
        // Overrides are stored with addresses that were written as text folded to addresses.
        let subject = subject.with_addresses();
        let set = |counter: &Counter| {
            // The whole subject comes first. Dimensions without a name are told apart by their
            // position, so that one of them alone means nothing.
            let named = subject.dimensions().filter(|(name, _)| !name.is_empty());
            let mut subjects = std::iter::once(subject).chain(named.map(Subject::named));
            subjects.find_map(|of| overrides.find(&of, counter.rule(), counter.quota(), wall))
        };
        let found: SmallVec<[Option<Quota>; MAX_CHECKS]> =
            self.counters().iter().map(set).collect();
        if found.iter().all(Option::is_none) {
            return EffectiveQuotas::OWN;
        }
        let own = self.counters().iter().map(|counter| *counter.quota());
        let each = found.into_iter().zip(own);
        EffectiveQuotas(each.map(|(set, own)| set.unwrap_or(own)).collect())
    }
}
