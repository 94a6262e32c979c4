//! Rate-limit headers: writing and reading.
//!
//! Responses to counted requests have the headers that [`HeaderStyle`] selects:
//!
//! | set | fields |
//! |---|---|
//! | [`HeaderSet::Legacy`] | `X-RateLimit-Limit`, `-Remaining`, `-Reset`, `-Policy`, `-Warning` |
//! | [`HeaderSet::Ietf`] | `RateLimit-Policy`, `RateLimit` |
//!
//! [`QuotaName`] holds the parts that do not depend on the request. [`annotate`] adds the usages.
//!
//! ```
//! use http::HeaderMap;
//! use tollgate::headers::{HeaderSet, HeaderStyle, QuotaName, Report, QuotaUsage, annotate};
//! use tollgate::{Counter, Outcome, Quota, Timestamp, Usage};
//!
//! let counter = Counter::new("secrets", Quota::per_hour(500)?)?;
//! let name = QuotaName::new("user", &counter, counter.quota())?;
//!
//! let at = Timestamp::from_secs(1_730_332_800);
//! let usage = Usage::new(500, 1, Timestamp::from_secs(1_730_336_400), Outcome::Allowed);
//! let usage = QuotaUsage::new(&name, usage);
//! let mut headers = HeaderMap::new();
//! let style = HeaderStyle::new(HeaderSet::Both);
//! annotate(style, &mut headers, &Report::new(usage, at), [usage]);
//!
//! assert_eq!(headers["x-ratelimit-limit"], "500");
//! assert_eq!(headers["x-ratelimit-remaining"], "499");
//! assert_eq!(headers["x-ratelimit-reset"], "1730336400");
//! assert_eq!(headers["x-ratelimit-policy"], "user:secrets:1h");
//! assert_eq!(headers["ratelimit-policy"], r#""user:secrets:1h";q=500;w=3600"#);
//! assert_eq!(headers["ratelimit"], r#""user:secrets:1h";r=499;t=3600"#);
//! # Ok::<(), tollgate::ValidationError>(())
//! ```
//!
//! With the feature `client`, `Limits` reads these sets and those of other servers.
//!
//! # Values
//!
//! - A denial has 0 remaining, also if a request of lower cost would be allowed, because clients read
//!   this number.
//! - Times are rounded up. After a wait until `X-RateLimit-Reset`, of `t` seconds or of `Retry-After`
//!   seconds, the request is not denied by the same window again.
//! - If waiting does not help ([`Outcome::ExceedsCapacity`]), the response has no `X-RateLimit-Reset`, no `t`
//!   and no `Retry-After`.
//! - `unlimited` quotas are left out.
//! - Integers of Structured Fields have at most 15 digits. `q` and `r` are limited to that.
//! - `q` of a token bucket is its amount per window, the rate that a client can keep up;
//!   `X-RateLimit-Limit` and `r` are about its burst, which is what can be used at once.
//!
//! # Layers around layers
//!
//! If the response of the inner service has such headers already, the set with the smaller remaining
//! amount is kept as a whole. Fields of two sets are never mixed, and no field has two lines. Sets that
//! the style does not select are left as they are.

mod ietf;
mod legacy;
mod quota_name;
#[cfg(feature = "client")]
mod read;
mod style;

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::clock::Timestamp;
use crate::usage::{Outcome, Usage};

pub use self::quota_name::QuotaName;
#[cfg(feature = "client")]
pub use self::read::{Limits, read_retry_after};
pub use self::style::{HeaderSet, HeaderStyle, ResetStyle};

/// Usage of one quota of a request, with the name of the quota.
#[derive(Clone, Copy, Debug)]
pub struct QuotaUsage<'a> {
    name: &'a QuotaName,
    usage: Usage,
}

impl<'a> QuotaUsage<'a> {
    /// Creates the usage of the quota `name`.
    #[must_use]
    pub const fn new(name: &'a QuotaName, usage: Usage) -> Self {
        Self { name, usage }
    }

    /// Returns the name of the quota.
    #[must_use]
    pub const fn name(&self) -> &'a QuotaName {
        self.name
    }

    /// Returns the usage.
    #[must_use]
    pub const fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns the remaining amount as responses show it: 0 for a denial.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        if self.usage.is_allowed() {
            self.usage.remaining()
        } else {
            0
        }
    }

    /// Returns when the quota resets; `None` if waiting does not help.
    const fn reset_at(&self) -> Option<Timestamp> {
        match self.usage.outcome() {
            Outcome::ExceedsCapacity => None,
            _ => Some(self.usage.reset_at()),
        }
    }

    /// Returns whether headers show the quota. They leave `unlimited` ones out.
    const fn is_shown(&self) -> bool {
        self.usage.limit() != u64::MAX
    }

    /// Returns the seconds from `at` until the reset, rounded up; at least 1 for a denial.
    fn resets_in_secs(&self, at: Timestamp) -> Option<u64> {
        let wait = self.reset_at()?.duration_since(at);
        Some(if self.usage.is_allowed() {
            u64::try_from(wait.as_micros().div_ceil(1_000_000)).unwrap_or(u64::MAX)
        } else {
            retry_after_secs(wait)
        })
    }
}

/// Values of the headers of one response.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    binding: QuotaUsage<'a>,
    at: Timestamp,
    warn: bool,
}

impl<'a> Report<'a> {
    /// Creates a report. `binding` is the tightest quota of the request, `at` the instant of the
    /// decision.
    #[must_use]
    pub const fn new(binding: QuotaUsage<'a>, at: Timestamp) -> Self {
        Self {
            binding,
            at,
            warn: false,
        }
    }

    /// Sets whether `X-RateLimit-Warning` is written.
    #[must_use]
    pub const fn with_warning(mut self, warn: bool) -> Self {
        self.warn = warn;
        self
    }
}

/// Writes the headers of a response, allowed or denied. `visible` are all quotas of the request except
/// dry runs, including the binding one. It is only iterated if the style lists them.
///
/// See the [module](self) for the values and for responses that have such headers already.
#[inline]
pub fn annotate<'a>(
    style: HeaderStyle,
    headers: &mut HeaderMap,
    report: &Report<'a>,
    visible: impl IntoIterator<Item = QuotaUsage<'a>>,
) {
    if !report.binding.is_shown() {
        return;
    }
    let legacy = style.has_legacy().then(|| legacy::remaining(headers));
    let ietf = style.has_ietf().then(|| ietf::remaining(headers));
    if let Some(inner) = legacy.flatten().into_iter().chain(ietf.flatten()).min() {
        if inner <= report.binding.remaining() {
            return;
        }
        if style.has_legacy() {
            legacy::remove(headers);
        }
        if style.has_ietf() {
            ietf::remove(headers);
        }
    }
    if style.has_legacy() {
        legacy::write(headers, report, style.reset());
    }
    if style.has_ietf() {
        ietf::write(headers, report, visible);
    }
}

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

/// Returns whether a header is present. Most responses have few headers: comparing their names costs
/// less than hashing this one (10 instructions per header instead of 190).
fn is_present(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.keys().any(|present| present == name)
}

/// Returns a number as a header value, in one allocation. `HeaderValue::from` makes two.
pub(crate) fn number_value(number: u64) -> HeaderValue {
    let value = HeaderValue::from_str(itoa::Buffer::new().format(number));
    value.unwrap_or_else(|_| HeaderValue::from(number))
}
