//! When alerts begin and when they are over.

use std::collections::{HashMap, VecDeque};

use super::{Alert, AlertKind, Alerts};
use crate::clock::Timestamp;
use crate::key::OwnedSubject;
use crate::observe::violations::Violations;

/// The alerts that are firing, and what has lately been told of them.
#[derive(Debug)]
pub(in crate::observe) struct AlertEvaluator {
    settings: Alerts,
    /// By what they are about; an offender also by whose hash.
    firing: HashMap<(AlertKind, u64), Alert>,
    told: VecDeque<Alert>,
    /// How many were told before the first of them.
    forgotten: u64,
}

/// Something that should be firing.
struct Cause {
    about: (AlertKind, u64),
    value: f64,
    threshold: f64,
    subject: Option<OwnedSubject>,
}

impl AlertEvaluator {
    /// Of more offenders than this at a time nobody wants to be told one by one.
    const MOST_OFFENDERS: usize = 100;

    /// Who does not take alerts for so long misses the oldest.
    const REMEMBERED: usize = 1_000;

    pub(in crate::observe) fn new(settings: Alerts) -> Self {
        Self {
            settings,
            firing: HashMap::new(),
            told: VecDeque::new(),
            forgotten: 0,
        }
    }

    /// Looks at what there is, and says what begins and what is over.
    pub(in crate::observe) fn tick(
        &mut self,
        violations: &Violations,
        now: Timestamp,
    ) -> Vec<Alert> {
        let causes = self.causes(violations, now);
        let mut changes = Vec::new();
        let is_over = |about: &(AlertKind, u64), _: &mut Alert| {
            !causes.iter().any(|cause| cause.about == *about)
        };
        for (_, mut alert) in self.firing.extract_if(is_over) {
            alert.resolved_at = Some(now);
            changes.push(alert);
        }
        for cause in causes {
            if let Some(known) = self.firing.get_mut(&cause.about) {
                known.value = cause.value;
                continue;
            }
            let alert = Alert {
                kind: cause.about.0,
                since: now,
                resolved_at: None,
                value: cause.value,
                threshold: cause.threshold,
                subject: cause.subject,
            };
            self.firing.insert(cause.about, alert.clone());
            changes.push(alert);
        }
        changes.sort_by_key(|alert| (alert.is_firing(), u8::MAX - alert.severity() as u8));
        for alert in &changes {
            if self.told.len() == Self::REMEMBERED {
                self.told.pop_front();
                self.forgotten += 1;
            }
            self.told.push_back(alert.clone());
        }
        changes
    }

    #[expect(clippy::cast_precision_loss, reason = "for people")]
    fn causes(&self, violations: &Violations, now: Timestamp) -> Vec<Cause> {
        let settings = &self.settings;
        let mut causes = Vec::new();
        let mut about_all = |kind, value, threshold| {
            causes.push(Cause {
                about: (kind, 0),
                value,
                threshold,
                subject: None,
            });
        };
        let lately = violations.denied(now, 10);
        if lately > settings.attack_denials
            && violations.addresses(now).count() > settings.attack_addresses
        {
            let threshold = settings.attack_denials as f64;
            about_all(AlertKind::DistributedAttack, lately as f64, threshold);
        }
        let (denied, requests) = violations.ordinary(now);
        let share = denied as f64 / requests.max(1) as f64;
        if requests >= settings.ordinary_requests && share > settings.ordinary_denied {
            let threshold = settings.ordinary_denied;
            about_all(AlertKind::OrdinaryCallersDenied, share, threshold);
        }
        let in_an_hour = violations.denied(now, 60);
        if in_an_hour > settings.many_denials {
            let threshold = settings.many_denials as f64;
            about_all(AlertKind::ManyDenials, in_an_hour as f64, threshold);
        }
        let told_of = self.firing.keys();
        let told_of = told_of.filter(|(kind, _)| *kind == AlertKind::Offender);
        let mut room = Self::MOST_OFFENDERS.saturating_sub(told_of.count());
        for (hash, subject, denials) in violations.offenders_above(settings.offender) {
            let about = (AlertKind::Offender, hash);
            // Those that are told of stay, so that nobody comes and goes.
            if !self.firing.contains_key(&about) {
                if room == 0 {
                    continue;
                }
                room -= 1;
            }
            causes.push(Cause {
                about,
                value: denials as f64,
                threshold: settings.offender as f64,
                subject: Some(OwnedSubject::from(&subject)),
            });
        }
        causes
    }

    /// Those that are firing, the most severe first.
    pub(in crate::observe) fn firing(&self) -> Vec<Alert> {
        let mut firing: Vec<Alert> = self.firing.values().cloned().collect();
        firing.sort_by(|one, other| {
            let severity = other.severity().cmp(&one.severity());
            severity.then(other.value.total_cmp(&one.value))
        });
        firing
    }

    /// How many of a kind are firing.
    pub(in crate::observe) fn count(&self, kind: AlertKind) -> u64 {
        let firing = self.firing.keys().filter(|(firing, _)| *firing == kind);
        firing.count() as u64
    }

    /// How many have been told so far.
    pub(in crate::observe) fn told(&self) -> u64 {
        self.forgotten + self.told.len() as u64
    }

    /// What was told after the first `known`.
    pub(in crate::observe) fn told_after(&self, known: u64) -> Vec<Alert> {
        let skipped = usize::try_from(known.saturating_sub(self.forgotten)).unwrap_or(usize::MAX);
        self.told.iter().skip(skipped).cloned().collect()
    }
}
