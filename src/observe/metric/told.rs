//! Figures, with the feature `metrics`.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, SharedString, counter, gauge, histogram};

use super::Retried;
use super::list::{self, METRICS, MetricKind};
use crate::observe::alert::AlertKind;
use crate::observe::counters::DecisionCounters;
use crate::observe::tick::Figures;

/// Those of one quota or one endpoint, looked up by name once: when they are first needed, since
/// whoever records them may come after the layer.
#[derive(Debug, Default)]
pub(in crate::observe) struct Handles {
    of_policy: OnceLock<OfPolicy>,
    denied_at: OnceLock<Counter>,
    remaining_at: OnceLock<Gauge>,
}

#[derive(Debug)]
struct OfPolicy {
    allowed: Counter,
    denied: Counter,
    would_deny: Counter,
    remaining: Histogram,
}

/// Those of a layer.
#[derive(Debug, Default)]
pub(in crate::observe) struct OfLayer {
    at_once: OnceLock<Histogram>,
    waited: OnceLock<Histogram>,
    looked: OnceLock<Looked>,
    store: OnceLock<OfStore>,
    version: OnceLock<Gauge>,
}

#[derive(Debug)]
struct Looked {
    violators: Gauge,
    violating_addresses: Gauge,
    worst_offender: Gauge,
    ordinary_denied: Gauge,
    firing: [Gauge; AlertKind::ALL.len()],
}

#[derive(Debug)]
struct OfStore {
    healthy: Gauge,
    /// As long as nothing is kept in memory, there is no such figure.
    keys: OnceLock<Gauge>,
    evictions: Counter,
}

fn name_of(counters: &DecisionCounters) -> SharedString {
    SharedString::from_shared(counters.name().clone())
}

#[inline]
fn of_policy(policy: &DecisionCounters) -> &OfPolicy {
    match policy.metrics.of_policy.get() {
        Some(known) => known,
        None => make_of_policy(policy),
    }
}

#[cold]
fn make_of_policy(policy: &DecisionCounters) -> &OfPolicy {
    policy.metrics.of_policy.get_or_init(|| {
        describe();
        let decided =
            |outcome| counter!(list::DECISIONS, "policy" => name_of(policy), "outcome" => outcome);
        OfPolicy {
            allowed: decided("allowed"),
            denied: decided("denied"),
            would_deny: decided("would_deny"),
            remaining: histogram!(list::REMAINING, "policy" => name_of(policy)),
        }
    })
}

/// One more was allowed. How much it has left is told of some.
#[inline]
pub(in crate::observe) fn allowed(
    policy: &DecisionCounters,
    remaining: impl FnOnce() -> Option<f64>,
) {
    let handles = of_policy(policy);
    handles.allowed.increment(1);
    if let Some(remaining) = remaining() {
        handles.remaining.record(remaining);
    }
}

pub(in crate::observe) fn denied(endpoint: &DecisionCounters, policy: &DecisionCounters) {
    of_policy(policy).denied.increment(1);
    let of_endpoint = || counter!(list::ENDPOINT_DENIED, "endpoint" => name_of(endpoint));
    let denied = endpoint.metrics.denied_at.get_or_init(of_endpoint);
    denied.increment(1);
}

pub(in crate::observe) fn would_deny(policy: &DecisionCounters) {
    of_policy(policy).would_deny.increment(1);
}

pub(in crate::observe) fn exempt(why: &'static str) {
    counter!(list::EXEMPT, "why" => why).increment(1);
}

pub(in crate::observe) fn invalid_credentials(reason: &'static str) {
    counter!(list::INVALID_CREDENTIALS, "reason" => reason).increment(1);
}

pub(in crate::observe) fn rejected(reason: &'static str) {
    counter!(list::REJECTED_REQUESTS, "reason" => reason).increment(1);
}

pub(in crate::observe) fn unavailable() {
    counter!(list::UNAVAILABLE).increment(1);
}

pub(in crate::observe) fn store_failed() {
    counter!(list::STORE_ERRORS).increment(1);
}

/// How long a decision took.
pub(in crate::observe) fn record_duration(layer: &OfLayer, time: Duration, waited: bool) {
    let (place, how) = if waited {
        (&layer.waited, "waited")
    } else {
        (&layer.at_once, "at_once")
    };
    let of_layer = || histogram!(list::DECISION_SECONDS, "store" => how);
    place.get_or_init(of_layer).record(time.as_secs_f64());
}

/// Those of callers who come back.
#[derive(Debug, Default)]
pub(in crate::observe) struct OfRetries {
    admitted: OnceLock<Counter>,
    denied_again: OnceLock<Counter>,
    too_soon: OnceLock<Counter>,
}

/// Somebody came back who was told to wait.
pub(in crate::observe) fn retried(handles: &OfRetries, outcome: Retried) {
    let (handle, name) = match outcome {
        Retried::Admitted => (&handles.admitted, "admitted"),
        Retried::DeniedAgain => (&handles.denied_again, "denied_again"),
        Retried::TooSoon => (&handles.too_soon, "too_soon"),
    };
    let of_outcome = || counter!(list::RETRIES, "outcome" => name);
    handle.get_or_init(of_outcome).increment(1);
}

/// Another policy is in force.
#[expect(clippy::cast_precision_loss, reason = "nobody reloads that often")]
pub(in crate::observe) fn reloaded(version: u64) {
    counter!(list::RELOADS, "outcome" => "ok").increment(1);
    gauge!(list::VERSION).set(version as f64);
}

/// Which policy is in force, once a second: also the first one, which nobody has put in place.
#[expect(clippy::cast_precision_loss, reason = "nobody reloads that often")]
pub(in crate::observe) fn version(layer: &OfLayer, version: u64) {
    let gauge = layer.version.get_or_init(|| gauge!(list::VERSION));
    gauge.set(version as f64);
}

/// Another policy was refused.
pub(in crate::observe) fn reload_failed() {
    counter!(list::RELOADS, "outcome" => "failed").increment(1);
}

/// What is not told request by request, once a second.
#[expect(clippy::cast_precision_loss, reason = "gauges are so")]
pub(in crate::observe) fn looked(layer: &OfLayer, figures: &Figures) {
    let looked = layer.looked.get_or_init(|| {
        describe();
        Looked {
            violators: gauge!(list::VIOLATORS),
            violating_addresses: gauge!(list::VIOLATING_ADDRESSES),
            worst_offender: gauge!(list::WORST_OFFENDER),
            ordinary_denied: gauge!(list::ORDINARY_DENIED),
            firing: AlertKind::ALL.map(|kind| gauge!(list::ALERTS, "alert" => kind.name())),
        }
    });
    looked.violators.set(figures.violators as f64);
    let addresses = figures.violating_addresses as f64;
    looked.violating_addresses.set(addresses);
    looked.worst_offender.set(figures.worst_offender as f64);
    let share = figures.ordinary_denied.unwrap_or_default();
    looked.ordinary_denied.set(share);
    for (gauge, (_, count)) in looked.firing.iter().zip(figures.firing) {
        gauge.set(count as f64);
    }
    for (endpoint, share) in &figures.remaining {
        remaining(endpoint, *share);
    }
}

/// How much requests to an endpoint had left. Where there were none in the last hour, what was told
/// before is not true any more, and no number is.
fn remaining(endpoint: &DecisionCounters, remaining: Option<f64>) {
    let place = &endpoint.metrics.remaining_at;
    let of_endpoint = || gauge!(list::ENDPOINT_REMAINING, "endpoint" => name_of(endpoint));
    match remaining {
        Some(remaining) => place.get_or_init(of_endpoint).set(remaining),
        None => place
            .get()
            .into_iter()
            .for_each(|gauge| gauge.set(f64::NAN)),
    }
}

/// How the store is, once a second.
#[expect(clippy::cast_precision_loss, reason = "gauges are so")]
pub(in crate::observe) fn store(layer: &OfLayer, is_healthy: bool, keys: Option<u64>, more: u64) {
    let store = layer.store.get_or_init(|| OfStore {
        healthy: gauge!(list::STORE_HEALTHY),
        keys: OnceLock::new(),
        evictions: counter!(list::STORE_EVICTIONS),
    });
    store.healthy.set(f64::from(u8::from(is_healthy)));
    store.evictions.increment(more);
    if let Some(keys) = keys {
        let gauge = store.keys.get_or_init(|| gauge!(list::STORE_KEYS));
        gauge.set(keys as f64);
    }
}

/// Says what each means, to whoever shows them.
fn describe() {
    for metric in METRICS {
        let (name, description) = (metric.name(), metric.description());
        match metric.kind() {
            MetricKind::Counter => metrics::describe_counter!(name, description),
            MetricKind::Gauge => metrics::describe_gauge!(name, description),
            MetricKind::Histogram => metrics::describe_histogram!(name, description),
        }
    }
}
