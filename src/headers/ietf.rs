//! `RateLimit-Policy` and `RateLimit`, as draft-ietf-httpapi-ratelimit-headers-11 has them:
//! Structured Field lists (RFC 9651) of strings with integer parameters.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::number::Decimal;
use super::{Report, Standing};
use crate::quota::Quota;

pub(super) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
pub(super) const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The largest integer of Structured Fields.
const MOST: u64 = 999_999_999_999_999;

/// Writes both fields. Nothing of another set is there.
pub(super) fn write<'a>(
    headers: &mut HeaderMap,
    report: &Report<'a>,
    visible: impl IntoIterator<Item = Standing<'a>>,
) {
    if let Some(policies) = policies(visible) {
        headers.insert(POLICY, policies);
    }
    if let Ok(limit) = HeaderValue::try_from(limit(report)) {
        headers.insert(LIMIT, limit);
    }
}

/// `"user:secrets:1h";q=500;w=3600, "user:global:1h";q=1000;w=3600`
fn policies<'a>(visible: impl IntoIterator<Item = Standing<'a>>) -> Option<HeaderValue> {
    let mut shown = visible.into_iter().filter(Standing::is_shown);
    let first = shown.next()?;
    let Some(second) = shown.next() else {
        if first.usage().limit() == first.label().limit() {
            return Some(first.label().ietf_policy().clone());
        }
        let mut list = Vec::new();
        push(&mut list, &first);
        return HeaderValue::try_from(list).ok();
    };
    let mut list = Vec::with_capacity(128);
    push(&mut list, &first);
    for standing in [second].into_iter().chain(shown) {
        list.extend_from_slice(b", ");
        push(&mut list, &standing);
    }
    HeaderValue::try_from(list).ok()
}

fn push(list: &mut Vec<u8>, standing: &Standing<'_>) {
    let (label, limit) = (standing.label(), standing.usage().limit());
    if limit == label.limit() {
        list.extend_from_slice(label.ietf_policy().as_bytes());
    } else {
        push_policy(list, label.as_str(), label.quota(), limit);
    }
}

/// One item of `RateLimit-Policy`; `limit` is the one in force. Without a window where there is
/// none: a blocked quota.
pub(super) fn push_policy(list: &mut Vec<u8>, name: &str, quota: &Quota, limit: u64) {
    // The name has neither quotes nor backslashes: nothing to escape.
    list.push(b'"');
    list.extend_from_slice(name.as_bytes());
    list.extend_from_slice(b"\";q=");
    list.extend_from_slice(Decimal::new(per_window(quota, limit).min(MOST)).as_bytes());
    if !quota.counts_nothing() {
        list.extend_from_slice(b";w=");
        let secs = quota.window_micros().div_ceil(1_000_000);
        list.extend_from_slice(Decimal::new(secs).as_bytes());
    }
}

/// How much per window, if `limit` is what can be used at once: the same, unless it is the
/// burst of a token bucket.
fn per_window(quota: &Quota, limit: u64) -> u64 {
    if quota.amount() == quota.burst() {
        return limit;
    }
    let scaled = u128::from(limit) * u128::from(quota.amount());
    let amount = scaled / u128::from(quota.burst().max(1));
    u64::try_from(amount).unwrap_or(u64::MAX)
}

/// `"user:secrets:1h";r=499;t=3600`
fn limit(report: &Report<'_>) -> Vec<u8> {
    let name = report.binding.label().as_str().as_bytes();
    let remaining = Decimal::new(report.binding.remaining().min(MOST));
    let resets_in = report.binding.resets_in_secs(report.at).map(Decimal::new);
    let resets_in = resets_in.as_ref().map_or(&b""[..], Decimal::as_bytes);
    let parts: [&[u8]; 6] = match resets_in {
        b"" => [b"\"", name, b"\";r=", remaining.as_bytes(), b"", b""],
        secs => [b"\"", name, b"\";r=", remaining.as_bytes(), b";t=", secs],
    };
    // Exactly as long as needed: room to spare would cost a second allocation.
    parts.concat()
}

/// The least that is left according to the fields that are there; endless, if they cannot be
/// read.
#[inline]
pub(super) fn remaining(headers: &HeaderMap) -> Option<u64> {
    is_there(headers).then(|| least(headers))
}

/// Whether a set is there.
#[inline]
pub(super) fn is_there(headers: &HeaderMap) -> bool {
    headers.contains_key(LIMIT)
}

#[cold]
fn least(headers: &HeaderMap) -> u64 {
    let lines = headers.get_all(LIMIT).into_iter();
    lines
        .filter_map(|line| least_of_line(line.as_bytes()))
        .min()
        .unwrap_or(u64::MAX)
}

/// The smallest parameter `r` of a list.
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
