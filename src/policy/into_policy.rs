//! Conversion into a policy.

use super::{IntoRule, Policy, PolicyBuilder};
use crate::error::ValidationErrors;

/// Value that can be converted into a policy: a policy, its builder, a rule or a quota.
///
/// A rule or a quota becomes the global rule: per caller, and per client IP if unauthenticated. A
/// quota can be a text.
///
/// ```
/// use tollgate::{Quota, RateLimitLayer};
///
/// let quota: Quota = "100/minute".parse()?;
/// let from_quota = RateLimitLayer::new(&quota)?;
/// let from_text = RateLimitLayer::new(String::from("100/minute"))?;
/// # let _ = (from_quota, from_text);
/// # Ok::<(), tollgate::Error>(())
/// ```
pub trait IntoPolicy {
    /// Converts the value.
    ///
    /// # Errors
    ///
    /// Returns all errors of the settings together.
    fn into_policy(self) -> Result<Policy, ValidationErrors>;
}

impl IntoPolicy for Policy {
    fn into_policy(self) -> Result<Policy, ValidationErrors> {
        Ok(self)
    }
}

impl IntoPolicy for PolicyBuilder {
    fn into_policy(self) -> Result<Policy, ValidationErrors> {
        self.build()
    }
}

impl<R: IntoRule> IntoPolicy for R {
    fn into_policy(self) -> Result<Policy, ValidationErrors> {
        Policy::builder().everyone(self).build()
    }
}
