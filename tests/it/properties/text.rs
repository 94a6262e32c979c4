//! Quotas as text: every quota survives a round trip, and no text causes a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tollgate::Quota;

use super::config;
use super::quotas::quotas;

proptest! {
    #![proptest_config(config(10_000))]

    #[test]
    fn quota_survives_a_round_trip_through_text(quota in quotas()) {
        let text = quota.to_string();
        prop_assert_eq!(text.parse::<Quota>(), Ok(quota), "{}", text);
    }

    #[test]
    fn any_text_is_parsed_or_rejected(text in any::<String>()) {
        parses_or_rejects(&text)?;
    }

    /// Texts that are almost valid: the words of the grammar in any order.
    #[test]
    fn any_words_are_parsed_or_rejected(words in vec(words(), 0..8)) {
        parses_or_rejects(&words.concat())?;
    }
}

fn words() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "/",
        " per ",
        " ",
        ",",
        ", ",
        "_",
        "-",
        "+",
        ".",
        "s",
        "m",
        "h",
        "day",
        "week",
        "month",
        "mo",
        "us",
        "µs",
        "minutes",
        "burst ",
        "buckets ",
        "token-bucket",
        "sliding-buckets",
        "sliding-log",
        "fixed-window",
        "blocked",
        "unlimited",
        "0",
        "1",
        "60",
        "٣",
        "18446744073709551615",
        "18446744073709551616",
        "4294967296",
    ]);
    prop_oneof![
        3 => fixed.prop_map(str::to_owned),
        1 => any::<u64>().prop_map(|number| number.to_string()),
    ]
}

fn parses_or_rejects(text: &str) -> TestCaseResult {
    match text.parse::<Quota>() {
        Ok(quota) => {
            let again = quota.to_string();
            prop_assert_eq!(
                again.parse::<Quota>(),
                Ok(quota),
                "{} became {}",
                text,
                again
            );
        }
        Err(refused) => {
            prop_assert!(refused.field().starts_with("quota"));
            prop_assert!(!refused.expected().is_empty());
        }
    }
    Ok(())
}
