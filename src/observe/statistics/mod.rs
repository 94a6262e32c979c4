//! Statistics of a layer: [`Statistics`].

mod counts;
mod offender;
mod totals;

use serde::Serialize;

use crate::clock::Timestamp;
use crate::observe::alert::Alert;

pub use self::counts::{
    Distinct, EndpointStatistics, PolicyStatistics, Retries, StoreStatistics, TimeBucket,
};
pub use self::offender::Offender;
pub(super) use self::offender::{counter_text, serialized_subject};
pub(super) use self::totals::TotalCounters;
pub use self::totals::Totals;

/// What a layer has decided so far, as of one instant.
///
/// [`RateLimitLayer::statistics`](crate::RateLimitLayer::statistics) returns a copy. The admin API
/// serialises the same type. The [guide](crate::docs::operations) explains each value.
///
/// ```
/// use tollgate::RateLimitLayer;
///
/// let limits = RateLimitLayer::new("100/minute")?;
/// let statistics = limits.statistics();
/// assert_eq!(statistics.totals.allowed, 0);
/// assert!(statistics.offenders.is_empty());
/// assert_eq!(statistics.ordinary_denied, None, "there were no requests");
/// # Ok::<(), tollgate::ValidationErrors>(())
/// ```
///
/// `Debug` does not show the subjects of offenders. `Serialize` does.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// When this copy was made.
    pub at: Timestamp,
    /// When the layer was built.
    pub since: Timestamp,
    /// All requests since the layer was built. Exact.
    pub totals: Totals,
    /// Denials in [`last_hour`](Self::last_hour).
    pub denied_last_hour: u64,
    /// Denials in [`last_day`](Self::last_day).
    pub denied_last_day: u64,
    /// Denials in the 24 hours before [`last_day`](Self::last_day); `None` if the layer is younger.
    pub denied_the_day_before: Option<u64>,
    /// The current minute and the 59 before it, oldest first.
    ///
    /// Denials are exact. The sum of allowed requests is exact; a request at the turn of a minute
    /// may be counted in the neighbouring bucket.
    pub last_hour: Vec<TimeBucket>,
    /// The current quarter of an hour and the 95 before it, oldest first.
    pub last_day: Vec<TimeBucket>,
    /// Endpoints that have had requests, most denials within a day first.
    pub endpoints: Vec<EndpointStatistics>,
    /// Quotas that have decided requests, most denials first.
    pub policies: Vec<PolicyStatistics>,
    /// The callers with the most denials within an hour, most denials first; at most 100.
    pub offenders: Vec<Offender>,
    /// The largest [`at_least`](Offender::at_least) of all offenders.
    pub worst_offender_denials: u64,
    /// Distinct callers that were denied within an hour.
    pub violators: Distinct,
    /// Distinct client IPs that were denied within ten minutes.
    pub violating_addresses: Distinct,
    /// Estimated share of ordinary requests that were denied within the last hour, from 0 to 1:
    /// the rate of false positives. `None` without requests.
    ///
    /// A caller counts as ordinary if it was denied at most five times within the hour, because a
    /// client that waits for `Retry-After` is not denied more often. The share is the denials of
    /// these callers, divided by these denials plus all allowed requests.
    pub ordinary_denied: Option<f64>,
    /// What denied callers did next.
    pub retries: Retries,
    /// Firing alerts, most severe first.
    pub alerts: Vec<Alert>,
    /// State of the store.
    pub store: StoreStatistics,
    /// Version of the policy.
    pub policy_version: u64,
}

impl Statistics {
    /// Returns these statistics with all instants moved by `micros` microseconds: the statistics are
    /// kept in monotonic time and shown in wall-clock time.
    pub(crate) fn offset_by(mut self, micros: i64) -> Self {
        let instants = [&mut self.at, &mut self.since].into_iter();
        let buckets = self.last_hour.iter_mut().chain(&mut self.last_day);
        let offenders = self.offenders.iter_mut();
        for instant in instants
            .chain(buckets.map(|bucket| &mut bucket.from))
            .chain(offenders.map(|offender| &mut offender.last_seen))
            .chain(&mut self.store.since)
        {
            *instant = instant.offset_by(micros);
        }
        let alerts = self.alerts.into_iter();
        self.alerts = alerts.map(|alert| alert.offset_by(micros)).collect();
        self
    }
}
