//! `X-RateLimit-*`.

use std::time::Duration;

use http::HeaderMap;
use proptest::prelude::*;
use tollgate::headers::{
    HeaderSet, HeaderStyle, QuotaUsage, Report, ResetStyle, annotate, retry_after_secs,
};
use tollgate::{Outcome, Timestamp, Usage};

use super::{NOW, allowed, config, later, name, number, text, written};

#[test]
fn an_allowed_request_has_limit_remaining_reset_and_policy() {
    let name = name("user", "secrets", "500/hour");
    let headers = written(HeaderSet::Legacy, QuotaUsage::new(&name, allowed(500, 1)));
    assert_eq!(headers.len(), 4);
    assert_eq!(text(&headers, "x-ratelimit-limit"), Some("500"));
    assert_eq!(text(&headers, "x-ratelimit-remaining"), Some("499"));
    // 13:12:24.123456 and an hour, rounded up.
    assert_eq!(text(&headers, "x-ratelimit-reset"), Some("1761833545"));
    assert_eq!(
        text(&headers, "x-ratelimit-policy"),
        Some("user:secrets:1h")
    );
}

#[test]
fn warning_is_written_if_set() {
    let name = name("user", "secrets", "500/hour");
    let usage = QuotaUsage::new(&name, allowed(500, 400));
    let mut headers = HeaderMap::new();
    let report = Report::new(usage, NOW).with_warning(true);
    annotate(HeaderStyle::default(), &mut headers, &report, [usage]);
    let warning = text(&headers, "x-ratelimit-warning");
    assert_eq!(warning, Some("Approaching rate limit"));
}

#[test]
fn an_override_shows_its_limit() {
    let name = name("user", "secrets", "500/hour");
    let headers = written(HeaderSet::Both, QuotaUsage::new(&name, allowed(1_000, 1)));
    assert_eq!(text(&headers, "x-ratelimit-limit"), Some("1000"));
    let policy = text(&headers, "ratelimit-policy");
    assert_eq!(policy, Some(r#""user:secrets:1h";q=1000;w=3600"#));
}

/// The request is denied although quota remains, because its cost is larger.
#[test]
fn denied_requests_have_remaining_0() {
    let name = name("user", "secrets", "500/hour");
    let usage = Usage::new(500, 498, later(1), Outcome::Denied);
    let headers = written(HeaderSet::Legacy, QuotaUsage::new(&name, usage));
    assert_eq!(number(&headers, "x-ratelimit-remaining"), Some(0));
}

#[test]
fn requests_that_can_never_succeed_have_no_reset() {
    for (quota, limit) in [("500/hour", 500), ("blocked", 0)] {
        let name = name("user", "secrets", quota);
        let usage = Usage::new(limit, 0, NOW, Outcome::ExceedsCapacity);
        let headers = written(HeaderSet::Both, QuotaUsage::new(&name, usage));
        assert_eq!(number(&headers, "x-ratelimit-limit"), Some(limit));
        assert_eq!(number(&headers, "x-ratelimit-remaining"), Some(0));
        assert_eq!(text(&headers, "x-ratelimit-reset"), None);
        assert!(!text(&headers, "ratelimit").unwrap().contains(";t="));
    }
}

proptest! {
    #![proptest_config(config())]

    /// `Retry-After` is never 0, never early, and less than a second late.
    #[test]
    fn waits_are_rounded_up(micros in 0_u64..1 << 50) {
        let wait = Duration::from_micros(micros);
        let shown = Duration::from_secs(retry_after_secs(wait));
        prop_assert!(shown >= wait.max(Duration::from_secs(1)));
        prop_assert!(shown < wait + Duration::from_secs(1) || micros == 0);
    }

    #[test]
    fn limit_remaining_and_reset_are_consistent(
        at in 0_u64..=Timestamp::MAX.as_micros() / 2,
        wait in 1_u64..1 << 50,
        limit in 1_u64..1 << 53,
        used in 0_u64..1 << 54,
        denied: bool,
    ) {
        let name = name("user", "r", "100/hour");
        let (at, reset) = (Timestamp::from_micros(at), Timestamp::from_micros(at + wait));
        let outcome = if denied { Outcome::Denied } else { Outcome::Allowed };
        let usage = QuotaUsage::new(&name, Usage::new(limit, used, reset, outcome));
        let write = |reset| {
            let mut headers = HeaderMap::new();
            let style = HeaderStyle::new(HeaderSet::Legacy).with_reset(reset);
            annotate(style, &mut headers, &Report::new(usage, at), [usage]);
            headers
        };
        let unix = write(ResetStyle::UnixSeconds);
        let delta = write(ResetStyle::DeltaSeconds);
        prop_assert_eq!(number(&unix, "x-ratelimit-limit"), Some(limit));
        let left = if denied { 0 } else { limit.saturating_sub(used) };
        prop_assert_eq!(number(&unix, "x-ratelimit-remaining"), Some(left));
        let shown = number(&unix, "x-ratelimit-reset").unwrap() * 1_000_000;
        prop_assert!(shown >= reset.as_micros() && shown - reset.as_micros() < 1_000_000);
        let shown = number(&delta, "x-ratelimit-reset").unwrap() * 1_000_000;
        prop_assert!(shown >= wait && shown - wait < 1_000_000);
    }
}
