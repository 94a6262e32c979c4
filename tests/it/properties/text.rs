//! Quotas as text: what is written is read back, and nothing that is written can do harm.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tollgate::Quota;

use super::config;
use super::quotas::quotas;

proptest! {
    #![proptest_config(config(10_000))]

    #[test]
    fn what_is_written_is_read_back(quota in quotas()) {
        let text = quota.to_string();
        prop_assert_eq!(text.parse::<Quota>(), Ok(quota), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        reads_or_refuses(&text)?;
    }

    /// Texts that come close: the words of the language in any order.
    #[test]
    fn any_words_are_read_or_refused(words in vec(words(), 0..8)) {
        reads_or_refuses(&words.concat())?;
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

fn reads_or_refuses(text: &str) -> TestCaseResult {
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
