//! Name of a quota in headers: [`QuotaName`].

use std::fmt;

use http::HeaderValue;

use super::{ietf, number_value};
use crate::error::ValidationError;
use crate::key::{Counter, MAX_LABEL, is_plain, policy_name};
use crate::quota::{Quota, Window};

/// Name of a quota, `user:secrets:1h` (dimension, rule, window), with the header values that do not
/// depend on the request.
///
/// Created once for each quota, dimension and tier.
///
/// ```
/// use tollgate::headers::QuotaName;
/// use tollgate::{Counter, Quota};
///
/// let counter = Counter::new("secrets", Quota::per_hour(500)?)?;
/// // A tier can have another quota than the counter.
/// let name = QuotaName::new("user", &counter, &Quota::per_hour(2_500)?)?;
/// assert_eq!(name.as_str(), "user:secrets:1h");
/// assert_eq!(name.limit(), 2_500);
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
    /// Creates a name. `label` is the dimension that is counted per (`user`, `ip`, `tenant`, … or
    /// `all`): 1 to 64 visible ASCII characters without quotes and backslashes.
    pub fn new(label: &str, counter: &Counter, quota: &Quota) -> Result<Self, ValidationError> {
        if !Self::can_name(label) {
            let shown: String = label.chars().take(MAX_LABEL).collect();
            return Err(ValidationError::new(
                "dimension name",
                shown.escape_debug(),
                "1 to 64 visible ASCII characters, without quotes and backslashes",
            ));
        }
        let name = policy_name(label, counter.rule(), quota);
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

    /// Returns whether `label` can be the first part of a name.
    pub(crate) fn can_name(label: &str) -> bool {
        is_plain(label, MAX_LABEL)
    }

    /// Returns the name: `user:secrets:1h`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Returns the quota.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Returns the largest amount that can be used at once: the burst of the quota.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.quota.burst()
    }

    /// Returns the window of the quota.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.quota.window()
    }

    pub(super) fn policy_value(&self) -> HeaderValue {
        self.policy.clone()
    }

    /// Returns the value of a limit, which an override can have replaced.
    pub(super) fn limit_value(&self, limit: u64) -> HeaderValue {
        if limit == self.limit() {
            self.limit.clone()
        } else {
            number_value(limit)
        }
    }

    /// Returns the item of `RateLimit-Policy`, for the limit of the policy.
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
