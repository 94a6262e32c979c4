//! Headers of other servers: every family, every format, and malformed values.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use tollgate::Timestamp;
use tollgate::headers::{Limits, read_retry_after};

use super::{NOW, config, later};

/// Returns headers from lines. A name may occur more than once.
pub(crate) fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::try_from(*name).unwrap();
        headers.append(name, HeaderValue::try_from(*value).unwrap());
    }
    headers
}

fn read(lines: &[(&str, &str)]) -> Option<Limits> {
    Limits::read(&headers(lines), NOW)
}

/// Returns limit, remaining, and the seconds until the reset.
fn numbers(lines: &[(&str, &str)]) -> (Option<u64>, Option<u64>, Option<f64>) {
    let limits = read(lines).unwrap_or_else(|| panic!("{lines:?} has no limits"));
    let reset = limits.reset_at.map(|at| at.duration_since(NOW));
    let reset = reset.map(|wait| wait.as_secs_f64());
    (limits.limit, limits.remaining, reset)
}

const fn secs(secs: u64) -> Timestamp {
    Timestamp::from_secs(secs)
}

#[test]
fn every_format_of_the_reset_is_read() {
    let reset = |text: &str| {
        let lines = [("x-ratelimit-remaining", "5"), ("x-ratelimit-reset", text)];
        read(&lines).unwrap().reset_at
    };
    // NOW is 1761829944.123456.
    assert_eq!(reset("1761830000"), Some(secs(1_761_830_000)));
    assert_eq!(reset("1761830000000"), Some(secs(1_761_830_000)));
    assert_eq!(reset("1761830000.000"), Some(secs(1_761_830_000)));
    let date = reset("Thu, 30 Oct 2025 13:13:20 GMT");
    assert_eq!(date, Some(secs(1_761_830_000)));
    assert_eq!(reset("60"), Some(later(60_000_000)));
    assert_eq!(reset("0"), Some(NOW));
    assert_eq!(reset("0.25"), Some(later(250_000)));
    // Both sides of the boundaries between formats.
    assert_eq!(reset("999999999"), Some(later(999_999_999_000_000)));
    assert_eq!(reset("1000000000"), Some(secs(1_000_000_000)));
    assert_eq!(reset("999999999999"), Some(Timestamp::MAX));
    assert_eq!(reset("1000000000000"), Some(secs(1_000_000_000)));
    // The year 9999, and numbers beyond all integers.
    assert_eq!(reset("253402300799"), Some(Timestamp::MAX));
    assert_eq!(reset("253402300799000"), Some(Timestamp::MAX));
    assert_eq!(reset(&"9".repeat(40)), Some(Timestamp::MAX));
    for wrong in [
        "",
        "-60",
        "+60",
        "soon",
        "1e9",
        "60s",
        "NaN",
        "2025-10-30T13:13:20Z",
    ] {
        assert_eq!(reset(wrong), None, "{wrong:?}");
    }
}

/// Without `Date`, a client whose clock is ten minutes slow would wait ten minutes too long.
#[test]
fn instants_are_corrected_by_the_date_of_the_server() {
    // The server's clock is at 13:22:24, that of the client at 13:12:24.
    let date = ("date", "Thu, 30 Oct 2025 13:22:24 GMT");
    let left = ("x-ratelimit-remaining", "0");
    let limits = read(&[date, left, ("x-ratelimit-reset", "1761830604")]).unwrap();
    assert_eq!(limits.reset_at, Some(later(60_000_000)));
    let retry = headers(&[date, ("retry-after", "Thu, 30 Oct 2025 13:23:24 GMT")]);
    assert_eq!(read_retry_after(&retry, NOW), Some(Duration::from_mins(1)));
    // Durations need no correction.
    let limits = read(&[date, left, ("x-ratelimit-reset", "60")]).unwrap();
    assert_eq!(limits.reset_at, Some(later(60_000_000)));
    // A reset before `Date` is not corrected.
    let limits = read(&[date, left, ("x-ratelimit-reset", "1761830000")]).unwrap();
    assert_eq!(limits.reset_at, Some(secs(1_761_830_000)));
    // A difference of a second is within the rounding of `Date`.
    let date = ("date", "Thu, 30 Oct 2025 13:12:23 GMT");
    let limits = read(&[date, left, ("x-ratelimit-reset", "1761830000")]).unwrap();
    assert_eq!(limits.reset_at, Some(secs(1_761_830_000)));
}

#[test]
fn github_headers_have_used_and_resource() {
    let lines = [
        ("x-ratelimit-limit", "5000"),
        ("x-ratelimit-remaining", "4999"),
        ("x-ratelimit-used", "1"),
        ("x-ratelimit-reset", "1761833544"),
        ("x-ratelimit-resource", "core"),
    ];
    let limits = read(&lines).unwrap();
    assert_eq!(limits.policy.as_deref(), Some("core"));
    assert_eq!(limits.limit, Some(5_000));
    assert_eq!(limits.remaining, Some(4_999));
    let without = read(&[lines[0], lines[2]]).unwrap();
    assert_eq!(without.remaining, Some(4_999));
}

#[test]
fn other_header_names_are_read() {
    let expected = (Some(15), Some(3), Some(30.0));
    for prefix in ["x-ratelimit", "x-rate-limit", "ratelimit"] {
        let name = |last| format!("{prefix}-{last}");
        let (limit, remaining, reset) = (name("limit"), name("remaining"), name("reset"));
        let lines = [(&*limit, "15"), (&*remaining, "3"), (&*reset, "30")];
        assert_eq!(numbers(&lines), expected, "{prefix}");
    }
    // A gateway that lists its policies after the limit.
    let lines = [
        ("x-ratelimit-limit", "15, 15;w=60, 100;w=3600"),
        ("x-ratelimit-remaining", "3"),
        ("x-ratelimit-reset", "30"),
    ];
    assert_eq!(numbers(&lines), expected);
    // The duration of Discord is more precise than its instant.
    let lines = [
        ("x-ratelimit-limit", "15"),
        ("x-ratelimit-remaining", "3"),
        ("x-ratelimit-reset", "1761829945"),
        ("x-ratelimit-reset-after", "0.432"),
    ];
    assert_eq!(numbers(&lines), (Some(15), Some(3), Some(0.432)));
}

#[test]
fn stripe_headers_have_a_reason() {
    let limits = read(&[("stripe-rate-limited-reason", "global-concurrency")]).unwrap();
    assert_eq!(limits.policy.as_deref(), Some("global-concurrency"));
    assert_eq!((limits.remaining, limits.limit), (Some(0), None));
}

#[test]
fn the_seventh_draft_is_read() {
    let lines = [
        ("ratelimit", "limit=100, remaining=50, reset=5"),
        (
            "ratelimit-policy",
            "1000;w=3600, 100;w=60;comment=\"burst\"",
        ),
    ];
    assert_eq!(numbers(&lines), (Some(100), Some(50), Some(5.0)));
    let window = read(&lines).unwrap().window;
    assert_eq!(window, Some(Duration::from_mins(1)));
}

#[test]
fn drafts_from_the_eighth_on_are_read() {
    for field in [
        r#""burst";r=50;t=5"#,
        "burst;r=50;t=5",
        r#""burst";t=5;r=50;pk=:Zm9v:"#,
    ] {
        let lines = [
            (
                "ratelimit-policy",
                r#""daily";q=1000;w=86400, "burst";q=100;w=60"#,
            ),
            ("ratelimit", field),
        ];
        assert_eq!(numbers(&lines), (Some(100), Some(50), Some(5.0)), "{field}");
        let limits = read(&lines).unwrap();
        assert_eq!(limits.policy.as_deref(), Some("burst"));
        assert_eq!(limits.window, Some(Duration::from_mins(1)));
    }
}

#[test]
fn the_tightest_of_several_limits_is_returned() {
    let lines = [
        ("ratelimit", r#""a";r=50;t=5, "b";r=2;t=3600"#),
        ("ratelimit", r#""c";r=9;t=1"#),
    ];
    assert_eq!(read(&lines).unwrap().policy.as_deref(), Some("b"));
    let tie = [("ratelimit", r#""a";r=2;t=5, "b";r=2;t=3600"#)];
    assert_eq!(read(&tie).unwrap().policy.as_deref(), Some("b"));
    // Two layers, each with its own lines.
    let lines = [
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-remaining", "90"),
        ("x-ratelimit-reset", "10"),
        ("x-ratelimit-policy", "a, with a comma"),
        ("x-ratelimit-limit", "1000"),
        ("x-ratelimit-remaining", "4"),
        ("x-ratelimit-reset", "20"),
        ("x-ratelimit-policy", "b"),
    ];
    assert_eq!(numbers(&lines), (Some(1_000), Some(4), Some(20.0)));
    assert_eq!(read(&lines).unwrap().policy.as_deref(), Some("b"));
    // Two families with different limits.
    let lines = [
        ("x-ratelimit-remaining", "90"),
        ("ratelimit", r#""gateway";r=3;t=7"#),
    ];
    assert_eq!(numbers(&lines), (None, Some(3), Some(7.0)));
}

#[test]
fn malformed_values_yield_no_limits() {
    for (name, value) in [
        ("x-ratelimit-remaining", "-1"),
        ("x-ratelimit-remaining", "many"),
        ("x-ratelimit-remaining", "1, many"),
        ("x-ratelimit-remaining", ""),
        ("x-ratelimit-reset", "60"),
        ("ratelimit", r#""a";r=-5;t=5"#),
        ("ratelimit", r#""a";r=1.5"#),
        ("ratelimit", r#""a";t=5"#),
        ("ratelimit", r#"("a" "b");r=5"#),
        ("ratelimit", r#""a";r=5,"#),
        ("ratelimit", "remaining=?1"),
        ("ratelimit", "limit=5"),
        ("ratelimit-policy", r#""a";q=5"#),
        ("stripe-rate-limited-reason", ""),
    ] {
        assert_eq!(read(&[(name, value)]), None, "{name}: {value}");
    }
    let endless = format!(r#""a";r=5{}"#, ", x".repeat(5_000));
    assert_eq!(read(&[("ratelimit", &endless)]), None);
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let wait = |values: &[&str]| {
        let lines: Vec<_> = values.iter().map(|value| ("retry-after", *value)).collect();
        read_retry_after(&headers(&lines), NOW).map(|wait| wait.as_secs_f64())
    };
    assert_eq!(wait(&["120"]), Some(120.0));
    assert_eq!(wait(&[" 1.5 "]), Some(1.5));
    assert_eq!(wait(&["0"]), Some(0.0));
    for date in [
        "Thu, 30 Oct 2025 13:13:20 GMT",
        "Thursday, 30-Oct-25 13:13:20 GMT",
        "Thu Oct 30 13:13:20 2025",
    ] {
        let wait = wait(&[date]).unwrap();
        assert!((wait - 55.876_544).abs() < 1e-9, "{date}: {wait}");
    }
    assert_eq!(wait(&["Thu, 30 Oct 2014 13:13:20 GMT"]), Some(0.0));
    assert_eq!(wait(&["5", "60", "soon"]), Some(60.0));
    for wrong in ["", "-1", "soon", "Thu, 30 Feb 2025 13:13:20 GMT", "5s"] {
        assert_eq!(wait(&[wrong]), None, "{wrong:?}");
    }
    let never = Duration::from_micros(u64::MAX);
    let longest = wait(&[&"9".repeat(30)]).unwrap();
    assert!((longest - never.as_secs_f64()).abs() < 1.0);
}

const NAMES: [&str; 16] = [
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-reset-after",
    "x-ratelimit-used",
    "x-ratelimit-resource",
    "x-ratelimit-policy",
    "x-rate-limit-limit",
    "x-rate-limit-remaining",
    "ratelimit-limit",
    "ratelimit-reset",
    "ratelimit",
    "ratelimit-policy",
    "stripe-rate-limited-reason",
    "retry-after",
    "date",
];

/// Random bytes, numbers, and nearly valid values.
fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        "[-+]?[0-9]{0,30}(\\.[0-9]{0,12})?".prop_map(String::into_bytes),
        "(\"?[a-z]{0,3}\"?(;[rtqw]=-?[0-9]{0,17}){0,4},? ?){0,4}".prop_map(String::into_bytes),
        "(limit|remaining|reset)=[0-9]{0,4}, (limit|remaining|reset)=[0-9]{0,17}"
            .prop_map(String::into_bytes),
        "(Mon|Thu), [0-9]{1,2} (Oct|Feb) [0-9]{2,4} [0-9]{2}:13:20 GMT"
            .prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_header_values_cause_a_panic(
        lines in prop::collection::vec((0..NAMES.len(), value()), 1..12),
        at in 0..=Timestamp::MAX.as_micros(),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(HeaderName::from_static(NAMES[name]), value);
            }
        }
        let at = Timestamp::from_micros(at);
        let _ = read_retry_after(&headers, at);
        if let Some(limits) = Limits::read(&headers, at) {
            prop_assert!(limits.limit.is_some() || limits.remaining.is_some());
            prop_assert!(limits.policy.as_deref().is_none_or(|policy| !policy.is_empty()));
            prop_assert!(limits.reset_at.is_none_or(|reset| reset <= Timestamp::MAX));
        }
    }
}

/// Bug: the set without a reset was returned, so clients used a default wait.
#[test]
fn the_exhausted_set_with_a_reset_is_returned() {
    let both = [("ratelimit", r#""day";r=0, "minute";r=0;t=60"#)];
    assert_eq!(numbers(&both), (None, Some(0), Some(60.0)));
    let families = [
        ("ratelimit", r#""minute";r=0"#),
        ("x-ratelimit-limit", "10"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "60"),
    ];
    assert_eq!(numbers(&families), (Some(10), Some(0), Some(60.0)));
}
