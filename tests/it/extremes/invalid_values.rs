//! Values that cannot be counted are rejected when built. The error names the field and the allowed range.

use std::time::Duration;

use tollgate::{Counter, Limiter, MemoryStore, Quota, ValidationErrors};

/// A text, and its error: field, value, what is allowed.
const TEXTS: &[(&str, &str)] = &[
    ("", "quota: found ``, expected a quota such as `500/hour`"),
    (
        "10",
        "quota: found `10`, expected a quota such as `500/hour`",
    ),
    ("0", "quota: found `0`, expected \"blocked\""),
    ("/hour", "quota limit: found ``, expected a whole number"),
    ("0/hour", "quota limit: found `0`, expected at least 1"),
    (
        "-1/hour",
        "quota limit: found `-1`, expected a whole number",
    ),
    (
        "1.5/hour",
        "quota limit: found `1.5`, expected a whole number",
    ),
    (
        "1e9/hour",
        "quota limit: found `1e9`, expected a whole number",
    ),
    (
        "5_/hour",
        "quota limit: found `5_`, expected a whole number",
    ),
    (
        "18446744073709551616/s",
        "quota limit: found `18446744073709551616`, expected",
    ),
    (
        "10/",
        "quota window: found ``, expected second, minute, hour",
    ),
    (
        "10/fortnight",
        "quota window: found `fortnight`, expected second, minute, hour",
    ),
    (
        "10/1h30m",
        "quota window: found `1h30m`, expected second, minute, hour",
    ),
    (
        "10/0s",
        "quota window: found `0ns`, expected 1 microsecond to 3653 days",
    ),
    (
        "10/3654d",
        "quota window: found `315705600s`, expected 1 microsecond to 3653 days",
    ),
    (
        "10/18446744073709551615s",
        "quota window: found `18446744073709551615s`, expected 1 micro",
    ),
    (
        "10/0mo",
        "quota window: found `0 months`, expected 1 to 120 months",
    ),
    (
        "10/4294967297mo",
        "quota window: found `4294967297 months`, expected 1 to 120 months",
    ),
    (
        "4294967296/s",
        "quota limit: found `4294967296`, expected at most 4294967295 per 1s",
    ),
    (
        "70368534/1000003us",
        "quota limit: found `70368534`, expected at most 70368533 per",
    ),
    (
        "9007199254740992/h, fixed-window",
        "expected at most 9007199254740991 per 1h",
    ),
    (
        "18446744073709551615/h, sliding-buckets",
        "expected at most 9007199254740991 per 1h",
    ),
    (
        "100001/h, sliding-log",
        "quota limit: found `100001`, expected at most 100000 per 1h",
    ),
    (
        "70368744177665/1us, token-bucket",
        "expected at most 70368744177664 per 1us",
    ),
    (
        "1/h, token-bucket, burst 0",
        "quota burst: found `0`, expected at least 1",
    ),
    (
        "1/h, token-bucket, burst 87673",
        "quota burst: found `87673`, expected a burst that 1/1h",
    ),
    (
        "1/3653d, token-bucket, burst 2",
        "quota burst: found `2`, expected a burst that 1/3653d refills within",
    ),
    (
        "1/h, burst 5",
        "quota burst: found `5`, expected no burst with sliding-window",
    ),
    (
        "1/h, sliding-buckets, buckets 0",
        "quota buckets: found `0`, expected 1 to 3600",
    ),
    (
        "1/h, sliding-buckets, buckets 4294967297",
        "quota buckets: found `4294967297`, expected 1 to",
    ),
    (
        "1/h, buckets 5",
        "quota buckets: found `5`, expected no buckets with sliding-window",
    ),
    (
        "1/h, leaky",
        "quota algorithm: found `leaky`, expected sliding-window, fixed-window",
    ),
    (
        "unlimited, burst 4",
        "quota: found `burst 4`, expected nothing after `unlimited`",
    ),
];

#[test]
fn error_names_the_field_the_value_and_what_is_allowed() {
    for (text, named) in TEXTS {
        let refused = text.parse::<Quota>().unwrap_err().to_string();
        assert!(refused.starts_with("invalid quota"), "{text}: {refused}");
        assert!(refused.contains(named), "{text}: {refused}");
    }
}

#[test]
fn error_names_an_invalid_window_length() {
    let lengths = [
        (Duration::ZERO, "`0ns`"),
        (Duration::from_nanos(1), "`1ns`"),
        (Duration::from_nanos(1_001), "`1.001µs`"),
        (
            Duration::from_micros(315_619_200_000_001),
            "`315619200.000001s`",
        ),
        (Duration::from_hours(100 * 365 * 24), "`3153600000s`"),
        (Duration::MAX, "`18446744073709551615.999999999s`"),
    ];
    for (length, named) in lengths {
        let refused = Quota::per(1, length).unwrap_err().to_string();
        assert!(refused.contains(named), "{refused}");
        assert!(
            refused.contains("expected 1 microsecond to 3653 days"),
            "{refused}"
        );
    }
}

#[test]
fn error_names_other_invalid_settings() {
    let hour = Quota::per_hour(5).unwrap();
    let first = |errors: ValidationErrors| errors.iter().next().cloned();
    let refused = [
        (
            MemoryStore::builder().capacity(0).build().err(),
            "store capacity: found `0`, expected 1 to",
        ),
        (
            MemoryStore::builder().capacity(usize::MAX).build().err(),
            "store capacity: found",
        ),
        (
            Quota::unlimited().with_amount(3).err(),
            "no amount for a quota that is `unlimited`",
        ),
        (
            Quota::blocked().with_amount(3).err(),
            "no amount for a quota that is `blocked`",
        ),
        (
            Counter::new("", hour).err(),
            "rule name: found ``, expected 1 to 128",
        ),
        (
            Counter::new("a b", hour).err(),
            "rule name: found `a b`, expected 1 to 128",
        ),
        (
            Limiter::builder().build().err().and_then(first),
            "number of quotas: found `0`, expected 1 to 8",
        ),
    ];
    for (refused, named) in refused {
        let refused = refused.expect("refused").to_string();
        assert!(refused.contains(named), "{refused}");
    }
}
