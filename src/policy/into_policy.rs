//! What can be made into a policy.

use super::{Policy, PolicyBuilder, Rule};
use crate::error::ValidationErrors;
use crate::quota::Quota;

/// A policy, or a quota that is all of it: per caller, and per address for the anonymous.
pub trait IntoPolicy {
    /// The policy.
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
