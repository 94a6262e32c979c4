//! `Retry-After`, in seconds.

use std::time::Duration;

/// Returns a wait in seconds for `Retry-After`: rounded up, at least 1.
///
/// ```
/// use std::time::Duration;
/// use tollgate::headers::retry_after_secs;
///
/// assert_eq!(retry_after_secs(Duration::from_millis(2_001)), 3);
/// assert_eq!(retry_after_secs(Duration::ZERO), 1);
/// ```
#[must_use]
pub const fn retry_after_secs(wait: Duration) -> u64 {
    let parts = if wait.subsec_nanos() > 0 { 1 } else { 0 };
    let secs = wait.as_secs().saturating_add(parts);
    if secs == 0 { 1 } else { secs }
}
