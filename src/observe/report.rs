//! What is told of one request.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::counters::{DecisionCounters, Stripe, remaining_share};
use super::violations::Violation;
use super::{Telemetry, event, metric};
use crate::clock::Timestamp;
use crate::head::RequestHead;
use crate::identity_types::Identity;
use crate::key::{Subject, Value};
use crate::sync::lock;
use crate::usage::Usage;

/// A request that goes on: where it goes, and how the quota stands that speaks for it.
#[derive(Clone, Copy)]
pub(crate) struct Allowed<'a> {
    pub(crate) endpoint: &'a DecisionCounters,
    pub(crate) policy: &'a DecisionCounters,
    pub(crate) usage: &'a Usage,
    /// Whether it is told that it comes close to the limit.
    pub(crate) warns: bool,
    pub(crate) now: Timestamp,
}

/// A request that is turned away.
pub(crate) struct Denied<'a> {
    pub(crate) endpoint: &'a DecisionCounters,
    pub(crate) policy: &'a DecisionCounters,
    pub(crate) caller: Subject<'a>,
    pub(crate) address: Option<IpAddr>,
    /// The number of the counter that denied it.
    pub(crate) counter: u64,
    /// When it may come back, if waiting helps.
    pub(crate) until: Option<Timestamp>,
    pub(crate) now: Timestamp,
}

/// What an operator should know of a request and a limit.
pub(crate) struct Exceeded<'a> {
    pub(crate) head: RequestHead<'a>,
    pub(crate) endpoint: &'a str,
    pub(crate) policy: &'a str,
    pub(crate) limit: u64,
    pub(crate) used: u64,
    pub(crate) window: u64,
    pub(crate) retry_after: Option<u64>,
    pub(crate) request_id: &'a str,
}

/// A request that is rejected before anything is counted.
pub(crate) struct Rejected<'a> {
    /// The label of the metric and of the event.
    pub(crate) reason: &'static str,
    pub(crate) head: RequestHead<'a>,
    pub(crate) caller: Subject<'a>,
    pub(crate) request_id: &'a str,
    pub(crate) now: Timestamp,
}

impl Telemetry {
    /// So often it is told how much of a quota is left.
    const TELLS_OF_REMAINING_EVERY: u64 = 16;

    /// So often it is measured how long a decision takes.
    const MEASURES_EVERY: u64 = 64;

    /// A request goes on. Says whether it is to be measured how long that took.
    #[inline]
    pub(crate) fn allowed(&self, allowed: &Allowed<'_>) -> bool {
        if !self.counts {
            return false;
        }
        let stripe = Stripe::current();
        allowed.endpoint.allow_with(stripe, allowed.usage);
        let before = allowed.policy.allow(stripe, allowed.warns);
        metric::allowed(allowed.policy, || {
            let is_told = before.is_multiple_of(Self::TELLS_OF_REMAINING_EVERY);
            is_told.then(|| f64::from(remaining_share(allowed.usage)))
        });
        cfg!(feature = "metrics") && before.is_multiple_of(Self::MEASURES_EVERY)
    }

    /// Whether somebody was told to come back, so that those who are allowed may be some of
    /// them.
    #[inline]
    pub(crate) fn tracks_retries(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whoever was told to come back may have done so. `counts` says whether a counter was asked.
    pub(crate) fn retried(
        &self,
        caller: &Subject<'_>,
        counts: impl FnOnce(u64) -> bool,
        now: Timestamp,
    ) {
        self.waiting.allowed(self.hash(caller), counts, now);
    }

    /// Whether anybody wants to hear of a request that goes on.
    #[inline]
    pub(crate) fn logs_allowed(warns: bool) -> bool {
        event::logs_allowed() || warns && event::logs_warnings()
    }

    /// Tells of a request that goes on.
    pub(crate) fn log_allowed(
        &self,
        allowed: &Allowed<'_>,
        caller: &Subject<'_>,
        exceeded: &Exceeded<'_>,
    ) {
        if event::logs_allowed() {
            event::allowed(exceeded, &self.names.of(caller));
        }
        if allowed.warns
            && event::logs_warnings()
            && let Some(untold) = {
                let kind = kind_of(self.hash(caller), allowed.policy);
                self.warnings.sample(kind, allowed.now)
            }
        {
            event::warned(exceeded, &self.names.of(caller), untold);
        }
    }

    /// A request is turned away.
    pub(crate) fn denied<'a>(&self, denied: &Denied<'_>, exceeded: impl FnOnce() -> Exceeded<'a>) {
        let is_heard = event::logs_denials();
        if !self.counts && !is_heard {
            return;
        }
        let address_hash = match denied.address {
            Some(address) => self.hash_of_address(address),
            None => self.hasher.hash_one(()),
        };
        // Whoever is known by the address has its hash as well, and that is at hand.
        let caller_hash = match address_of(&denied.caller) {
            Some(address) if Some(address) == denied.address => address_hash,
            _ => self.hash(&denied.caller),
        };
        if self.counts {
            self.count_denied(denied, caller_hash, address_hash);
        }
        if is_heard {
            let kind = kind_of(caller_hash, denied.policy);
            if let Some(untold) = self.denials.sample(kind, denied.now) {
                event::exceeded(exceeded, &self.names.of(&denied.caller), untold);
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
        metric::denied(endpoint, policy);
        let violation = Violation {
            endpoint,
            policy: policy.name(),
            caller,
            caller_hash,
            address_hash,
            now: *now,
        };
        lock(&self.violations).add(&violation);
        self.waiting
            .denied(caller_hash, denied.counter, denied.until, *now);
    }

    /// A rule that is only tried out would have turned a request away.
    pub(crate) fn would_deny<'a>(
        &self,
        policy: &DecisionCounters,
        caller: &Subject<'_>,
        now: Timestamp,
        exceeded: impl FnOnce() -> Exceeded<'a>,
    ) {
        if self.counts {
            policy.would_deny();
            metric::would_deny(policy);
        }
        if event::logs_warnings() {
            let kind = kind_of(self.hash(caller), policy);
            if let Some(untold) = self.trials.sample(kind, now) {
                event::would_exceed(exceeded, &self.names.of(caller), untold);
            }
        }
    }

    /// Counts a rejected request by its reason, and logs it: one event per reason and caller in
    /// ten seconds.
    #[cold]
    pub(crate) fn rejected(&self, rejected: &Rejected<'_>) {
        if self.counts {
            metric::rejected(rejected.reason);
        }
        if event::logs_denials() {
            let kind = self.hasher.hash_one((rejected.reason, &rejected.caller));
            if let Some(untold) = self.rejections.sample(kind, rejected.now) {
                event::rejected(rejected, &self.names.of(&rejected.caller), untold);
            }
        }
    }

    /// A request was not counted, since it is exempt.
    pub(crate) fn exempt(&self, why: &'static str, is_audited: bool, head: &RequestHead<'_>) {
        self.count_exempt(why);
        event::exempt(why, is_audited, 0, head);
    }

    /// Counts a request that is exempt because of maintenance. Its audit event is sampled: during
    /// maintenance every request would leave one.
    pub(crate) fn exempt_by_maintenance(
        &self,
        why: &'static str,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) {
        self.count_exempt(why);
        if event::logs_audit()
            && let Some(untold) = self.maintenance.sample(0, now)
        {
            event::exempt(why, true, untold.same, head);
        }
    }

    fn count_exempt(&self, why: &'static str) {
        if self.counts {
            self.exempt.increment();
            metric::exempt(why);
        }
    }

    /// A request was not counted, since nothing is for it, or nothing can.
    pub(crate) fn uncounted(&self) {
        if self.counts {
            self.uncounted.increment();
        }
    }

    /// A request was turned away because the store cannot answer.
    #[cold]
    pub(crate) fn unavailable(&self) {
        self.unavailable.fetch_add(1, Ordering::Relaxed);
        metric::unavailable();
    }

    /// Reports a request without an accepted credential and with one that is not accepted.
    #[cold]
    pub(crate) fn invalid_credentials(&self, reason: &'static str) {
        self.invalid_credentials.fetch_add(1, Ordering::Relaxed);
        metric::invalid_credentials(reason);
        event::token_refused(reason);
    }

    /// How long a decision took.
    #[cold]
    pub(crate) fn record_duration(&self, time: Duration, waited: bool) {
        if self.counts {
            metric::record_duration(&self.metrics, time, waited);
        }
    }

    fn hash(&self, subject: &Subject<'_>) -> u64 {
        match address_of(subject) {
            Some(address) => self.hash_of_address(address),
            None => self.hasher.hash_one(subject),
        }
    }

    /// In one piece, and no longer than it has to be: that is what makes a hash dear.
    fn hash_of_address(&self, address: IpAddr) -> u64 {
        match address.to_canonical() {
            IpAddr::V4(address) => self.hasher.hash_one(u64::from(address.to_bits())),
            IpAddr::V6(address) => self.hasher.hash_one(address.to_bits()),
        }
    }
}

/// What is told of one caller and one quota is of one kind. The hash is keyed already, and nobody
/// finds another one next to it.
const fn kind_of(caller_hash: u64, policy: &DecisionCounters) -> u64 {
    caller_hash.wrapping_add(policy.number() as u64)
}

/// The address of a caller of whom nothing else is known.
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

    /// Denials count by the hash of the address, and those who come back are found by the hash of
    /// the caller: where a caller is an address, the two have to be one.
    #[test]
    fn an_address_has_one_hash_however_it_comes() {
        let watch = Telemetry::new(TelemetrySettings::default(), Timestamp::EPOCH);
        let of = |text: &str| {
            let address: IpAddr = text.parse().unwrap();
            let hash = watch.hash(&Subject::named((Identity::IP, Value::Address(address))));
            assert_eq!(hash, watch.hash_of_address(address));
            hash
        };
        assert_eq!(of("203.0.113.9"), of("::ffff:203.0.113.9"));
        assert_ne!(of("203.0.113.9"), of("203.0.113.10"));
        let user = Subject::from([("user", "203.0.113.9")]);
        assert_ne!(of("203.0.113.9"), watch.hash(&user));
    }
}
