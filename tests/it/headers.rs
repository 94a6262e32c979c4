//! Header families: writing and reading.

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

/// Returns the settings of property tests.
pub(crate) fn config() -> Config {
    property_config(256)
}

pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_761_829_944_123_456);

pub(crate) fn name(dimension: &str, rule: &str, quota: &str) -> QuotaName {
    let quota: Quota = quota.parse().unwrap();
    let counter = Counter::new(rule, quota).unwrap();
    QuotaName::new(dimension, &counter, &quota).unwrap()
}

/// Returns the instant `micros` after [`NOW`].
pub(crate) fn later(micros: u64) -> Timestamp {
    Timestamp::from_micros(NOW.as_micros() + micros)
}

pub(crate) fn allowed(limit: u64, used: u64) -> Usage {
    Usage::new(limit, used, later(3_600_000_000), Outcome::Allowed)
}

/// Returns the headers that [`annotate`] writes for a quota.
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
fn header_sets_are_parsed_and_displayed_by_the_same_names() {
    for name in ["legacy", "ietf", "both", "none"] {
        assert_eq!(name.parse::<HeaderSet>().unwrap().to_string(), name);
    }
    for wrong in ["", "Legacy", "all", " none"] {
        let error = wrong.parse::<HeaderSet>().unwrap_err();
        assert_eq!(error.field(), "header set");
        assert_eq!(error.value(), wrong);
    }
}

#[test]
fn quota_names_reject_characters_that_headers_cannot_contain() {
    let counter = Counter::new("secrets", Quota::per_hour(1).unwrap()).unwrap();
    let long = "x".repeat(65);
    for wrong in ["", "a b", "a\"b", "a\\b", "ü", "a\nb", &long] {
        let error = QuotaName::new(wrong, &counter, counter.quota()).unwrap_err();
        assert_eq!(error.field(), "dimension name", "{wrong:?}");
    }
    assert_eq!(name("all", "x", "blocked").as_str(), "all:x:blocked");
    assert_eq!(name("ip", "x", "10/15m").as_str(), "ip:x:15m");
    let debug = format!("{:?}", name("ip", "x", "10/15m"));
    assert_eq!(debug, "QuotaName(ip:x:15m, 10)");
}

#[test]
fn unlimited_quotas_and_style_none_write_no_headers() {
    let unlimited = name("user", "free", "unlimited");
    let usage = Usage::new(u64::MAX, 0, NOW, Outcome::Allowed);
    let limited = name("user", "paid", "5/hour");
    assert!(written(HeaderSet::Both, QuotaUsage::new(&unlimited, usage)).is_empty());
    assert!(written(HeaderSet::None, QuotaUsage::new(&limited, allowed(5, 1))).is_empty());
}
