//! What can be said of everything that a layer has decided: [`Statistics`].

mod figures;
mod offender;
mod time_bucket;

use crate::clock::Timestamp;
use crate::observe::alert::Alert;

pub use self::figures::{Distinct, EndpointStatistics, PolicyStatistics, Retries, Totals};
pub use self::offender::Offender;
pub use self::time_bucket::TimeBucket;

/// What a layer has decided so far, as of one instant.
///
/// Made by [`RateLimitLayer::statistics`](crate::RateLimitLayer::statistics). It is a copy:
/// whatever happens next does not change it. What each figure means, and which of them are
/// exact, is said with it; [the guide](crate::docs::operations) says what to do about them.
///
/// ```
/// use tollgate::RateLimitLayer;
///
/// let limits = RateLimitLayer::new("100/minute")?;
/// let statistics = limits.statistics();
/// assert_eq!(statistics.totals().allowed(), 0);
/// assert!(statistics.offenders().is_empty());
/// assert_eq!(statistics.ordinary_denied(), None, "there were no requests");
/// # Ok::<(), tollgate::ValidationErrors>(())
/// ```
///
/// Showing one with `{:?}` does not show who the offenders are.
#[derive(Clone, Debug)]
pub struct Statistics {
    pub(in crate::observe) at: Timestamp,
    pub(in crate::observe) since: Timestamp,
    pub(in crate::observe) totals: Totals,
    pub(in crate::observe) last_hour: Vec<TimeBucket>,
    pub(in crate::observe) last_day: Vec<TimeBucket>,
    pub(in crate::observe) denied_the_day_before: Option<u64>,
    pub(in crate::observe) endpoints: Vec<EndpointStatistics>,
    pub(in crate::observe) policies: Vec<PolicyStatistics>,
    pub(in crate::observe) offenders: Vec<Offender>,
    pub(in crate::observe) violators: Distinct,
    pub(in crate::observe) violating_addresses: Distinct,
    pub(in crate::observe) ordinary_denied: Option<f64>,
    pub(in crate::observe) retries: Retries,
    pub(in crate::observe) alerts: Vec<Alert>,
    pub(in crate::observe) store_failing_since: Option<Timestamp>,
}

impl Statistics {
    /// Returns these statistics with all instants moved by `micros` microseconds: the statistics are
    /// kept in monotonic time and shown in wall-clock time.
    pub(crate) fn offset_by(mut self, micros: i64) -> Self {
        let instants = [&mut self.at, &mut self.since].into_iter();
        let spans = self.last_hour.iter_mut().chain(&mut self.last_day);
        let offenders = self.offenders.iter_mut();
        for instant in instants
            .chain(spans.map(|span| &mut span.from))
            .chain(offenders.map(|offender| &mut offender.last_seen))
            .chain(&mut self.store_failing_since)
        {
            *instant = instant.offset_by(micros);
        }
        let alerts = self.alerts.into_iter();
        self.alerts = alerts.map(|alert| alert.offset_by(micros)).collect();
        self
    }

    /// When they were made.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Since when there has been counting: when the layer was built.
    #[must_use]
    pub const fn since(&self) -> Timestamp {
        self.since
    }

    /// Everything since the layer was built. Exact.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The present minute and the fifty-nine before it, the oldest first.
    ///
    /// Denials are exact. What was allowed is exact altogether; a request at the turn of a
    /// minute may be found in the one next to it.
    #[must_use]
    pub fn last_hour(&self) -> &[TimeBucket] {
        &self.last_hour
    }

    /// The present quarter of an hour and the ninety-five before it, the oldest first.
    #[must_use]
    pub fn last_day(&self) -> &[TimeBucket] {
        &self.last_day
    }

    /// How many requests were turned away within [the last hour](Self::last_hour).
    #[must_use]
    pub fn denied_last_hour(&self) -> u64 {
        self.last_hour.iter().map(TimeBucket::denied).sum()
    }

    /// How many requests were turned away within [the last day](Self::last_day).
    #[must_use]
    pub fn denied_last_day(&self) -> u64 {
        self.last_day.iter().map(TimeBucket::denied).sum()
    }

    /// How many were turned away in the day before that; `None` if there was no counting yet at
    /// its beginning.
    #[must_use]
    pub const fn denied_the_day_before(&self) -> Option<u64> {
        self.denied_the_day_before
    }

    /// Each endpoint that has seen requests, those with the most denials within a day first.
    #[must_use]
    pub fn endpoints(&self) -> &[EndpointStatistics] {
        &self.endpoints
    }

    /// Each quota that has decided about requests, those with the most denials first.
    #[must_use]
    pub fn policies(&self) -> &[PolicyStatistics] {
        &self.policies
    }

    /// Who was turned away most often within an hour, the worst first; at most a hundred.
    #[must_use]
    pub fn offenders(&self) -> &[Offender] {
        &self.offenders
    }

    /// How many callers were turned away within an hour, each counted once.
    #[must_use]
    pub const fn violators(&self) -> Distinct {
        self.violators
    }

    /// How many addresses of clients were turned away within ten minutes, each counted once.
    #[must_use]
    pub const fn violating_addresses(&self) -> Distinct {
        self.violating_addresses
    }

    /// The estimated share of ordinary requests that were turned away within the last hour, from
    /// 0 to 1: what others call false positives. `None` if there were no requests.
    ///
    /// Nobody can know who meant well. A caller is taken for an ordinary one who was turned away
    /// at most five times within the hour: who is told to wait, and waits, is not turned away
    /// more often. The share is of the denials of such callers in these denials and all
    /// requests that were allowed.
    #[must_use]
    pub const fn ordinary_denied(&self) -> Option<f64> {
        self.ordinary_denied
    }

    /// What became of those who were told to come back later.
    #[must_use]
    pub const fn retries(&self) -> &Retries {
        &self.retries
    }

    /// The alerts that are firing, the most severe first.
    #[must_use]
    pub fn alerts(&self) -> &[Alert] {
        &self.alerts
    }

    /// Since when the store has not answered; `None` if it does.
    #[must_use]
    pub const fn store_failing_since(&self) -> Option<Timestamp> {
        self.store_failing_since
    }
}
