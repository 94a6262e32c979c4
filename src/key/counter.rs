//! Identity of a counter within its subject, and policy names.

use std::fmt;
use std::sync::Arc;

use crate::error::ValidationError;
use crate::quota::Quota;

/// A quota under the name of its rule. Each subject has one count of it.
///
/// Rule, window and algorithm identify the counter; the amount and the position in a list do not. Limits
/// can change and rules can be reordered without losing a count.
///
/// ```
/// use tollgate::{Counter, Quota};
///
/// let counter = Counter::new("secrets", Quota::per_hour(500)?)?;
/// assert_eq!(counter.to_string(), "secrets:1h");
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    rule: Arc<str>,
    quota: Quota,
    id: u64,
}

impl Counter {
    const MAX_NAME: usize = 128;

    /// Returns a counter for `quota` under the rule's name: 1 to 128 visible ASCII characters without
    /// quotes and backslashes, because names go into headers.
    pub fn new(rule: &str, quota: Quota) -> Result<Self, ValidationError> {
        if !is_plain(rule, Self::MAX_NAME) {
            let shown: String = rule.chars().take(Self::MAX_NAME).collect();
            return Err(ValidationError::new(
                "rule name",
                shown.escape_debug(),
                "1 to 128 visible ASCII characters, without quotes and backslashes",
            ));
        }
        let (window, algorithm, buckets) = (quota.window(), quota.algorithm(), quota.buckets());
        let name = if quota.counts_nothing() {
            format!("{rule}\0{quota}")
        } else {
            format!("{rule}\0{window}\0{algorithm}\0{buckets}")
        };
        Ok(Self {
            rule: rule.into(),
            quota,
            id: name_hash(name.as_bytes()),
        })
    }

    /// Returns the rule's name.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Returns the quota.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Returns a hash of rule, window and algorithm, equal in all processes.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Returns the part of the id that Redis stores. Two counters of one policy must differ in it.
    pub(crate) const fn short_id(&self) -> [u8; 5] {
        let id = self.id.to_le_bytes();
        [id[0], id[1], id[2], id[3], id[4]]
    }
}

/// Rule and window: `secrets:1h`; or `secrets:blocked`, where there is no window.
impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.quota.counts_nothing() {
            return write!(f, "{}:{}", self.rule, self.quota);
        }
        write!(f, "{}:{}", self.rule, self.quota.window())
    }
}

/// Maximum length of the first part of a [policy name](policy_name).
pub(crate) const MAX_LABEL: usize = 64;

/// Label in place of one that cannot be in a header.
pub(crate) const UNNAMED_LABEL: &str = "caller";

/// Returns the label of dimensions in a policy name: [`UNNAMED_LABEL`] for one that cannot be in a header.
pub(crate) fn plain_label(label: &str) -> &str {
    if is_plain(label, MAX_LABEL) {
        label
    } else {
        UNNAMED_LABEL
    }
}

/// Returns the policy name of a quota: `user:secrets:1h` (subject kind, rule, window), or
/// `user:secrets:blocked` without a window.
pub(crate) fn policy_name(label: &str, rule: &str, quota: &Quota) -> String {
    if quota.counts_nothing() {
        return format!("{label}:{rule}:{quota}");
    }
    format!("{label}:{rule}:{}", quota.window())
}

/// Returns whether a name can be used in a header, quoted or not: 1 to `longest` visible ASCII characters
/// without quotes and backslashes.
pub(crate) fn is_plain(name: &str, longest: usize) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    (1..=longest).contains(&name.len()) && name.bytes().all(plain)
}

/// Returns a hash that is equal on all machines: FNV-1a. Not keyed, because operators choose the names,
/// and the fingerprint of the subject is keyed.
fn name_hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    // Mixed once more, so that names that differ only at the end differ in all bits.
    let hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 29
}
