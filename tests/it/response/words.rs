//! Lengths of time in words.

use proptest::prelude::*;
use tollgate::response::Template;

use super::{denied, limited, request};
use crate::headers::{config, later, name};

fn fill(template: &str, quota: &str, wait_micros: u64) -> String {
    let (request, name) = (request(), name("user", "r", quota));
    let denial = limited(&request, denied(&name, later(wait_micros)));
    Template::parse(template).unwrap().fill(&denial)
}

fn wait(secs: u64) -> String {
    fill("{retry_in}", "1/hour", secs * 1_000_000)
}

#[test]
fn waits() {
    for (secs, words) in [
        (0, "1 second"),
        (1, "1 second"),
        (2, "2 seconds"),
        (32, "32 seconds"),
        (59, "59 seconds"),
        (60, "1 minute"),
        (61, "1 minute and 1 second"),
        (90, "1 minute and 30 seconds"),
        (120, "2 minutes"),
        (599, "9 minutes and 59 seconds"),
        (600, "10 minutes"),
        (601, "11 minutes"),
        (1_920, "32 minutes"),
        // 47.6 minutes: a client that waits 47 minutes would be denied again.
        (2_856, "48 minutes"),
        (3_541, "1 hour"),
        (3_600, "1 hour"),
        (3_601, "1 hour and 1 minute"),
        (7_140, "1 hour and 59 minutes"),
        (7_141, "2 hours"),
        (35_941, "10 hours"),
        (36_001, "11 hours"),
        (82_801, "1 day"),
        (86_400, "1 day"),
        (86_401, "1 day and 1 hour"),
        (2 * 86_400, "2 days"),
        (10 * 86_400 - 1, "10 days"),
        (10 * 86_400 + 1, "11 days"),
        (30 * 86_400, "30 days"),
    ] {
        assert_eq!(wait(secs), words, "{secs}");
    }
    assert_eq!(fill("{retry_in}", "1/hour", 1), "1 second");
    assert_eq!(fill("{retry_in}", "1/hour", 59_000_001), "1 minute");
}

#[test]
fn windows() {
    for (window, words) in [
        ("1s", "second"),
        ("90s", "90 seconds"),
        ("1m", "minute"),
        ("15m", "15 minutes"),
        ("60m", "hour"),
        ("36h", "36 hours"),
        ("1d", "day"),
        ("1w", "7 days"),
        ("30d", "30 days"),
        ("1mo", "month"),
        ("3mo", "3 months"),
        ("500ms", "500 milliseconds"),
        ("1ms", "millisecond"),
        ("7us", "7 microseconds"),
    ] {
        let text = fill("in the past {window}", &format!("5/{window}"), 1);
        assert_eq!(text, format!("in the past {words}"));
    }
}

/// What the words mean, in seconds.
fn meaning(words: &str) -> u64 {
    let part = |part: &str| {
        let (count, unit) = part.split_once(' ').unwrap();
        let count: u64 = count.parse().unwrap();
        assert_eq!(count != 1, unit.ends_with('s'), "{words}");
        count
            * match unit.trim_end_matches('s') {
                "second" => 1,
                "minute" => 60,
                "hour" => 3_600,
                "day" => 86_400,
                other => panic!("{other}"),
            }
    };
    words.split(" and ").map(part).sum()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn shown_wait_is_long_enough(
        secs in prop_oneof![1..1_000_u64, 1..100_000_u64, 1..1_000_000_000_u64],
    ) {
        let shown = meaning(&wait(secs));
        prop_assert!(shown >= secs, "{} for {}", wait(secs), secs);
        prop_assert!((shown - secs) * 10 <= secs, "{} for {}", wait(secs), secs);
    }
}
