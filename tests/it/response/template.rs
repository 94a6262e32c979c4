//! Messages with places to fill in.

use proptest::prelude::*;
use tollgate::response::Template;

use super::{denied, limited, request};
use crate::headers::{config, later, name};

#[test]
fn every_place_is_filled() {
    let (request, name) = (request(), name("user", "secrets", "500/hour"));
    let denial = limited(&request, denied(&name, later(1_919_000_001))).with_tier("free");
    for (template, message) in [
        ("", ""),
        ("plain", "plain"),
        ("{limit}", "500"),
        ("{used} of {limit}", "500 of 500"),
        ("in the past {window}", "in the past hour"),
        ("{retry_after} s", "1920 s"),
        ("{retry_in}", "32 minutes"),
        ("{policy}{tier}", "user:secrets:1hfree"),
        ("{{limit}} {{{limit}}}", "{limit} {500}"),
        ("}}{{", "}{"),
        ("\u{fc}{tier}\u{1f6a6}", "\u{fc}free\u{1f6a6}"),
    ] {
        let template = Template::parse(template).unwrap();
        assert_eq!(template.fill(&denial), message);
        assert_eq!(denial.clone().with_message(&template).message(), message);
    }
    let seed = "Secret access rate limit exceeded. You've made {used} requests in the past {window}. Please try again in {retry_in}.";
    assert_eq!(
        Template::parse(seed).unwrap().fill(&denial),
        "Secret access rate limit exceeded. You've made 500 requests in the past hour. Please try again in 32 minutes."
    );
}

#[test]
fn wrong_places_are_named() {
    for (template, field, value) in [
        ("{limits}", "message placeholder", "{limits}"),
        ("a {} b", "message placeholder", "{}"),
        ("{ limit }", "message placeholder", "{ limit }"),
        ("{user}", "message placeholder", "{user}"),
        ("open {limit", "message", "{limit"),
        ("close limit} after", "message", "} after"),
        ("{limit {used}", "message", "{limit {used}"),
        ("{{limit}", "message", "}"),
        ("ends {", "message", "{"),
    ] {
        let refused = Template::parse(template).unwrap_err();
        assert_eq!(
            (refused.field(), refused.value()),
            (field, value),
            "{template}"
        );
        for name in [
            "{limit}",
            "{used}",
            "{window}",
            "{retry_after}",
            "{retry_in}",
            "{policy}",
            "{tier}",
        ] {
            assert!(refused.expected().contains(name), "{refused}");
        }
    }
}

#[test]
fn near_misses_get_a_hint() {
    for (template, meant) in [
        ("{retryAfter}", Some("{retry_after}")),
        ("{retry-in}", Some("{retry_in}")),
        ("{ limit }", Some("{limit}")),
        ("{TIER}", Some("{tier}")),
        ("{user}", None),
        ("{}", None),
    ] {
        let refused = Template::parse(template).unwrap_err();
        let hint = meant.map(|meant| format!("did you mean {meant}?"));
        match hint {
            Some(hint) => assert!(refused.expected().ends_with(&hint), "{refused}"),
            None => assert!(!refused.expected().contains("did you mean"), "{refused}"),
        }
    }
}

proptest! {
    #![proptest_config(config())]

    /// Refused or read; never a panic, and what was read is shown as it was written.
    #[test]
    fn texts_come_back(text in "([{}a-z_ \u{fc}]|\\{\\{|\\}\\}|\\{limit\\}|\\{retry_in\\})*") {
        if let Ok(template) = Template::parse(&text) {
            prop_assert_eq!(template.to_string(), text.as_str());
            prop_assert_eq!(text.parse::<Template>().unwrap(), template);
        }
    }
}
