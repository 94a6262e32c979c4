//! Whatever our server writes, our client reads back.

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
const MOST: u64 = 999_999_999_999_999;

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
    fn limits_come_back_as_they_were(
        who in "[!#-\\[\\]-~]{1,64}",
        rules in prop::collection::vec("[!#-\\[\\]-~]{1,128}", 1..4),
        amount in 1_u64..1 << 53,
        // The longest window is some 35 years, and a wait of 31 is taken for an instant.
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
            QuotaName::new(&who, &Counter::new(rule, quota).unwrap(), &quota).unwrap()
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
        let capped = |number: u64| if structured { number.min(MOST) } else { number };
        // Of both families, the one that can say more than fifteen digits may say more.
        prop_assert_eq!(limits.remaining(), Some(capped(binding.remaining())));
        prop_assert_eq!(limits.limit(), Some(capped(limit)));
        prop_assert_eq!(limits.policy(), Some(names[0].as_str()));
        let window = structured.then_some(Duration::from_hours(24));
        prop_assert_eq!(limits.window(), window);
        match limits.reset_at() {
            None => prop_assert_eq!(outcome, Outcome::ExceedsCapacity),
            Some(shown) => {
                prop_assert!(outcome != Outcome::ExceedsCapacity);
                // Rounded up to seconds; to the denied never 0.
                let late = shown.duration_since(reset);
                prop_assert!(shown >= reset && late <= Duration::from_secs(1), "{late:?}");
            }
        }
    }

    #[test]
    fn waits_come_back_as_long_as_they_were(micros in 0_u64..1 << 50) {
        let secs = retry_after_secs(Duration::from_micros(micros));
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", secs.into());
        let read = read_retry_after(&headers, Timestamp::EPOCH);
        prop_assert_eq!(read, Some(Duration::from_secs(secs)));
    }
}

/// The legacy limit of a token bucket is what it holds, the other its rate.
#[test]
fn a_token_bucket_is_read_as_it_was_written() {
    let name = super::name("user", "api", "50/minute, token-bucket, burst 20");
    let read = |set| Limits::read(&super::written(set, usage(&name)), super::NOW).unwrap();
    let (legacy, ietf) = (read(HeaderSet::Legacy), read(HeaderSet::Ietf));
    assert_eq!((legacy.limit(), legacy.remaining()), (Some(20), Some(19)));
    assert_eq!((ietf.limit(), ietf.remaining()), (Some(50), Some(19)));
    assert_eq!(ietf.window(), Some(Duration::from_mins(1)));
}

fn usage(name: &QuotaName) -> QuotaUsage<'_> {
    QuotaUsage::new(name, super::allowed(20, 1))
}
