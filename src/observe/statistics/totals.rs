//! Requests by outcome: [`Totals`], and the counters that are not part of other statistics.

use serde::Serialize;

use super::{EndpointStatistics, PolicyStatistics};
use crate::observe::counters::StripedCounter;

/// Requests by outcome since the layer was built. Exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// Counted and allowed.
    pub allowed: u64,
    /// Denied because a limit was reached.
    pub denied: u64,
    /// Not counted, because the route, client IP or caller is exempt, or because of maintenance.
    pub exempt: u64,
    /// Allowed requests whose response had a warning.
    pub warned: u64,
    /// Denials of dry-run rules.
    pub would_deny: u64,
    /// Rejected with 503 because the store was unavailable and a rule has `on_store_failure = deny`.
    pub unavailable: u64,
    /// Allowed without being counted: no rule applied, or the store was unavailable and the rules
    /// have `on_store_failure = allow`.
    pub uncounted: u64,
    /// Failed calls of the store.
    pub store_failures: u64,
    /// Requests with a credential that is not accepted, and without one that is.
    pub invalid_credentials: u64,
}

/// Counters of [`Totals`] that are not sums over endpoints or quotas.
#[derive(Debug, Default)]
pub(in crate::observe) struct TotalCounters {
    pub(in crate::observe) exempt: StripedCounter,
    pub(in crate::observe) uncounted: StripedCounter,
    pub(in crate::observe) unavailable: StripedCounter,
    pub(in crate::observe) store_failures: StripedCounter,
    pub(in crate::observe) invalid_credentials: StripedCounter,
}

impl TotalCounters {
    /// Returns the totals, with the sums over these statistics.
    pub(in crate::observe) fn totals(
        &self,
        endpoints: &[EndpointStatistics],
        policies: &[PolicyStatistics],
    ) -> Totals {
        Totals {
            allowed: endpoints.iter().map(|one| one.allowed).sum(),
            denied: endpoints.iter().map(|one| one.denied).sum(),
            exempt: self.exempt.sum(),
            warned: policies.iter().map(|one| one.warned).sum(),
            would_deny: policies.iter().map(|one| one.would_deny).sum(),
            unavailable: self.unavailable.sum(),
            uncounted: self.uncounted.sum(),
            store_failures: self.store_failures.sum(),
            invalid_credentials: self.invalid_credentials.sum(),
        }
    }
}
