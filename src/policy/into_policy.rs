//! Conversion into a policy.

use super::{Policy, PolicyBuilder, Rule};
use crate::error::ValidationErrors;
use crate::quota::Quota;

/// Value that can be converted into a policy: a policy, its builder, a rule or a quota.
///
/// A rule or a quota becomes the global rule: per caller, and per client IP if unauthenticated.
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

impl IntoPolicy for &str {
    fn into_policy(self) -> Result<Policy, ValidationErrors> {
        Policy::builder().everyone(self).build()
    }
}

impl IntoPolicy for Quota {
    fn into_policy(self) -> Result<Policy, ValidationErrors> {
        Policy::builder().everyone(self).build()
    }
}

impl IntoPolicy for Rule {
    fn into_policy(self) -> Result<Policy, ValidationErrors> {
        Policy::builder().everyone(self).build()
    }
}
