//! Reads families of three fields with a number in each: `X-RateLimit-Limit`, `-Remaining`, `-Reset`.

use http::{HeaderMap, HeaderName};

use super::limits::Limits;
use super::number::{millionths, whole};
use super::time::Present;
use super::{joined, policy_name};
use crate::headers::legacy;

/// The field names of one family.
struct HeaderFamily {
    limit: HeaderName,
    remaining: HeaderName,
    reset: HeaderName,
}

const FAMILIES: [HeaderFamily; 3] = [
    // GitHub, GitLab, Discord, this crate, and most others.
    HeaderFamily {
        limit: legacy::LIMIT,
        remaining: legacy::REMAINING,
        reset: legacy::RESET,
    },
    // X, Okta.
    HeaderFamily {
        limit: HeaderName::from_static("x-rate-limit-limit"),
        remaining: HeaderName::from_static("x-rate-limit-remaining"),
        reset: HeaderName::from_static("x-rate-limit-reset"),
    },
    // IETF drafts up to 6.
    HeaderFamily {
        limit: HeaderName::from_static("ratelimit-limit"),
        remaining: HeaderName::from_static("ratelimit-remaining"),
        reset: HeaderName::from_static("ratelimit-reset"),
    },
];

/// GitHub: the used amount, and the name of the limit.
const USED: HeaderName = HeaderName::from_static("x-ratelimit-used");
const RESOURCE: HeaderName = HeaderName::from_static("x-ratelimit-resource");
/// Discord: the time until the reset, to the millisecond.
const RESET_AFTER: HeaderName = HeaderName::from_static("x-ratelimit-reset-after");
/// Stripe: why a request was denied.
const REASON: HeaderName = HeaderName::from_static("stripe-rate-limited-reason");

/// Numbers of one field that are read.
const MAX_NUMBERS: usize = 16;

/// Returns the limits of each family.
pub(super) fn read(headers: &HeaderMap, present: Present) -> impl Iterator<Item = Limits> {
    let families = FAMILIES.into_iter();
    families
        .filter_map(move |family| family.read(headers, present))
        .chain(reason(headers))
}

impl HeaderFamily {
    fn read(self, headers: &HeaderMap, present: Present) -> Option<Limits> {
        let limits = numbers(headers, &self.limit);
        let mut left = numbers(headers, &self.remaining);
        let is_legacy = self.limit == legacy::LIMIT;
        if left.is_empty() && is_legacy {
            let used = numbers(headers, &USED);
            let pairs = limits.iter().zip(&used);
            left = pairs
                .map(|(limit, used)| limit.saturating_sub(*used))
                .collect();
        }
        // Of several numbers, the one with the least remaining. Limit and reset have the same index
        // if there are as many of them.
        let tightest = (0..left.len()).min_by_key(|index| left[*index]);
        let remaining = tightest.map(|index| left[index]);
        let index_in = |count: usize| {
            if count == left.len() {
                tightest
            } else {
                Some(0)
            }
        };
        let limit = index_in(limits.len()).and_then(|index| limits.get(index).copied());
        if limit.is_none() && remaining.is_none() {
            return None;
        }

        let after = is_legacy.then(|| joined(headers, &RESET_AFTER)).flatten();
        let after = after.and_then(|text| millionths(&text));
        let reset_at = after.map(|micros| present.after(micros)).or_else(|| {
            let lines = joined(headers, &self.reset)?;
            // A date contains a comma.
            let whole = present.reset(&lines);
            whole.or_else(|| {
                let resets: Vec<&str> = lines.split(',').take(MAX_NUMBERS).collect();
                present.reset(resets.get(index_in(resets.len())?)?)
            })
        });
        let policy = is_legacy
            .then(|| policy(headers, tightest, left.len()))
            .flatten();
        Some(Limits {
            limit,
            remaining,
            reset_at,
            window: None,
            policy,
        })
    }
}

/// Returns the numbers of a field: from several lines, separated by commas, or with parameters, as
/// some gateways send them: `10, 10;w=1, 100;w=60`. Empty if one of them is malformed.
fn numbers(headers: &HeaderMap, name: &HeaderName) -> Vec<u64> {
    let Some(lines) = joined(headers, name) else {
        return Vec::new();
    };
    let items = lines.split(',').take(MAX_NUMBERS);
    let numbers = items.map(|item| whole(item.split(';').next().unwrap_or_default()));
    numbers.collect::<Option<_>>().unwrap_or_default()
}

/// Returns the name of the limit, if there is one. Names may contain commas.
fn policy(headers: &HeaderMap, tightest: Option<usize>, of: usize) -> Option<Box<str>> {
    let lines = headers.get_all(legacy::POLICY);
    let index = match lines.iter().count() {
        count if count == of => tightest?,
        _ => 0,
    };
    let line = lines.iter().nth(index);
    let line = line.or_else(|| headers.get(RESOURCE))?;
    policy_name(line.to_str().ok()?)
}

/// Returns the limit of a denial with a reason: nothing remains.
fn reason(headers: &HeaderMap) -> Option<Limits> {
    let reason = headers.get(REASON)?.to_str().ok()?;
    Some(Limits {
        limit: None,
        remaining: Some(0),
        reset_at: None,
        window: None,
        policy: Some(policy_name(reason)?),
    })
}
