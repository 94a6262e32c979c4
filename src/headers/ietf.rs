//! `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11: Structured Field lists
//! (RFC 9651) of strings with integer parameters.

use std::fmt::Write as _;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{QuotaUsage, Report, is_present};
use crate::quota::Quota;

pub(super) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
pub(super) const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Largest integer of Structured Fields.
const MAX_INTEGER: u64 = 999_999_999_999_999;

/// Writes both fields. No other set is present.
pub(super) fn write<'a>(
    headers: &mut HeaderMap,
    report: &Report<'a>,
    visible: impl IntoIterator<Item = QuotaUsage<'a>>,
) {
    if let Some(policies) = policies(visible) {
        headers.insert(POLICY, policies);
    }
    if let Ok(limit) = HeaderValue::try_from(limit(report)) {
        headers.insert(LIMIT, limit);
    }
}

/// `"user:secrets:1h";q=500;w=3600, "user:global:1h";q=1000;w=3600`
fn policies<'a>(visible: impl IntoIterator<Item = QuotaUsage<'a>>) -> Option<HeaderValue> {
    let mut shown = visible.into_iter().filter(QuotaUsage::is_shown).peekable();
    let first = shown.next()?;
    if shown.peek().is_none() && first.usage().limit() == first.name().limit() {
        return Some(first.name().ietf_policy().clone());
    }
    let mut list = String::with_capacity(128);
    push(&mut list, &first);
    for usage in shown {
        list.push_str(", ");
        push(&mut list, &usage);
    }
    HeaderValue::try_from(list).ok()
}

fn push(list: &mut String, usage: &QuotaUsage<'_>) {
    let (name, limit) = (usage.name(), usage.usage().limit());
    push_policy(list, name.as_str(), name.quota(), limit);
}

/// Appends one item of `RateLimit-Policy`; `limit` is the effective one. A blocked quota has no
/// window.
pub(super) fn push_policy(list: &mut String, name: &str, quota: &Quota, limit: u64) {
    let amount = per_window(quota, limit).min(MAX_INTEGER);
    // Names contain neither quotes nor backslashes, so nothing is escaped. Writing to a `String`
    // is infallible.
    let _ = write!(list, "\"{name}\";q={amount}");
    if !quota.counts_nothing() {
        let secs = quota.window_micros().div_ceil(1_000_000);
        let _ = write!(list, ";w={secs}");
    }
}

/// Returns the amount per window. `limit` is what can be used at once, which is another number for a
/// token bucket with a burst.
fn per_window(quota: &Quota, limit: u64) -> u64 {
    if quota.amount() == quota.burst() {
        return limit;
    }
    let scaled = u128::from(limit) * u128::from(quota.amount());
    let amount = scaled / u128::from(quota.burst().max(1));
    u64::try_from(amount).unwrap_or(u64::MAX)
}

/// `"user:secrets:1h";r=499;t=3600`
fn limit(report: &Report<'_>) -> String {
    let name = report.binding.name().as_str();
    let remaining = report.binding.remaining().min(MAX_INTEGER);
    match report.binding.resets_in_secs(report.at) {
        Some(secs) => format!("\"{name}\";r={remaining};t={secs}"),
        None => format!("\"{name}\";r={remaining}"),
    }
}

/// Returns the smallest remaining amount of the fields that are present; `u64::MAX` if they cannot be
/// parsed.
#[inline]
pub(super) fn remaining(headers: &HeaderMap) -> Option<u64> {
    is_present(headers, &LIMIT).then(|| least(headers))
}

#[cold]
fn least(headers: &HeaderMap) -> u64 {
    let lines = headers.get_all(LIMIT).into_iter();
    lines
        .filter_map(|line| least_of_line(line.as_bytes()))
        .min()
        .unwrap_or(u64::MAX)
}

/// Returns the smallest parameter `r` of a list.
fn least_of_line(line: &[u8]) -> Option<u64> {
    let mut least = None;
    let mut quoted = false;
    let mut rest = line.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' if quoted => _ = rest.next(),
            b'"' => quoted = !quoted,
            b';' if !quoted => {
                let parameter = rest.as_slice().trim_ascii_start();
                if let Some(value) = parameter.strip_prefix(b"r=") {
                    let end = value.iter().position(|byte| !byte.is_ascii_digit());
                    let digits = &value[..end.unwrap_or(value.len())];
                    let number = str::from_utf8(digits)
                        .ok()
                        .and_then(|text| text.parse().ok());
                    least = least.min(number).or(least).or(number);
                }
            }
            _ => {}
        }
    }
    least
}

pub(super) fn remove(headers: &mut HeaderMap) {
    for name in [POLICY, LIMIT] {
        headers.remove(name);
    }
}
