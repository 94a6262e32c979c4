//! Argument of builders: a quota, or its text.

use super::Quota;
use crate::error::ValidationError;

/// A quota, or the text of one.
pub trait IntoQuota {
    /// Returns the quota. Rejects text that is not a valid quota.
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

impl<T: AsRef<str>> IntoQuota for T {
    fn into_quota(self) -> Result<Quota, ValidationError> {
        self.as_ref().parse()
    }
}
