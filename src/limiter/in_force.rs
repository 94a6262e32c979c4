//! Which quotas apply to one call: the limiter's own, or others in their place.

use std::borrow::Cow;

use super::Limiter;
use crate::batch::Check;
use crate::clock::Timestamp;
use crate::error::Invalid;
use crate::key::{Counter, Subject};
use crate::quota::Quota;
use crate::store::{OverrideStore, Overrides};

/// The quotas of one call.
#[derive(Clone, Debug)]
pub(super) enum InForce<'a> {
    /// Those of the limiter.
    Own,
    /// Those of the limiter, but for the first.
    First(Quota),
    /// One for each of the limiter's.
    Each(Cow<'a, [Quota]>),
}

impl<'a> InForce<'a> {
    /// Another amount for the first.
    pub(super) fn amount(counters: &[Counter], amount: u64) -> Result<Self, Invalid> {
        Ok(Self::First(counters[0].quota().with_amount(amount)?))
    }

    /// Another quota for each.
    pub(super) fn each(counters: &[Counter], quotas: &'a [Quota]) -> Result<Self, Invalid> {
        if quotas.len() != counters.len() {
            let expected = format!("{}, as many as the limiter has", counters.len());
            return Err(Invalid::new("number of quotas", quotas.len(), expected));
        }
        Ok(Self::Each(Cow::Borrowed(quotas)))
    }

    /// Puts them on the checks of a limiter.
    pub(super) fn apply<'c>(&'c self, checks: &mut [Check<'c>]) {
        let quotas = match self {
            Self::Own => &[][..],
            Self::First(quota) => std::slice::from_ref(quota),
            Self::Each(quotas) => quotas,
        };
        for (check, quota) in checks.iter_mut().zip(quotas) {
            *check = check.with_quota(quota);
        }
    }

    /// The same, to be kept.
    pub(super) fn into_owned(self) -> InForce<'static> {
        match self {
            Self::Own => InForce::Own,
            Self::First(quota) => InForce::First(quota),
            Self::Each(quotas) => InForce::Each(Cow::Owned(quotas.into_owned())),
        }
    }
}

impl Limiter {
    /// What was set at run time; `None` if nothing was, for anybody.
    #[inline]
    pub(super) fn known_overrides(&self) -> Option<&Overrides> {
        let overrides = self.inner.store.overrides();
        overrides
            .map(OverrideStore::table)
            .filter(|overrides| !overrides.is_empty())
    }

    /// What applies to a subject, unless the call says otherwise.
    pub(super) fn in_force(&self, subject: &Subject<'_>, now: Timestamp) -> InForce<'static> {
        match self.known_overrides() {
            Some(overrides) if overrides.may_have(subject) => {
                let wall = self.inner.clock.wall_at(now);
                self.overridden(overrides, subject, wall)
            }
            _ => InForce::Own,
        }
    }

    #[cold]
    fn overridden(
        &self,
        overrides: &Overrides,
        subject: &Subject<'_>,
        wall: Timestamp,
    ) -> InForce<'static> {
        // As overrides are kept: addresses that were written as text are addresses.
        let subject = &subject.with_addresses();
        // What is for the subject itself comes first. Dimensions without a name are told apart by
        // their place, so one of them alone means nothing.
        let named = subject.dimensions().filter(|(name, _)| !name.is_empty());
        let of: Vec<Subject<'_>> = std::iter::once(*subject)
            .chain(named.map(Subject::named))
            .collect();
        let set = |counter: &Counter| {
            of.iter()
                .find_map(|of| overrides.find(of, counter.rule(), counter.quota(), wall))
        };
        let found: Vec<Option<Quota>> = self.counters().iter().map(set).collect();
        if found.iter().all(Option::is_none) {
            return InForce::Own;
        }
        let own = self.counters().iter().map(|counter| *counter.quota());
        let each = found.into_iter().zip(own);
        InForce::Each(each.map(|(set, own)| set.unwrap_or(own)).collect())
    }
}
