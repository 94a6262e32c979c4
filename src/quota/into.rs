//! Quotas, or text that says one: what builders take.

use super::Quota;
use crate::error::ValidationError;

/// A quota, or text that says one.
pub trait IntoQuota {
    /// The quota.
    fn into_quota(self) -> Result<Quota, ValidationError>;
}

impl IntoQuota for Quota {
    fn into_quota(self) -> Result<Quota, ValidationError> {
        Ok(self)
    }
}

impl IntoQuota for &Quota {
    fn into_quota(self) -> Result<Quota, ValidationError> {
        Ok(*self)
    }
}

impl IntoQuota for String {
    fn into_quota(self) -> Result<Quota, ValidationError> {
        self.parse()
    }
}

impl IntoQuota for &String {
    fn into_quota(self) -> Result<Quota, ValidationError> {
        self.parse()
    }
}

impl IntoQuota for &str {
    fn into_quota(self) -> Result<Quota, ValidationError> {
        self.parse()
    }
}
