//! Looking at everything, once a second.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::alert::{Alert, AlertEvaluator, AlertKind};
use super::counters::DecisionCounters;
use super::statistics::{EndpointStatistics, PolicyStatistics, Statistics, TimeBucket, Totals};
use super::violations::Violations;
use super::{Telemetry, count, event, metric};
use crate::clock::Timestamp;
use crate::sync::lock;

/// What is told once a second.
#[cfg_attr(
    not(feature = "metrics"),
    expect(dead_code, reason = "nobody is told of it then")
)]
pub(super) struct Figures {
    pub(super) violators: u64,
    pub(super) violating_addresses: u64,
    pub(super) worst_offender: u64,
    pub(super) ordinary_denied: Option<f64>,
    pub(super) firing: [(AlertKind, u64); 4],
    /// How much requests to each endpoint had left, if there were any.
    pub(super) remaining: Vec<(Arc<DecisionCounters>, Option<f64>)>,
}

impl Figures {
    fn of(
        violations: &Violations,
        endpoints: &[Arc<DecisionCounters>],
        alarm: &AlertEvaluator,
        now: Timestamp,
    ) -> Self {
        let remaining = endpoints.iter().map(|endpoint| {
            let (_, _, remaining) = violations.of_endpoint(endpoint, now);
            (Arc::clone(endpoint), remaining)
        });
        Self {
            violators: violations.callers(now).count(),
            violating_addresses: violations.addresses(now).count(),
            worst_offender: violations.most_denials(),
            ordinary_denied: ordinary_denied(violations, now),
            firing: AlertKind::ALL.map(|kind| (kind, alarm.count(kind))),
            remaining: remaining.collect(),
        }
    }
}

impl Telemetry {
    /// As many offenders as anybody reads of.
    const OFFENDERS: usize = 100;

    const EVERY: Duration = Duration::from_secs(1);

    /// Whether a new second has begun. Whoever finds that out looks, before it is counted itself.
    #[inline]
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.counts && now.as_micros() >= self.next_tick_at.load(Ordering::Relaxed)
    }

    /// When to look next.
    pub(crate) fn next_tick(now: Timestamp) -> Timestamp {
        let every = Timestamp::EPOCH.saturating_add(Self::EVERY).as_micros();
        Timestamp::from_micros((now.as_micros() / every + 1).saturating_mul(every))
    }

    /// Looks at everything: what was allowed since, which alerts begin or are over.
    #[cold]
    pub(crate) fn tick(&self, now: Timestamp) {
        if !self.counts {
            return;
        }
        let next = Self::next_tick(now).as_micros();
        self.next_tick_at.store(next, Ordering::Relaxed);
        let (changes, figures) = self.endpoints.with_all(|endpoints| {
            let mut violations = lock(&self.violations);
            violations.tick(endpoints, now);
            let mut alarm = lock(&self.alarm);
            let changes = alarm.tick(&violations, now);
            let is_told = cfg!(feature = "metrics");
            let figures = is_told.then(|| Figures::of(&violations, endpoints, &alarm, now));
            (changes, figures)
        });
        self.waiting.forget(now);
        // Whoever is told may take long, or ask back: no lock is held any more.
        if let Some(figures) = figures {
            metric::looked(&self.metrics, &figures);
        }
        for alert in changes {
            let identity = alert.subject().map(|subject| self.names.of(&subject));
            event::alert(&alert, identity.as_deref());
        }
    }

    /// How the store is, and which policy is in force.
    pub(crate) fn record_surroundings(
        &self,
        is_healthy: bool,
        keys: Option<u64>,
        evicted: Option<u64>,
        version: u64,
    ) {
        if self.counts {
            metric::version(&self.metrics, version);
            let evicted = evicted.unwrap_or_default();
            let before = self.evicted.swap(evicted, Ordering::Relaxed);
            let is_healthy = is_healthy && self.store_failures.failing_since().is_none();
            let more = evicted.saturating_sub(before);
            metric::store(&self.metrics, is_healthy, keys, more);
        }
    }

    /// Alerts that are firing, and how many were told so far.
    pub(crate) fn alerts_firing(&self) -> (Vec<Alert>, u64) {
        let alarm = lock(&self.alarm);
        (alarm.firing(), alarm.told())
    }

    /// Alerts that were told after the first `known`, and how many those are altogether.
    pub(crate) fn alerts_after(&self, known: u64) -> (Vec<Alert>, u64) {
        let alarm = lock(&self.alarm);
        (alarm.told_after(known), alarm.told())
    }

    /// Everything there is to say, as of when it was last looked.
    pub(crate) fn statistics(&self, now: Timestamp) -> Statistics {
        let (endpoints, policies) = (self.endpoints.all(), self.policies.all());
        let violations = lock(&self.violations);
        let is_known = violations
            .the_day_before(now)
            .is_some_and(|from| self.since <= from);
        let mut endpoints: Vec<_> = endpoints
            .iter()
            .map(|counters| endpoint(counters, &violations, now))
            .filter(|seen| seen.allowed + seen.denied > 0)
            .collect();
        endpoints.sort_by(|one, other| {
            let by_denied = other.denied_last_day.cmp(&one.denied_last_day);
            let by_denied = by_denied.then(other.denied.cmp(&one.denied));
            by_denied
                .then(other.allowed.cmp(&one.allowed))
                .then_with(|| one.name.cmp(&other.name))
        });
        let mut policies: Vec<_> = policies.iter().map(|counters| policy(counters)).collect();
        policies.sort_by(|one, other| {
            let by_denied = other.denied.cmp(&one.denied);
            by_denied
                .then(other.allowed.cmp(&one.allowed))
                .then_with(|| one.name.cmp(&other.name))
        });
        Statistics {
            at: now,
            since: self.since,
            totals: self.totals(&endpoints, &policies),
            last_hour: spans(violations.minutes(now), Duration::from_mins(1)),
            last_day: spans(violations.quarters(now), Duration::from_mins(15)),
            denied_the_day_before: is_known.then(|| violations.denied_the_day_before(now)),
            endpoints,
            policies,
            offenders: violations.worst_offenders(Self::OFFENDERS),
            violators: violations.callers(now),
            violating_addresses: violations.addresses(now),
            ordinary_denied: ordinary_denied(&violations, now),
            retries: self.waiting.figures(),
            alerts: lock(&self.alarm).firing(),
            store_failing_since: self.store_failures.failing_since(),
        }
    }

    fn totals(&self, endpoints: &[EndpointStatistics], policies: &[PolicyStatistics]) -> Totals {
        Totals {
            allowed: endpoints.iter().map(|one| one.allowed).sum(),
            denied: endpoints.iter().map(|one| one.denied).sum(),
            exempt: self.exempt.sum(),
            warned: policies.iter().map(|one| one.warned).sum(),
            would_deny: policies.iter().map(|one| one.would_deny).sum(),
            unavailable: count(&self.unavailable),
            uncounted: self.uncounted.sum(),
            store_failures: self.store_failures.count(),
            invalid_credentials: count(&self.invalid_credentials),
        }
    }
}

fn endpoint(
    counters: &DecisionCounters,
    violations: &Violations,
    now: Timestamp,
) -> EndpointStatistics {
    let (denied_last_hour, denied_last_day, average_remaining) =
        violations.of_endpoint(counters, now);
    EndpointStatistics {
        name: (**counters.name()).into(),
        allowed: counters.allowed(),
        denied: counters.denied(),
        denied_last_hour,
        denied_last_day,
        average_remaining,
    }
}

fn policy(counters: &DecisionCounters) -> PolicyStatistics {
    PolicyStatistics {
        name: (**counters.name()).into(),
        allowed: counters.allowed(),
        denied: counters.denied(),
        warned: counters.warned(),
        would_deny: counters.would_have_denied(),
    }
}

fn spans(steps: impl Iterator<Item = (Timestamp, u64, u64)>, length: Duration) -> Vec<TimeBucket> {
    let span = |(from, allowed, denied)| TimeBucket {
        from,
        length,
        allowed,
        denied,
    };
    steps.map(span).collect()
}

#[expect(clippy::cast_precision_loss, reason = "it is a share")]
fn ordinary_denied(violations: &Violations, now: Timestamp) -> Option<f64> {
    let (denied, requests) = violations.ordinary(now);
    (requests > 0).then(|| denied as f64 / requests as f64)
}
