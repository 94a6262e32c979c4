//! Reads `RateLimit` and `RateLimit-Policy` of the IETF drafts: Structured Fields (RFC 9651).
//!
//! | draft | `RateLimit` | `RateLimit-Policy` |
//! |---|---|---|
//! | 7 | `limit=100, remaining=50, reset=5` | `100;w=60` |
//! | 8 to 11 | `"default";r=50;t=5` | `"default";q=100;w=60` |
//!
//! Some drafts allow tokens as names: `default;r=50;t=5`.

use std::cmp::Reverse;
use std::time::Duration;

use http::HeaderMap;
use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parser};

use super::limits::Limits;
use super::time::Present;
use super::{MAX_MEMBERS, joined, policy_name};
use crate::headers::ietf;

/// Returns the limit with the least remaining.
pub(super) fn read(headers: &HeaderMap, present: Present) -> Option<Limits> {
    let field = joined(headers, &ietf::LIMIT)?;
    let policies = policies(headers);
    // `default;r=50` can be parsed as a list and as a dictionary; it is a list.
    match Parser::new(&field).parse::<List>() {
        Ok(list) => {
            let limits = items(&list).filter_map(|item| named(item, &policies, present));
            // Of equal ones, the one with the latest reset.
            limits.min_by_key(|limits| (limits.remaining, Reverse(limits.reset_at)))
        }
        Err(_) => draft_7(&Parser::new(&field).parse().ok()?, &policies, present),
    }
}

/// A quota of `RateLimit-Policy`.
struct PolicyField {
    /// Draft 7 has no names.
    name: Option<Box<str>>,
    quota: Option<u64>,
    window: Option<Duration>,
}

fn policies(headers: &HeaderMap) -> Vec<PolicyField> {
    let field = joined(headers, &ietf::POLICY);
    let list = field.and_then(|field| Parser::new(&field).parse::<List>().ok());
    let list = list.unwrap_or_default();
    let policies = items(&list).map(|item| PolicyField {
        name: name(item),
        quota: parameter(item, "q").or_else(|| number(&item.bare_item)),
        window: parameter(item, "w").map(Duration::from_secs),
    });
    policies.collect()
}

fn named(item: &Item, policies: &[PolicyField], present: Present) -> Option<Limits> {
    let name = name(item)?;
    let remaining = parameter(item, "r")?;
    let mut policies = policies.iter();
    let policy = policies.find(|policy| policy.name.as_deref() == Some(&name));
    Some(Limits {
        limit: policy.and_then(|policy| policy.quota),
        remaining: Some(remaining),
        reset_at: parameter(item, "t").map(|secs| present.after(micros(secs))),
        window: policy.and_then(|policy| policy.window),
        policy: Some(name),
    })
}

fn draft_7(fields: &Dictionary, policies: &[PolicyField], present: Present) -> Option<Limits> {
    let field = |key: &str| match fields.get(key) {
        Some(ListEntry::Item(item)) => number(&item.bare_item),
        _ => None,
    };
    let (limit, remaining) = (field("limit"), field("remaining")?);
    // Draft 7 identifies the policy by its quota.
    let policy = policies.iter().find(|policy| policy.quota == limit);
    Some(Limits {
        limit,
        remaining: Some(remaining),
        reset_at: field("reset").map(|secs| present.after(micros(secs))),
        window: policy.and_then(|policy| policy.window),
        policy: None,
    })
}

fn items(list: &List) -> impl Iterator<Item = &Item> {
    let members = list.iter().take(MAX_MEMBERS);
    members.filter_map(|entry| match entry {
        ListEntry::Item(item) => Some(item),
        ListEntry::InnerList(_) => None,
    })
}

fn name(item: &Item) -> Option<Box<str>> {
    match &item.bare_item {
        BareItem::String(text) => policy_name(text.as_str()),
        BareItem::Token(text) => policy_name(text.as_str()),
        _ => None,
    }
}

fn parameter(item: &Item, key: &str) -> Option<u64> {
    number(item.params.get(key)?)
}

/// Returns a whole number that is not negative.
fn number(item: &BareItem) -> Option<u64> {
    let BareItem::Integer(number) = item else {
        return None;
    };
    u64::try_from(i64::from(*number)).ok()
}

const fn micros(secs: u64) -> u64 {
    secs.saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    /// 8 KiB of members in both fields took 21 ms.
    #[test]
    fn at_most_32_members_are_read() {
        let field = |of: &str| {
            let members = (0..500).map(|number| format!("\"{number}\";{of}={}", 500 - number));
            members.collect::<Vec<_>>().join(",")
        };
        let mut headers = HeaderMap::new();
        headers.insert(&ietf::LIMIT, field("r").parse().unwrap());
        headers.insert(&ietf::POLICY, field("q").parse().unwrap());
        let present = Present::new(&headers, Timestamp::EPOCH);
        let limits = read(&headers, present).unwrap();
        assert_eq!(limits.remaining, Some(500 - 31));
        assert_eq!(limits.limit, Some(500 - 31));
        assert_eq!(policies(&headers).len(), 32);
    }
}
