//! `X-RateLimit-*`: what most clients know.

use http::header::Entry;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::number::header_value;
use super::recent::recent_value;
use super::{Report, ResetStyle};

pub(crate) const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
pub(crate) const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
pub(crate) const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
pub(crate) const POLICY: HeaderName = HeaderName::from_static("x-ratelimit-policy");
const WARNING: HeaderName = HeaderName::from_static("x-ratelimit-warning");

const NEAR: HeaderValue = HeaderValue::from_static("Approaching rate limit");

/// The values of the set.
pub(crate) struct Values {
    pub(crate) limit: HeaderValue,
    pub(crate) remaining: HeaderValue,
    /// None where waiting cannot help.
    pub(crate) reset: Option<HeaderValue>,
    pub(crate) policy: HeaderValue,
}

impl Values {
    #[inline]
    pub(crate) fn of(report: &Report<'_>, style: ResetStyle) -> Self {
        let binding = &report.binding;
        let label = binding.label();
        let reset = match style {
            ResetStyle::UnixSeconds => binding
                .reset_at()
                .map(|at| recent_value(at.as_secs_rounded_up())),
            ResetStyle::DeltaSeconds => binding.resets_in_secs(report.at).map(header_value),
        };
        Self {
            limit: label.limit_value(binding.usage().limit()),
            remaining: header_value(binding.remaining()),
            reset,
            policy: label.policy_value(),
        }
    }
}

/// Writes the whole set if no other is there, with no more looking than writing takes. Returns
/// whether it did.
pub(super) fn write_if_alone(
    headers: &mut HeaderMap,
    report: &Report<'_>,
    style: ResetStyle,
) -> bool {
    let Entry::Vacant(place) = headers.entry(REMAINING) else {
        return false;
    };
    let values = Values::of(report, style);
    place.insert(values.remaining);
    headers.insert(LIMIT, values.limit);
    if let Some(reset) = values.reset {
        headers.insert(RESET, reset);
    }
    headers.insert(POLICY, values.policy);
    if report.warn {
        headers.insert(WARNING, NEAR);
    }
    true
}

/// The least that is left according to the set that is there; endless, if it cannot be read.
#[inline]
pub(super) fn remaining(headers: &HeaderMap) -> Option<u64> {
    // One look where there is nothing, which is nearly always.
    headers.get(REMAINING).map(|_| least(headers))
}

#[cold]
fn least(headers: &HeaderMap) -> u64 {
    let lines = headers.get_all(REMAINING).into_iter();
    lines
        .filter_map(|line| line.to_str().ok()?.trim().parse().ok())
        .min()
        .unwrap_or(u64::MAX)
}

pub(super) fn remove(headers: &mut HeaderMap) {
    for name in [LIMIT, REMAINING, RESET, POLICY, WARNING] {
        headers.remove(name);
    }
}
