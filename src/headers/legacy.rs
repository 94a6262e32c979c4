//! Header set `X-RateLimit-*`.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Report, ResetStyle, is_present, number_value};
use crate::clock::Timestamp;

pub(super) const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
pub(super) const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
pub(super) const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
pub(super) const POLICY: HeaderName = HeaderName::from_static("x-ratelimit-policy");
const WARNING: HeaderName = HeaderName::from_static("x-ratelimit-warning");

const NEAR: HeaderValue = HeaderValue::from_static("Approaching rate limit");

/// Writes the set. No other set is present.
pub(super) fn write(headers: &mut HeaderMap, report: &Report<'_>, style: ResetStyle) {
    let (binding, name) = (&report.binding, report.binding.name());
    headers.insert(LIMIT, name.limit_value(binding.usage().limit()));
    headers.insert(REMAINING, number_value(binding.remaining()));
    // No reset if waiting does not help.
    let reset = match style {
        ResetStyle::UnixSeconds => binding.reset_at().map(Timestamp::as_secs_rounded_up),
        ResetStyle::DeltaSeconds => binding.resets_in_secs(report.at),
    };
    if let Some(reset) = reset {
        headers.insert(RESET, number_value(reset));
    }
    headers.insert(POLICY, name.policy_value());
    if report.warn {
        headers.insert(WARNING, NEAR);
    }
}

/// Returns the smallest remaining amount of the set that is present; `u64::MAX` if it is not a number.
#[inline]
pub(super) fn remaining(headers: &HeaderMap) -> Option<u64> {
    is_present(headers, &REMAINING).then(|| least(headers))
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
