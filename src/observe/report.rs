//! Reports of single requests.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::Duration;

use super::counters::{DecisionCounters, Stripe};
use super::request::{Allowed, Denied, Exceeded, Exempted, Rejected};
#[cfg(feature = "admin")]
use super::violations::NewDenial;
use super::violations::Violation;
use super::{Telemetry, event};
use crate::clock::Timestamp;
use crate::identity_types::Identity;
use crate::key::{Subject, Value};
use crate::sync::lock;

impl Telemetry {
    /// One of so many allowed requests of a stripe is recorded in `tollgate_remaining_ratio`.
    #[cfg(feature = "metrics")]
    const REMAINING_SAMPLE: u64 = 16;

    /// The duration of one of so many synchronous decisions is measured.
    const DURATION_SAMPLE: u64 = 64;

    /// Counts an allowed request. Returns whether its duration is to be recorded.
    #[inline]
    pub(crate) fn allowed(&self, allowed: &Allowed<'_>) -> bool {
        if !self.enabled {
            return false;
        }
        let stripe = Stripe::current();
        allowed.endpoint.allow_with(stripe, allowed.usage);
        let before = allowed.policy.allow(stripe, allowed.warns);
        #[cfg(feature = "metrics")]
        {
            let metrics = allowed.policy.metrics.policy(allowed.policy.name());
            metrics.decisions.add("allowed", 1);
            if before.is_multiple_of(Self::REMAINING_SAMPLE) {
                let share = super::counters::remaining_share(allowed.usage);
                metrics.remaining.record("", f64::from(share));
            }
        }
        cfg!(feature = "metrics") && before.is_multiple_of(Self::DURATION_SAMPLE)
    }

    /// Returns whether denied callers are tracked, so that an allowed request may be a retry.
    #[inline]
    pub(crate) fn tracks_retries(&self) -> bool {
        !self.retries.is_empty()
    }

    /// Reports an allowed request of a caller that may be tracked. `counts` returns whether a counter
    /// took part in the decision.
    pub(crate) fn retried(
        &self,
        caller: &Subject<'_>,
        counts: impl FnOnce(u64) -> bool,
        now: Timestamp,
    ) {
        let outcome = self.retries.allowed(self.hash(caller), counts, now);
        self.count_retry(outcome);
    }

    #[cfg_attr(
        not(feature = "metrics"),
        expect(unused_variables, clippy::unused_self, reason = "only a metric")
    )]
    fn count_retry(&self, outcome: Option<&'static str>) {
        #[cfg(feature = "metrics")]
        if let Some(outcome) = outcome {
            self.metrics().retries.add(outcome, 1);
        }
    }

    /// Returns whether an event for an allowed request is enabled.
    #[inline]
    pub(crate) fn logs_allowed(warns: bool) -> bool {
        event::logs_allowed() || warns && event::logs_warnings()
    }

    /// Logs an allowed request, and its warning. `exceeded` is called only if an event is not suppressed.
    pub(crate) fn log_allowed<'a>(
        &self,
        allowed: &Allowed<'_>,
        caller: &Subject<'_>,
        exceeded: impl Fn() -> Exceeded<'a>,
    ) {
        if event::logs_allowed() {
            event::allowed(&exceeded(), &self.names.of(caller));
        }
        if allowed.warns
            && event::logs_warnings()
            && let Some(suppressed) = {
                let kind = kind_of(self.hash(caller), allowed.policy);
                self.warnings.sample(kind, allowed.now)
            }
        {
            event::warned(&exceeded(), &self.names.of(caller), suppressed);
        }
    }

    /// Counts and logs a denied request.
    pub(crate) fn denied<'a>(&self, denied: &Denied<'_>, exceeded: impl FnOnce() -> Exceeded<'a>) {
        let is_logged = event::logs_denials();
        if !self.enabled && !is_logged {
            return;
        }
        let address_hash = match denied.address {
            Some(address) => self.hash_of_address(address),
            None => self.hasher.hash_one(()),
        };
        // A caller that is known by its address has the same hash.
        let caller_hash = match address_of(&denied.caller) {
            Some(address) if Some(address) == denied.address => address_hash,
            _ => self.hash(&denied.caller),
        };
        if self.enabled {
            self.count_denied(denied, caller_hash, address_hash);
        }
        if is_logged {
            let kind = kind_of(caller_hash, denied.policy);
            if let Some(suppressed) = self.denials.sample(kind, denied.now) {
                let names = self.names.of_both(&denied.caller, denied.address);
                event::exceeded(exceeded, &names, suppressed);
            }
        }
    }

    fn count_denied(&self, denied: &Denied<'_>, caller_hash: u64, address_hash: u64) {
        let Denied {
            endpoint,
            policy,
            caller,
            now,
            ..
        } = denied;
        endpoint.deny();
        policy.deny();
        #[cfg(feature = "metrics")]
        {
            policy
                .metrics
                .policy(policy.name())
                .decisions
                .add("denied", 1);
            endpoint.metrics.endpoint(endpoint.name()).denied.add("", 1);
        }
        let violation = Violation {
            endpoint,
            policy: policy.name(),
            caller,
            caller_hash,
            address_hash,
            #[cfg(feature = "admin")]
            denial: NewDenial {
                tier: denied.tier,
                counter: denied.counter,
                until: denied.until,
                now: *now,
            },
            now: *now,
        };
        lock(&self.violations).add(&violation);
        let outcome = self
            .retries
            .denied(caller_hash, denied.counter, denied.until, *now);
        self.count_retry(outcome);
    }

    /// Counts and logs the denial of a dry run.
    pub(crate) fn would_deny<'a>(
        &self,
        policy: &DecisionCounters,
        caller: &Subject<'_>,
        address: Option<IpAddr>,
        now: Timestamp,
        exceeded: impl FnOnce() -> Exceeded<'a>,
    ) {
        if self.enabled {
            policy.would_deny();
            #[cfg(feature = "metrics")]
            policy
                .metrics
                .policy(policy.name())
                .decisions
                .add("would_deny", 1);
        }
        if event::logs_warnings() {
            let kind = kind_of(self.hash(caller), policy);
            if let Some(suppressed) = self.dry_runs.sample(kind, now) {
                let names = self.names.of_both(caller, address);
                event::would_exceed(exceeded, &names, suppressed);
            }
        }
    }

    /// Counts a rejected request by its reason, and logs it: one event per reason and caller in
    /// ten seconds.
    #[cold]
    pub(crate) fn rejected(&self, rejected: &Rejected<'_>) {
        #[cfg(feature = "metrics")]
        if self.enabled {
            self.metrics().rejected_requests.add(rejected.reason, 1);
        }
        if event::logs_denials() {
            let kind = self.hasher.hash_one((rejected.reason, &rejected.caller));
            if let Some(suppressed) = self.rejections.sample(kind, rejected.now) {
                event::rejected(rejected, &self.names.of(&rejected.caller), suppressed);
            }
        }
    }

    /// Counts an exempt request. Returns whether its event is enabled.
    pub(crate) fn exempt(&self, why: &'static str, is_audited: bool) -> bool {
        self.count_exempt(why);
        if is_audited {
            event::logs_audit()
        } else {
            event::logs_allowed()
        }
    }

    /// Counts a request that is exempt because of maintenance. Its audit event is sampled: during
    /// maintenance every request would leave one. Returns `None` if it is suppressed or not enabled,
    /// otherwise the number of events that were suppressed before it.
    pub(crate) fn exempt_by_maintenance(&self, why: &'static str, now: Timestamp) -> Option<u64> {
        self.count_exempt(why);
        if !event::logs_audit() {
            return None;
        }
        let suppressed = self.maintenance.sample(0, now)?;
        Some(suppressed.same)
    }

    /// Logs an exempt request.
    pub(crate) fn log_exempt(&self, exempted: &Exempted<'_>, suppressed: u64) {
        event::exempt(exempted, &self.names.of(&exempted.caller), suppressed);
    }

    #[cfg_attr(not(feature = "metrics"), expect(unused_variables, reason = "a label"))]
    fn count_exempt(&self, why: &'static str) {
        if self.enabled {
            self.totals.exempt.increment();
            #[cfg(feature = "metrics")]
            self.metrics().exempt.add(why, 1);
        }
    }

    /// Counts a request that no rule applies to, or that cannot be counted.
    pub(crate) fn uncounted(&self) {
        if self.enabled {
            self.totals.uncounted.increment();
        }
    }

    /// Counts a request that is rejected because the store is unavailable.
    #[cold]
    pub(crate) fn unavailable(&self) {
        self.totals.unavailable.increment();
        #[cfg(feature = "metrics")]
        self.metrics().unavailable.add("", 1);
    }

    /// Counts and logs a request with a credential that is not accepted and without one that is.
    #[cold]
    pub(crate) fn invalid_credentials(&self, reason: &'static str) {
        self.totals.invalid_credentials.increment();
        #[cfg(feature = "metrics")]
        self.metrics().invalid_credentials.add(reason, 1);
        event::token_refused(reason);
    }

    /// Records the duration of a decision.
    #[cold]
    #[cfg_attr(
        not(feature = "metrics"),
        expect(unused_variables, clippy::unused_self, reason = "only a metric")
    )]
    pub(crate) fn record_duration(&self, duration: Duration, waited: bool) {
        #[cfg(feature = "metrics")]
        if self.enabled {
            let store = if waited { "waited" } else { "at_once" };
            let histogram = &self.metrics().decision_duration;
            histogram.record(store, duration.as_secs_f64());
        }
    }

    pub(super) fn hash(&self, subject: &Subject<'_>) -> u64 {
        match address_of(subject) {
            Some(address) => self.hash_of_address(address),
            None => self.hasher.hash_one(subject),
        }
    }

    /// Hashes one integer, which is cheaper than the fields of an address.
    fn hash_of_address(&self, address: IpAddr) -> u64 {
        match address.to_canonical() {
            IpAddr::V4(address) => self.hasher.hash_one(u64::from(address.to_bits())),
            IpAddr::V6(address) => self.hasher.hash_one(address.to_bits()),
        }
    }
}

/// Returns the key of a [`LogSampler`](super::log_sampler::LogSampler) for one caller and quota. The
/// hash is keyed, so that no caller can choose a neighbouring one.
const fn kind_of(caller_hash: u64, policy: &DecisionCounters) -> u64 {
    caller_hash.wrapping_add(policy.number() as u64)
}

/// Returns the address of a caller that is known by nothing else.
pub(super) fn address_of(caller: &Subject<'_>) -> Option<IpAddr> {
    match caller.only() {
        Some((Identity::IP, Value::Address(address))) => Some(address),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::TelemetrySettings;

    /// Denials are counted by the hash of the address and retries are found by the hash of the
    /// caller. Both have to be equal if the caller is an address.
    #[test]
    fn an_address_has_one_hash_in_every_form() {
        let telemetry = Telemetry::new(TelemetrySettings::default(), Timestamp::EPOCH);
        let of = |text: &str| {
            let address: IpAddr = text.parse().unwrap();
            let hash = telemetry.hash(&Subject::named((Identity::IP, Value::Address(address))));
            assert_eq!(hash, telemetry.hash_of_address(address));
            hash
        };
        assert_eq!(of("203.0.113.9"), of("::ffff:203.0.113.9"));
        assert_ne!(of("203.0.113.9"), of("203.0.113.10"));
        let user = Subject::from([("user", "203.0.113.9")]);
        assert_ne!(of("203.0.113.9"), telemetry.hash(&user));
    }
}
