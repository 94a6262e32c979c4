//! Header set `X-RateLimit-*`.

use http::header::Entry;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Report, ResetStyle};
use crate::clock::Timestamp;

pub(super) const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
pub(super) const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
pub(super) const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
pub(super) const POLICY: HeaderName = HeaderName::from_static("x-ratelimit-policy");
const WARNING: HeaderName = HeaderName::from_static("x-ratelimit-warning");

const NEAR: HeaderValue = HeaderValue::from_static("Approaching rate limit");

/// Returns the value of `X-RateLimit-Reset`; `None` if waiting does not help.
#[inline]
fn reset_number(report: &Report<'_>, style: ResetStyle) -> Option<u64> {
    let binding = &report.binding;
    match style {
        ResetStyle::UnixSeconds => binding.reset_at().map(Timestamp::as_secs_rounded_up),
        ResetStyle::DeltaSeconds => binding.resets_in_secs(report.at),
    }
}

/// Writes the set unless another one is present. Returns whether it was written.
pub(super) fn write_if_alone(
    headers: &mut HeaderMap,
    report: &Report<'_>,
    style: ResetStyle,
) -> bool {
    let remaining = HeaderValue::from(report.binding.remaining());
    // `append` returns whether the name was present, which saves a look-up.
    if headers.append(REMAINING, remaining) {
        take_back(headers);
        return false;
    }
    headers.insert(LIMIT, report.limit_value());
    if let Some(reset) = reset_number(report, style) {
        headers.insert(RESET, HeaderValue::from(reset));
    }
    headers.insert(POLICY, report.policy_value());
    if report.warn {
        headers.insert(WARNING, NEAR);
    }
    true
}

/// Removes the line that `write_if_alone` has appended.
#[cold]
fn take_back(headers: &mut HeaderMap) {
    if let Entry::Occupied(mut place) = headers.entry(REMAINING) {
        let mut others: Vec<HeaderValue> = place.iter().cloned().collect();
        others.pop();
        let mut others = others.into_iter();
        if let Some(first) = others.next() {
            place.insert(first);
        }
        others.for_each(|other| place.append(other));
    }
}

/// Returns the smallest remaining amount of the set that is present; `u64::MAX` if it is not a number.
#[inline]
pub(super) fn remaining(headers: &HeaderMap) -> Option<u64> {
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
