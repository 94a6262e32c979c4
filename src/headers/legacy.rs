//! `X-RateLimit-*`: what most clients know.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::number::header_value;
use super::{Report, ResetStyle};
use crate::clock::Timestamp;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("x-ratelimit-policy");
const WARNING: HeaderName = HeaderName::from_static("x-ratelimit-warning");

const NEAR: HeaderValue = HeaderValue::from_static("Approaching rate limit");

/// Writes the whole set. Nothing of another one is there.
pub(super) fn write(headers: &mut HeaderMap, report: &Report<'_>, style: ResetStyle) {
    let binding = &report.binding;
    let label = binding.label();
    let reset = match style {
        ResetStyle::UnixSeconds => binding.reset_at().map(Timestamp::as_secs_rounded_up),
        ResetStyle::DeltaSeconds => binding.resets_in_secs(report.at),
    };
    headers.insert(LIMIT, label.limit_value(binding.usage().limit()));
    headers.insert(REMAINING, header_value(binding.remaining()));
    if let Some(reset) = reset {
        headers.insert(RESET, header_value(reset));
    }
    headers.insert(POLICY, label.policy_value());
    if report.warn {
        headers.insert(WARNING, NEAR);
    }
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
