//! Header families, as written and as read.

mod ietf;
mod legacy;
mod read;
mod round_trip;
mod stacked;

use http::HeaderMap;
use proptest::test_runner::Config;
use tollgate::headers::{HeaderSet, HeaderStyle, QuotaName, QuotaUsage, Report, annotate};
use tollgate::{Counter, Outcome, Quota, Timestamp, Usage};

use crate::support::random::property_config;

/// Settings of property tests.
pub(crate) fn config() -> Config {
    property_config(256)
}

pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_761_829_944_123_456);

pub(crate) fn name(who: &str, rule: &str, quota: &str) -> QuotaName {
    let quota: Quota = quota.parse().unwrap();
    let counter = Counter::new(rule, quota).unwrap();
    QuotaName::new(who, &counter, &quota).unwrap()
}

/// `micros` after now.
pub(crate) fn later(micros: u64) -> Timestamp {
    Timestamp::from_micros(NOW.as_micros() + micros)
}

pub(crate) fn allowed(limit: u64, used: u64) -> Usage {
    Usage::new(limit, used, later(3_600_000_000), Outcome::Allowed)
}

fn written(set: HeaderSet, usage: QuotaUsage<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let report = Report::new(usage, NOW);
    annotate(HeaderStyle::new(set), &mut headers, &report, [usage]);
    headers
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    assert!(headers.get_all(name).iter().count() <= 1, "{name} twice");
    headers.get(name).map(|value| value.to_str().unwrap())
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    text(headers, name).map(|text| text.parse().unwrap())
}

#[test]
fn settings_are_read_and_shown_by_the_same_names() {
    for name in ["legacy", "ietf", "both", "none"] {
        assert_eq!(name.parse::<HeaderSet>().unwrap().to_string(), name);
    }
    for wrong in ["", "Legacy", "all", " none"] {
        let refused = wrong.parse::<HeaderSet>().unwrap_err();
        assert_eq!(refused.field(), "header set");
        assert_eq!(refused.value(), wrong);
    }
}

#[test]
fn labels_refuse_what_cannot_stand_in_a_header() {
    let counter = Counter::new("secrets", Quota::per_hour(1).unwrap()).unwrap();
    let long = "x".repeat(65);
    for wrong in ["", "a b", "a\"b", "a\\b", "ü", "a\nb", &long] {
        let refused = QuotaName::new(wrong, &counter, counter.quota()).unwrap_err();
        assert_eq!(refused.field(), "dimension name", "{wrong:?}");
    }
    assert_eq!(name("all", "x", "blocked").as_str(), "all:x:blocked");
    assert_eq!(name("ip", "x", "10/15m").as_str(), "ip:x:15m");
    let debug = format!("{:?}", name("ip", "x", "10/15m"));
    assert_eq!(debug, "QuotaName(ip:x:15m, 10)");
}

#[test]
fn nothing_is_written_where_nothing_is_limited_or_nothing_is_wanted() {
    let unlimited = name("user", "free", "unlimited");
    let usage = Usage::new(u64::MAX, 0, NOW, Outcome::Allowed);
    let limited = name("user", "paid", "5/hour");
    assert!(written(HeaderSet::Both, QuotaUsage::new(&unlimited, usage)).is_empty());
    assert!(written(HeaderSet::None, QuotaUsage::new(&limited, allowed(5, 1))).is_empty());
}
