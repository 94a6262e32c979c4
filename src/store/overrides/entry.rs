//! One limit that is set at run time: [`Override`].

use std::fmt;
use std::net::IpAddr;

use crate::clock::Timestamp;
use crate::error::ValidationError;
use crate::key::{OwnedSubject, Subject, Value, is_plain};
use crate::quota::{IntoQuota, Quota};

/// Limit that is set at run time for one subject under one rule, permanently or until an instant. Use
/// it to double a tenant's limit for a weekend, to block a user, or to lift a limit.
///
/// ```
/// use tollgate::{Override, Timestamp};
///
/// let launch = Override::new([("tenant", "acme")], "outbound", "2000/hour")?
///     .until(Timestamp::from_secs(1_796_083_200));
/// let blocked = Override::new([("user", "mallory")], "global", "blocked")?;
/// # let _ = (launch, blocked);
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
///
/// # Subject
///
/// The override applies to the counter of the subject. If the subject is one dimension of callers, it
/// applies to each caller with that dimension: if `global` counts per user, an override for a tenant
/// applies to each of its users. An override for a counter itself takes precedence, then one for the
/// dimension that identifies the caller, then the others.
///
/// # Quota
///
/// The amount of the quota replaces the amount of the rule, whatever the tier. Its window selects one
/// of the rule's quotas; `unlimited` and `blocked` apply to all of them. Counts are kept.
///
/// Callers that are `blocked` [until](Self::until) an instant get the time until then in `Retry-After`.
/// Without an end there is no `Retry-After`, because no wait helps.
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct Override {
    subject: OwnedSubject,
    rule: Box<str>,
    quota: Quota,
    until: Option<Timestamp>,
}

/// What an override sets for one quota of its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AppliedOverride {
    pub(crate) quota: Quota,
    /// When the block ends, on the wall clock. `None` if the quota is not `blocked` or has no end.
    pub(crate) blocked_until: Option<Timestamp>,
}

impl Override {
    /// Returns an override without an end.
    ///
    /// # Errors
    ///
    /// Rejects an invalid rule name and an invalid quota.
    pub fn new<'a>(
        subject: impl Into<Subject<'a>>,
        rule: impl Into<String>,
        quota: impl IntoQuota,
    ) -> Result<Self, ValidationError> {
        let rule = rule.into();
        if !is_plain(&rule, 128) {
            let expected = "the name of a rule";
            return Err(ValidationError::new(
                "rule name",
                rule.escape_debug(),
                expected,
            ));
        }
        Ok(Self {
            subject: OwnedSubject::from(&subject.into().with_addresses()),
            rule: rule.into(),
            quota: quota.into_quota()?,
            until: None,
        })
    }

    /// Returns an entry whose subject and rule identify overrides; its quota has no meaning.
    pub(crate) fn of(subject: Subject<'_>, rule: &str) -> Self {
        Self {
            subject: OwnedSubject::from(&subject.with_addresses()),
            rule: rule.into(),
            quota: Quota::unlimited(),
            until: None,
        }
    }

    /// Returns the entry that switches limits off until `until`. It is stored with the overrides because
    /// they reach the whole fleet and expire. No caller has its subject.
    pub(crate) fn maintenance(until: Timestamp) -> Self {
        Self {
            until: Some(until),
            ..Self::of(Self::maintenance_subject(), Self::MAINTENANCE)
        }
    }

    /// The rule of [`maintenance`](Self::maintenance).
    pub(crate) const MAINTENANCE: &str = "maintenance";

    /// The subject of [`maintenance`](Self::maintenance). Rules cannot name this dimension.
    pub(crate) const fn maintenance_subject() -> Subject<'static> {
        Subject::named(("@tollgate", Value::Text(Self::MAINTENANCE)))
    }

    pub(crate) fn is_maintenance(&self) -> bool {
        self.is_for(&Self::maintenance_subject(), Self::MAINTENANCE)
    }

    /// Replaces addresses by the networks that they are counted by.
    pub(crate) fn in_network(mut self, group: impl Fn(IpAddr) -> IpAddr) -> Self {
        self.subject.change_addresses(group);
        self
    }

    /// Limits the override to the time before `until`, on the wall clock.
    pub fn until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }

    /// Returns the subject.
    #[must_use]
    pub fn subject(&self) -> Subject<'_> {
        self.subject.as_subject()
    }

    /// Returns the name of the rule.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Returns the quota.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Returns the instant at which it expires.
    #[must_use]
    pub const fn expires_at(&self) -> Option<Timestamp> {
        self.until
    }

    /// Returns whether it has expired at `now`, which is wall-clock time.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// Returns what replaces this quota of its rule; `None` if it applies to another one.
    pub(crate) fn applied_to(&self, quota: &Quota) -> Option<AppliedOverride> {
        if self.quota.counts_nothing() {
            return Some(AppliedOverride {
                quota: self.quota,
                blocked_until: self.until.filter(|_| self.quota.is_blocked()),
            });
        }
        // `blocked` and `unlimited` have no amount to replace.
        if quota.counts_nothing() || quota.window() != self.quota.window() {
            return None;
        }
        let quota = quota.with_amount(self.quota.amount()).ok()?;
        Some(AppliedOverride {
            quota,
            blocked_until: None,
        })
    }

    /// Returns whether setting `other` removes this override.
    pub(super) fn is_replaced_by(&self, other: &Self) -> bool {
        self.is_for(&other.subject(), &other.rule)
            && (self.quota.window() == other.quota.window()
                || self.quota.counts_nothing()
                || other.quota.counts_nothing())
    }

    pub(super) fn is_for(&self, subject: &Subject<'_>, rule: &str) -> bool {
        *self.rule == *rule && self.subject() == *subject
    }
}

/// Omits the values of the subject.
impl fmt::Debug for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Override")
            .field("subject", &self.subject())
            .field("rule", &self.rule)
            .field("quota", &self.quota)
            .field("until", &self.until)
            .finish()
    }
}
