//! The client reads back every value that the server writes.

use std::time::Duration;

use http::HeaderMap;
use proptest::prelude::*;
use tollgate::headers::{
    HeaderSet, HeaderStyle, Limits, QuotaName, QuotaUsage, Report, ResetStyle, annotate,
    read_retry_after, retry_after_secs,
};
use tollgate::{Algorithm, Counter, Outcome, Quota, Timestamp, Usage, Window};

use super::config;

/// The largest integer of Structured Fields.
const MAX_INTEGER: u64 = 999_999_999_999_999;

/// Delta seconds and Unix seconds are distinguished by size: Unix times from September 2001 on.
const FIRST: u64 = 1_000_000_000_000_000;

fn set() -> impl Strategy<Value = HeaderSet> {
    prop_oneof![
        Just(HeaderSet::Legacy),
        Just(HeaderSet::Ietf),
        Just(HeaderSet::Both),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Allowed),
        Just(Outcome::Denied),
        Just(Outcome::ExceedsCapacity),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn limits_are_read_back_unchanged(
        dimension in "[!#-\\[\\]-~]{1,64}",
        rules in prop::collection::vec("[!#-\\[\\]-~]{1,128}", 1..4),
        amount in 1_u64..1 << 53,
        // The longest window is about 35 years. A wait of 31 years or more is read as an instant.
        wait in 0_u64..999_999_999_000_000,
        used in 0_u64..1 << 54,
        overridden: bool,
        outcome in outcome(),
        set in set(),
        delta: bool,
        at in FIRST..Timestamp::MAX.as_micros() / 2,
    ) {
        let names: Vec<QuotaName> = rules.iter().map(|rule| {
            let quota = Quota::builder(amount, Window::DAY).algorithm(Algorithm::FixedWindow);
            let quota = quota.build().unwrap();
            QuotaName::new(&dimension, &Counter::new(rule, quota).unwrap(), &quota).unwrap()
        }).collect();
        let (at, reset) = (Timestamp::from_micros(at), Timestamp::from_micros(at + wait));
        let limit = amount + u64::from(overridden);
        let usage = |name| QuotaUsage::new(name, Usage::new(limit, used, reset, outcome));
        let binding = usage(&names[0]);
        let reset_style = if delta { ResetStyle::DeltaSeconds } else { ResetStyle::UnixSeconds };
        let style = HeaderStyle::new(set).with_reset(reset_style);
        let mut headers = HeaderMap::new();
        let report = Report::new(binding, at).with_warning(overridden);
        annotate(style, &mut headers, &report, names.iter().map(usage));

        let limits = Limits::read(&headers, at).unwrap();
        let structured = set != HeaderSet::Legacy;
        let capped = |number: u64| if structured { number.min(MAX_INTEGER) } else { number };
        // With both families, numbers of more than fifteen digits are read from the legacy one.
        prop_assert_eq!(limits.remaining, Some(capped(binding.remaining())));
        prop_assert_eq!(limits.limit, Some(capped(limit)));
        prop_assert_eq!(limits.policy.as_deref(), Some(names[0].as_str()));
        let window = structured.then_some(Duration::from_hours(24));
        prop_assert_eq!(limits.window, window);
        match limits.reset_at {
            None => prop_assert_eq!(outcome, Outcome::ExceedsCapacity),
            Some(shown) => {
                prop_assert!(outcome != Outcome::ExceedsCapacity);
                // Rounded up to seconds, and never 0 for a denied request.
                let late = shown.duration_since(reset);
                prop_assert!(shown >= reset && late <= Duration::from_secs(1), "{late:?}");
            }
        }
    }

    #[test]
    fn retry_after_is_read_back_unchanged(micros in 0_u64..1 << 50) {
        let secs = retry_after_secs(Duration::from_micros(micros));
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", secs.into());
        let read = read_retry_after(&headers, Timestamp::EPOCH);
        prop_assert_eq!(read, Some(Duration::from_secs(secs)));
    }
}

/// The legacy limit of a token bucket is its capacity. The IETF limit is its rate.
#[test]
fn limits_of_a_token_bucket_are_read_back_unchanged() {
    let name = super::name("user", "api", "50/minute, token-bucket, burst 20");
    let read = |set| Limits::read(&super::written(set, usage(&name)), super::NOW).unwrap();
    let (legacy, ietf) = (read(HeaderSet::Legacy), read(HeaderSet::Ietf));
    assert_eq!((legacy.limit, legacy.remaining), (Some(20), Some(19)));
    assert_eq!((ietf.limit, ietf.remaining), (Some(50), Some(19)));
    assert_eq!(ietf.window, Some(Duration::from_mins(1)));
}

fn usage(name: &QuotaName) -> QuotaUsage<'_> {
    QuotaUsage::new(name, super::allowed(20, 1))
}
