//! The wire format of rate limit headers, written and read in one place.
//!
//! Every counted response says where its caller stands, in the family that was chosen with
//! [`HeaderStyle`]:
//!
//! | family | fields |
//! |---|---|
//! | [`HeaderSet::Legacy`] | `X-RateLimit-Limit`, `-Remaining`, `-Reset`, `-Policy`, `-Warning` |
//! | [`HeaderSet::Ietf`] | `RateLimit-Policy`, `RateLimit` |
//!
//! What can be known before a request is prepared in a [`QuotaName`]; [`annotate`] puts it together
//! with how the counters stand.
//!
//! ```
//! use http::HeaderMap;
//! use tollgate::headers::{HeaderSet, HeaderStyle, QuotaName, Report, QuotaUsage, annotate};
//! use tollgate::{Counter, Outcome, Quota, Timestamp, Usage};
//!
//! let counter = Counter::new("secrets", Quota::per_hour(500)?)?;
//! let label = QuotaName::new("user", &counter, counter.quota())?;
//!
//! let at = Timestamp::from_secs(1_730_332_800);
//! let usage = Usage::new(500, 1, Timestamp::from_secs(1_730_336_400), Outcome::Allowed);
//! let standing = QuotaUsage::new(&label, usage);
//! let mut headers = HeaderMap::new();
//! let style = HeaderStyle::new(HeaderSet::Both);
//! annotate(style, &mut headers, &Report::new(standing, at), [standing]);
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
//! With the feature `client`, `Limits` reads what others write: these families and more.
//!
//! # What the numbers say
//!
//! - A denial always shows 0 remaining, even if a smaller request would still fit: the caller
//!   was turned away, and clients look at this number to know it.
//! - All times are rounded up. A caller who waits until `X-RateLimit-Reset`, for `t` seconds or
//!   for `Retry-After` seconds has waited long enough.
//! - Where waiting cannot help ([`Outcome::Never`]), there is no time at
//!   all: no `X-RateLimit-Reset`, no `t`, no `Retry-After`.
//! - Quotas that are `unlimited` do not show.
//! - Integers of Structured Fields have at most 15 digits; `q` and `r` stop there.
//! - `q` of a token bucket is its amount per window, the rate that a client can keep up;
//!   `X-RateLimit-Limit` and `r` are about its burst, which is what can be used at once.
//!
//! # Layers around layers
//!
//! A response carries one set. If an inner layer (or a service behind a proxy) has already put
//! one on, the tighter of the two stays, whole: names of both are never mixed, and no name ever
//! has two lines. A family that is not switched on is not looked at.

mod ietf;
mod label;
mod legacy;
#[cfg(feature = "client")]
mod read;
mod retry_after;
mod style;

use http::{HeaderMap, HeaderValue};

use crate::clock::Timestamp;
use crate::usage::{Outcome, Usage};

pub use self::label::QuotaName;
#[cfg(feature = "client")]
pub use self::read::{Limits, read_retry_after};
pub use self::retry_after::retry_after_secs;
pub use self::style::{HeaderSet, HeaderStyle, IetfDraft, ResetStyle};

/// How one quota of a request stands, and what it is called.
#[derive(Clone, Copy, Debug)]
pub struct QuotaUsage<'a> {
    label: &'a QuotaName,
    usage: Usage,
}

impl<'a> QuotaUsage<'a> {
    /// The quota called `label` stands like this.
    #[must_use]
    pub const fn new(label: &'a QuotaName, usage: Usage) -> Self {
        Self { label, usage }
    }

    /// What it is called.
    #[must_use]
    pub const fn label(&self) -> &'a QuotaName {
        self.label
    }

    /// How it stands.
    #[must_use]
    pub const fn usage(&self) -> &Usage {
        &self.usage
    }

    /// What callers are told is left: nothing, to those who were denied.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        if self.usage.is_allowed() {
            self.usage.remaining()
        } else {
            0
        }
    }

    /// When it resets, unless that is not a matter of time.
    const fn reset_at(&self) -> Option<Timestamp> {
        match self.usage.outcome() {
            Outcome::Never => None,
            _ => Some(self.usage.reset_at()),
        }
    }

    /// Whether there is anything to tell: unlimited quotas keep quiet.
    const fn is_shown(&self) -> bool {
        self.usage.limit() != u64::MAX
    }

    /// Seconds from `at` until it resets, rounded up; to the denied never 0.
    fn resets_in_secs(&self, at: Timestamp) -> Option<u64> {
        let wait = self.reset_at()?.duration_since(at);
        Some(if self.usage.is_allowed() {
            u64::try_from(wait.as_micros().div_ceil(1_000_000)).unwrap_or(u64::MAX)
        } else {
            retry_after_secs(wait)
        })
    }
}

/// What the headers of one response are to say.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    binding: QuotaUsage<'a>,
    at: Timestamp,
    warn: bool,
}

impl<'a> Report<'a> {
    /// `binding` is the quota that speaks for all of the request's, `at` the instant of the
    /// decision.
    #[must_use]
    pub const fn new(binding: QuotaUsage<'a>, at: Timestamp) -> Self {
        Self {
            binding,
            at,
            warn: false,
        }
    }

    /// Whether the caller is to be warned that the limit is near.
    #[must_use]
    pub const fn with_warning(mut self, warn: bool) -> Self {
        self.warn = warn;
        self
    }

    /// The limit, as the value of a header.
    #[inline]
    pub(crate) fn limit_value(&self) -> HeaderValue {
        let limit = self.binding.usage().limit();
        self.binding.label().limit_value(limit)
    }

    /// What the quota is called, as the value of a header.
    #[inline]
    pub(crate) fn policy_value(&self) -> HeaderValue {
        self.binding.label().policy_value()
    }

    /// Whether there is nothing to write.
    const fn is_empty(&self, style: HeaderStyle) -> bool {
        !self.binding.is_shown() || style.is_none()
    }
}

/// Puts the headers on a response, allowed or denied. `visible` are all quotas of the request
/// that callers may know of (no dry runs), the binding one included; they are asked for only
/// where the style lists them.
///
/// The [module](self) says what is written, and what happens to a set that is already there.
#[inline]
pub fn annotate<'a>(
    style: HeaderStyle,
    headers: &mut HeaderMap,
    report: &Report<'a>,
    visible: impl IntoIterator<Item = QuotaUsage<'a>>,
) {
    if report.is_empty(style) {
        return;
    }
    // The usual case costs one look less: that nothing is there of the legacy family is found out
    // by writing it.
    let legacy_alone = style.set() == HeaderSet::Legacy;
    if legacy_alone && legacy::write_if_alone(headers, report, style.reset()) {
        return;
    }
    annotate_at_length(style, headers, report, visible);
}

fn annotate_at_length<'a>(
    style: HeaderStyle,
    headers: &mut HeaderMap,
    report: &Report<'a>,
    visible: impl IntoIterator<Item = QuotaUsage<'a>>,
) {
    // As above, unless it was found out already that there is something.
    let both_alone = style.set() == HeaderSet::Both && !ietf::is_there(headers);
    let written = both_alone && legacy::write_if_alone(headers, report, style.reset());
    if !written {
        if let Some(inner) = remaining_of_inner(style, headers) {
            if inner <= report.binding.remaining() {
                return;
            }
            remove_inner(style, headers);
        }
        if style.has_legacy() {
            legacy::write_if_alone(headers, report, style.reset());
        }
    }
    if style.has_ietf() {
        match style.draft() {
            IetfDraft::Draft11 => ietf::write(headers, report, visible),
        }
    }
}

/// What is left according to the set that an inner layer has put on.
#[inline]
fn remaining_of_inner(style: HeaderStyle, headers: &HeaderMap) -> Option<u64> {
    let legacy = style.has_legacy().then(|| legacy::remaining(headers));
    let ietf = style.has_ietf().then(|| ietf::remaining(headers));
    legacy.flatten().into_iter().chain(ietf.flatten()).min()
}

#[cold]
fn remove_inner(style: HeaderStyle, headers: &mut HeaderMap) {
    if style.has_legacy() {
        legacy::remove(headers);
    }
    if style.has_ietf() {
        ietf::remove(headers);
    }
}
