//! Three fields, a number in each: `X-RateLimit-Limit`, `-Remaining`, `-Reset`, and their kin.

use http::{HeaderMap, HeaderName};

use super::limits::Limits;
use super::number::{millionths, whole};
use super::time::Present;
use super::{joined, policy_name};
use crate::headers::legacy;

/// The names of one family.
struct Family {
    limit: HeaderName,
    remaining: HeaderName,
    reset: HeaderName,
}

const FAMILIES: [Family; 3] = [
    // GitHub, GitLab, Discord, this crate, and most others.
    Family {
        limit: legacy::LIMIT,
        remaining: legacy::REMAINING,
        reset: legacy::RESET,
    },
    // X, Okta.
    Family {
        limit: HeaderName::from_static("x-rate-limit-limit"),
        remaining: HeaderName::from_static("x-rate-limit-remaining"),
        reset: HeaderName::from_static("x-rate-limit-reset"),
    },
    // The IETF's drafts up to the sixth.
    Family {
        limit: HeaderName::from_static("ratelimit-limit"),
        remaining: HeaderName::from_static("ratelimit-remaining"),
        reset: HeaderName::from_static("ratelimit-reset"),
    },
];

/// GitHub: what was used, and which of its limits it is.
const USED: HeaderName = HeaderName::from_static("x-ratelimit-used");
const RESOURCE: HeaderName = HeaderName::from_static("x-ratelimit-resource");
/// Discord: the same instant as a wait, to the millisecond.
const RESET_AFTER: HeaderName = HeaderName::from_static("x-ratelimit-reset-after");
/// Stripe: why a request was turned away.
const REASON: HeaderName = HeaderName::from_static("stripe-rate-limited-reason");

/// More limits than this are not told in three fields.
const MOST: usize = 16;

/// What each family says.
pub(super) fn read(headers: &HeaderMap, present: Present) -> impl Iterator<Item = Limits> {
    let families = FAMILIES.into_iter();
    families
        .filter_map(move |family| family.read(headers, present))
        .chain(reason(headers))
}

impl Family {
    fn read(self, headers: &HeaderMap, present: Present) -> Option<Limits> {
        let limits = numbers(headers, &self.limit);
        let mut left = numbers(headers, &self.remaining);
        let is_usual = self.limit == legacy::LIMIT;
        if left.is_empty() && is_usual {
            let used = numbers(headers, &USED);
            let pairs = limits.iter().zip(&used);
            left = pairs
                .map(|(limit, used)| limit.saturating_sub(*used))
                .collect();
        }
        // Of several, that with the least remaining; its kin are at the same place, if there are
        // as many of them.
        let tightest = (0..left.len()).min_by_key(|index| left[*index]);
        let remaining = tightest.map(|index| left[index]);
        let place = |count: usize| {
            if count == left.len() {
                tightest
            } else {
                Some(0)
            }
        };
        let limit = place(limits.len()).and_then(|index| limits.get(index).copied());
        if limit.is_none() && remaining.is_none() {
            return None;
        }

        let after = is_usual.then(|| joined(headers, &RESET_AFTER)).flatten();
        let after = after.and_then(|text| millionths(&text));
        let reset_at = after.map(|micros| present.after(micros)).or_else(|| {
            let lines = joined(headers, &self.reset)?;
            // A date has a comma of its own.
            let whole = present.reset(&lines);
            whole.or_else(|| {
                let resets: Vec<&str> = lines.split(',').take(MOST).collect();
                present.reset(resets.get(place(resets.len())?)?)
            })
        });
        let policy = is_usual
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

/// Each number of a field: from several lines, separated by commas, or with parameters behind,
/// as some gateways have them: `10, 10;w=1, 100;w=60`. Nothing, if one of them is no number.
fn numbers(headers: &HeaderMap, name: &HeaderName) -> Vec<u64> {
    let Some(lines) = joined(headers, name) else {
        return Vec::new();
    };
    let items = lines.split(',').take(MOST);
    let numbers = items.map(|item| whole(item.split(';').next().unwrap_or_default()));
    numbers.collect::<Option<_>>().unwrap_or_default()
}

/// The name of the limit, where there is one. Names may have commas in them.
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

/// Whoever is told a reason has nothing left.
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
