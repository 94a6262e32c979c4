//! Quotas, or text that says one: what builders take.

use super::Quota;
use crate::error::Invalid;

/// A quota, or text that says one.
pub trait IntoQuota {
    /// The quota.
    fn into_quota(self) -> Result<Quota, Invalid>;
}

impl IntoQuota for Quota {
    fn into_quota(self) -> Result<Quota, Invalid> {
        Ok(self)
    }
}

impl IntoQuota for &Quota {
    fn into_quota(self) -> Result<Quota, Invalid> {
        Ok(*self)
    }
}

impl IntoQuota for String {
    fn into_quota(self) -> Result<Quota, Invalid> {
        self.parse()
    }
}

impl IntoQuota for &String {
    fn into_quota(self) -> Result<Quota, Invalid> {
        self.parse()
    }
}

impl IntoQuota for &str {
    fn into_quota(self) -> Result<Quota, Invalid> {
        self.parse()
    }
}
