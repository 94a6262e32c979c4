//! Work that is done once a second, and [`Statistics`].

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::alert::{Alert, Alerts};
use super::counters::DecisionCounters;
use super::statistics::{
    EndpointStatistics, PolicyStatistics, Statistics, StoreStatistics, TimeBucket,
};
use super::violations::Violations;
use super::{Telemetry, event};
use crate::clock::Timestamp;
use crate::sync::lock;

impl Telemetry {
    /// Offenders in [`Statistics`].
    const MAX_OFFENDERS: usize = 100;

    const INTERVAL: Duration = Duration::from_secs(1);

    /// Returns whether a new second has begun. The request that finds this out calls
    /// [`tick`](Self::tick) before it is counted.
    #[inline]
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.enabled && now.as_micros() >= self.next_tick_at.load(Ordering::Relaxed)
    }

    /// Returns when the next tick is due.
    pub(crate) fn next_tick(now: Timestamp) -> Timestamp {
        let interval = Timestamp::EPOCH.saturating_add(Self::INTERVAL).as_micros();
        Timestamp::from_micros((now.as_micros() / interval + 1).saturating_mul(interval))
    }

    /// Adds the requests that were allowed since the last tick to the history, evaluates alerts and
    /// logs those that begin or end.
    #[cold]
    pub(crate) fn tick(&self, now: Timestamp) {
        if !self.enabled {
            return;
        }
        let next = Self::next_tick(now).as_micros();
        self.next_tick_at.store(next, Ordering::Relaxed);
        let changes = self.endpoints.with_all(|endpoints| {
            let mut violations = lock(&self.violations);
            violations.tick(endpoints, now);
            lock(&self.alerts).evaluate(&violations, now)
        });
        self.retries.expire(now);
        for alert in changes {
            let subject = alert.subject.as_ref();
            let identity = subject.map(|subject| self.names.of(&subject.as_subject()));
            event::alert(&alert, identity.as_deref());
        }
    }

    /// Replaces the thresholds of alerts. What was counted stays.
    pub(crate) fn set_alert_thresholds(&self, alerts: Alerts) {
        lock(&self.alerts).set_thresholds(alerts);
    }

    /// Returns the firing alerts, and the number of alerts that were delivered so far.
    pub(crate) fn alerts_firing(&self) -> (Vec<Alert>, u64) {
        let alerts = lock(&self.alerts);
        (alerts.firing(), alerts.delivered())
    }

    /// Returns the alerts after the first `known`, and the number of all.
    pub(crate) fn alerts_after(&self, known: u64) -> (Vec<Alert>, u64) {
        let alerts = lock(&self.alerts);
        (alerts.delivered_after(known), alerts.delivered())
    }

    /// Returns the statistics as of the last tick, in monotonic time. `store` has what the store
    /// reports of itself.
    pub(crate) fn statistics(
        &self,
        now: Timestamp,
        mut store: StoreStatistics,
        policy_version: u64,
    ) -> Statistics {
        let (endpoints, policies) = (self.endpoints.all(), self.policies.all());
        let violations = lock(&self.violations);
        let last_hour = buckets(violations.minutes(now), Duration::from_mins(1));
        let last_day = buckets(violations.quarters(now), Duration::from_mins(15));
        let denied = |buckets: &[TimeBucket]| buckets.iter().map(|bucket| bucket.denied).sum();
        let denied_last_day = denied(&last_day);
        let has_the_day_before = violations
            .the_day_before(now)
            .is_some_and(|from| self.since <= from);
        let mut endpoints: Vec<_> = endpoints
            .iter()
            .map(|counters| endpoint(counters, denied_last_day, &violations, now))
            .filter(|endpoint| endpoint.allowed + endpoint.denied > 0)
            .collect();
        endpoints.sort_by(|one, other| {
            let by_denied = other.denied_last_day.cmp(&one.denied_last_day);
            let by_denied = by_denied.then(other.denied.cmp(&one.denied));
            by_denied
                .then(other.allowed.cmp(&one.allowed))
                .then_with(|| one.name.cmp(&other.name))
        });
        let policies = policies.iter().map(|counters| policy(counters));
        let mut policies: Vec<_> = policies.filter(PolicyStatistics::has_decided).collect();
        policies.sort_by(|one, other| {
            let by_denied = other.denied.cmp(&one.denied);
            by_denied
                .then(other.allowed.cmp(&one.allowed))
                .then_with(|| one.name.cmp(&other.name))
        });
        if store.healthy {
            store.since = self.store_failures.since();
            store.healthy = store.since.is_none();
        }
        Statistics {
            at: now,
            since: self.since,
            totals: self.totals.totals(&endpoints, &policies),
            denied_last_hour: denied(&last_hour),
            denied_last_day,
            denied_the_day_before: has_the_day_before
                .then(|| violations.denied_the_day_before(now)),
            last_hour,
            last_day,
            endpoints,
            policies,
            offenders: violations.worst_offenders(Self::MAX_OFFENDERS),
            worst_offender_denials: violations.most_denials(),
            violators: violations.callers(now),
            violating_addresses: violations.addresses(now),
            ordinary_denied: violations.ordinary_denied(now),
            retries: self.retries.statistics(),
            alerts: lock(&self.alerts).firing(),
            store,
            policy_version,
        }
    }
}

/// `denied_last_day` are the denials of all endpoints.
#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn endpoint(
    counters: &DecisionCounters,
    denied_last_day: u64,
    violations: &Violations,
    now: Timestamp,
) -> EndpointStatistics {
    let history = violations.of_endpoint(counters, now);
    EndpointStatistics {
        name: counters.name().clone(),
        allowed: counters.allowed(),
        denied: counters.denied(),
        denied_last_hour: history.denied_last_hour,
        denied_last_day: history.denied_last_day,
        denied_share: history.denied_last_day as f64 / denied_last_day.max(1) as f64,
        average_remaining: history.average_remaining,
    }
}

fn policy(counters: &DecisionCounters) -> PolicyStatistics {
    PolicyStatistics {
        name: counters.name().clone(),
        allowed: counters.allowed(),
        denied: counters.denied(),
        warned: counters.warned(),
        would_deny: counters.would_have_denied(),
    }
}

fn buckets(
    steps: impl Iterator<Item = (Timestamp, u64, u64)>,
    length: Duration,
) -> Vec<TimeBucket> {
    let bucket = |(from, allowed, denied)| TimeBucket {
        from,
        length,
        allowed,
        denied,
    };
    steps.map(bucket).collect()
}
