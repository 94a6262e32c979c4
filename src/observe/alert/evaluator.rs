//! Evaluates when alerts fire and when they are resolved.

use std::collections::{HashMap, VecDeque};

use super::{Alert, AlertKind, Alerts};
use crate::clock::Timestamp;
use crate::key::OwnedSubject;
use crate::observe::statistics::Distinct;
use crate::observe::violations::Violations;

/// The firing alerts, and the latest changes for delivery.
#[derive(Debug)]
pub(in crate::observe) struct AlertEvaluator {
    settings: Alerts,
    /// By kind; offenders also by the hash of the caller, which is 0 for other kinds.
    firing: HashMap<(AlertKind, u64), Alert>,
    /// The latest changes, oldest first.
    changes: VecDeque<Alert>,
    /// Number of changes before the first of them.
    dropped: u64,
}

/// Condition of an alert that holds.
struct Cause {
    key: (AlertKind, u64),
    value: f64,
    threshold: f64,
    addresses: Option<Distinct>,
    subject: Option<OwnedSubject>,
}

impl AlertEvaluator {
    /// Offenders with an alert of their own at a time.
    const MAX_OFFENDERS: usize = 100;

    /// A receiver that is further behind misses the oldest changes.
    const MAX_CHANGES: usize = 1_000;

    pub(in crate::observe) fn new() -> Self {
        Self {
            settings: Alerts::default(),
            firing: HashMap::new(),
            changes: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Replaces the thresholds. They apply from the next evaluation: an alert that the new thresholds do
    /// not cause is resolved, one that they also cause keeps firing.
    pub(in crate::observe) const fn set_thresholds(&mut self, settings: Alerts) {
        self.settings = settings;
    }

    /// Returns the alerts that begin to fire and those that are resolved.
    pub(in crate::observe) fn evaluate(
        &mut self,
        violations: &Violations,
        now: Timestamp,
    ) -> Vec<Alert> {
        let causes = self.causes(violations, now);
        let mut changes = Vec::new();
        let is_resolved =
            |key: &(AlertKind, u64), _: &mut Alert| !causes.iter().any(|cause| cause.key == *key);
        for (_, mut alert) in self.firing.extract_if(is_resolved) {
            alert.resolved_at = Some(now);
            changes.push(alert);
        }
        for cause in causes {
            if let Some(known) = self.firing.get_mut(&cause.key) {
                (known.value, known.threshold) = (cause.value, cause.threshold);
                known.addresses = cause.addresses;
                continue;
            }
            let alert = Alert {
                kind: cause.key.0,
                since: now,
                resolved_at: None,
                value: cause.value,
                threshold: cause.threshold,
                addresses: cause.addresses,
                subject: cause.subject,
            };
            self.firing.insert(cause.key, alert.clone());
            changes.push(alert);
        }
        changes.sort_by_key(|alert| (alert.is_firing(), u8::MAX - alert.severity() as u8));
        for alert in &changes {
            if self.changes.len() == Self::MAX_CHANGES {
                self.changes.pop_front();
                self.dropped += 1;
            }
            self.changes.push_back(alert.clone());
        }
        changes
    }

    #[expect(clippy::cast_precision_loss, reason = "approximate for people")]
    fn causes(&self, violations: &Violations, now: Timestamp) -> Vec<Cause> {
        let settings = &self.settings;
        let mut causes = Vec::new();
        let mut add = |kind, value, threshold, addresses| {
            causes.push(Cause {
                key: (kind, 0),
                value,
                threshold,
                addresses,
                subject: None,
            });
        };
        let recent = violations.denied(now, 10);
        // Counts thousands of known addresses under the lock, so not at each tick without denials.
        let is_above = recent > settings.attack_denials;
        let addresses = is_above.then(|| violations.addresses(now));
        if addresses.is_some_and(|addresses| addresses.count > settings.attack_addresses) {
            let threshold = settings.attack_denials as f64;
            let kind = AlertKind::DistributedAttack;
            add(kind, recent as f64, threshold, addresses);
        }
        let (_, requests) = violations.ordinary(now);
        let share = violations.ordinary_denied(now).unwrap_or_default();
        if requests >= settings.ordinary_requests && share > settings.ordinary_denied {
            let threshold = settings.ordinary_denied;
            add(AlertKind::OrdinaryCallersDenied, share, threshold, None);
        }
        let last_hour = violations.denied(now, 60);
        if last_hour > settings.many_denials {
            let threshold = settings.many_denials as f64;
            add(AlertKind::ManyDenials, last_hour as f64, threshold, None);
        }
        let firing = self.firing.keys();
        let firing = firing.filter(|(kind, _)| *kind == AlertKind::Offender);
        let mut room = Self::MAX_OFFENDERS.saturating_sub(firing.count());
        for (hash, subject, denials) in violations.offenders_above(settings.offender) {
            let key = (AlertKind::Offender, hash);
            // Alerts that fire have precedence, so that they do not flap.
            if !self.firing.contains_key(&key) {
                if room == 0 {
                    continue;
                }
                room -= 1;
            }
            causes.push(Cause {
                key,
                value: denials as f64,
                threshold: settings.offender as f64,
                addresses: None,
                subject: Some(OwnedSubject::from(&subject)),
            });
        }
        causes
    }

    /// Returns the firing alerts, most severe first.
    pub(in crate::observe) fn firing(&self) -> Vec<Alert> {
        let mut firing: Vec<Alert> = self.firing.values().cloned().collect();
        firing.sort_by(|one, other| {
            let severity = other.severity().cmp(&one.severity());
            severity.then(other.value.total_cmp(&one.value))
        });
        firing
    }

    /// Returns the number of changes so far.
    pub(in crate::observe) fn delivered(&self) -> u64 {
        self.dropped + self.changes.len() as u64
    }

    /// Returns the changes after the first `known`.
    pub(in crate::observe) fn delivered_after(&self, known: u64) -> Vec<Alert> {
        let skipped = usize::try_from(known.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        self.changes.iter().skip(skipped).cloned().collect()
    }
}
