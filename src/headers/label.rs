//! Name of a quota in headers: [`QuotaName`].

use std::fmt;

use http::HeaderValue;

use super::ietf;
use crate::error::ValidationError;
use crate::key::{Counter, MAX_WHO, is_plain, policy_name};
use crate::quota::{Quota, Window};

/// The name of a quota as callers see it, `user:secrets:1h` (who, rule, window), with
/// everything about it that headers say and that no request changes.
///
/// Made once, when a policy is compiled, for each rule, quota and kind of caller.
///
/// ```
/// use tollgate::headers::QuotaName;
/// use tollgate::{Counter, Quota};
///
/// let counter = Counter::new("secrets", Quota::per_hour(500)?)?;
/// // The quota may be another than the counter's own: a tier has more of it.
/// let label = QuotaName::new("user", &counter, &Quota::per_hour(2_500)?)?;
/// assert_eq!(label.as_str(), "user:secrets:1h");
/// assert_eq!(label.limit(), 2_500);
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
#[derive(Clone)]
pub struct QuotaName {
    quota: Quota,
    name: Box<str>,
    policy: HeaderValue,
    limit: HeaderValue,
    /// `"user:secrets:1h";q=500;w=3600`
    ietf_policy: HeaderValue,
}

impl QuotaName {
    /// `who` is the dimension that is counted per (`user`, `ip`, `tenant`, … or `all`):
    /// 1 to 64 visible ASCII characters without quotes and backslashes.
    pub fn new(who: &str, counter: &Counter, quota: &Quota) -> Result<Self, ValidationError> {
        if !Self::can_name(who) {
            let shown: String = who.chars().take(MAX_WHO).collect();
            return Err(ValidationError::new(
                "dimension name",
                shown.escape_debug(),
                "1 to 64 visible ASCII characters, without quotes and backslashes",
            ));
        }
        let name = policy_name(who, counter.rule(), quota);
        let value = |text: &[u8]| {
            HeaderValue::from_bytes(text)
                .map_err(|_| ValidationError::new("policy name", &name, "visible ASCII characters"))
        };
        let mut item = String::new();
        ietf::push_policy(&mut item, &name, quota, quota.burst());
        Ok(Self {
            quota: *quota,
            policy: value(name.as_bytes())?,
            limit: HeaderValue::from(quota.burst()),
            ietf_policy: value(item.as_bytes())?,
            name: name.into(),
        })
    }

    /// Whether `who` can be the first part of a name.
    pub(crate) fn can_name(who: &str) -> bool {
        is_plain(who, MAX_WHO)
    }

    /// The name: `user:secrets:1h`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The quota.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// The most that can be used at once: the amount of the quota, or its burst.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.quota.burst()
    }

    /// The window of the quota.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.quota.window()
    }

    pub(super) fn policy_value(&self) -> HeaderValue {
        self.policy.clone()
    }

    /// The limit that was in force; an override may have set another than the policy's.
    pub(super) fn limit_value(&self, in_force: u64) -> HeaderValue {
        if in_force == self.limit() {
            self.limit.clone()
        } else {
            HeaderValue::from(in_force)
        }
    }

    /// The item of `RateLimit-Policy`, where no override is in force.
    pub(super) const fn ietf_policy(&self) -> &HeaderValue {
        &self.ietf_policy
    }
}

impl fmt::Display for QuotaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for QuotaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QuotaName({}, {})", self.name, self.limit())
    }
}
