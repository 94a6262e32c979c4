//! `RateLimit-Policy` and `RateLimit`, read by an independent parser.

use http::HeaderMap;
use proptest::prelude::*;
use sfv::{List, ListEntry, Parser};
use tollgate::headers::{HeaderSet, HeaderStyle, QuotaName, QuotaUsage, Report, annotate};
use tollgate::{Counter, Outcome, Quota, Usage, Window};

use super::{NOW, allowed, config, later, name, text, written};

/// Returns the names and parameters of a list.
fn parse(field: &str) -> Vec<(String, Vec<(String, i64)>)> {
    let list: List = Parser::new(field).parse().unwrap();
    let items = list.iter().map(|entry| {
        let ListEntry::Item(item) = entry else {
            panic!("no inner lists: {field}");
        };
        let name = item.bare_item.as_string().unwrap().as_str().to_owned();
        let parameters = item.params.iter().map(|(key, value)| {
            let number = i64::from(value.as_integer().unwrap());
            (key.as_str().to_owned(), number)
        });
        (name, parameters.collect())
    });
    items.collect()
}

fn item(name: &str, parameters: &[(&str, i64)]) -> (String, Vec<(String, i64)>) {
    let owned = parameters
        .iter()
        .map(|(key, value)| ((*key).to_owned(), *value));
    (name.to_owned(), owned.collect())
}

#[test]
fn every_quota_has_a_policy_and_the_binding_one_a_limit() {
    let secrets = name("user", "secrets", "500/hour");
    let global = name("user", "global", "1000/hour");
    let hidden = name("user", "free", "unlimited");
    let binding = QuotaUsage::new(&secrets, allowed(500, 1));
    let all = [
        binding,
        QuotaUsage::new(&hidden, Usage::new(u64::MAX, 0, NOW, Outcome::Allowed)),
        QuotaUsage::new(&global, allowed(1_000, 1)),
    ];
    let mut headers = HeaderMap::new();
    let report = Report::new(binding, NOW);
    annotate(HeaderSet::Ietf.into(), &mut headers, &report, all);
    assert_eq!(headers.len(), 2);
    assert_eq!(
        text(&headers, "ratelimit-policy"),
        Some(r#""user:secrets:1h";q=500;w=3600, "user:global:1h";q=1000;w=3600"#)
    );
    assert_eq!(
        text(&headers, "ratelimit"),
        Some(r#""user:secrets:1h";r=499;t=3600"#)
    );
}

#[test]
fn blocked_quotas_have_no_window() {
    let name = name("ip", "gone", "blocked");
    let usage = Usage::new(0, 0, NOW, Outcome::ExceedsCapacity);
    let headers = written(HeaderSet::Ietf, QuotaUsage::new(&name, usage));
    let policy = parse(text(&headers, "ratelimit-policy").unwrap());
    assert_eq!(policy, [item("ip:gone:blocked", &[("q", 0)])]);
    let limit = parse(text(&headers, "ratelimit").unwrap());
    assert_eq!(limit, [item("ip:gone:blocked", &[("r", 0)])]);
}

/// `q` per `w` is the refill rate. `r` is the amount that is available at once.
#[test]
fn a_token_bucket_shows_its_rate() {
    let name = name("user", "api", "50/minute, token-bucket, burst 20");
    let policy = |limit| {
        let headers = written(HeaderSet::Ietf, QuotaUsage::new(&name, allowed(limit, 1)));
        parse(text(&headers, "ratelimit-policy").unwrap())
    };
    assert_eq!(policy(20), [item("user:api:1m", &[("q", 50), ("w", 60)])]);
    // An override of the amount keeps the proportion.
    assert_eq!(policy(40), [item("user:api:1m", &[("q", 100), ("w", 60)])]);
}

#[test]
fn windows_below_a_second_are_written_as_one_second() {
    let name = name("user", "api", "5/200ms");
    let headers = written(HeaderSet::Ietf, QuotaUsage::new(&name, allowed(5, 1)));
    let policy = parse(text(&headers, "ratelimit-policy").unwrap());
    assert_eq!(policy, [item("user:api:200ms", &[("q", 5), ("w", 1)])]);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_names_and_numbers_are_written_as_a_list_of_strings(
        rules in prop::collection::vec("[!#-\\[\\]-~]{1,128}", 1..8),
        dimension in "[!#-\\[\\]-~]{1,64}",
        amounts in prop::collection::vec(1_u64..1 << 53, 8),
        used in 0_u64..u64::MAX,
        wait in 0_u64..1 << 50,
        overridden: bool,
    ) {
        let names: Vec<QuotaName> = rules.iter().zip(&amounts).map(|(rule, amount)| {
            let builder = Quota::builder(*amount, Window::DAY);
            let quota = builder.algorithm(tollgate::Algorithm::FixedWindow).build().unwrap();
            QuotaName::new(&dimension, &Counter::new(rule, quota).unwrap(), &quota).unwrap()
        }).collect();
        let all: Vec<QuotaUsage<'_>> = names.iter().map(|name| {
            let limit = name.limit() + u64::from(overridden);
            QuotaUsage::new(name, Usage::new(limit, used, later(wait), Outcome::Allowed))
        }).collect();
        let mut headers = HeaderMap::new();
        let report = Report::new(all[0], NOW);
        let style = HeaderStyle::new(HeaderSet::Ietf);
        annotate(style, &mut headers, &report, all.iter().copied());

        let most = 999_999_999_999_999_u64;
        let capped = |number: u64| i64::try_from(number.min(most)).unwrap();
        let expected: Vec<_> = all.iter().map(|usage| {
            let limit = capped(usage.usage().limit());
            item(usage.name().as_str(), &[("q", limit), ("w", 86_400)])
        }).collect();
        prop_assert_eq!(parse(text(&headers, "ratelimit-policy").unwrap()), expected);
        let left = capped(all[0].usage().remaining());
        let secs = capped(wait.div_ceil(1_000_000));
        let expected = [item(all[0].name().as_str(), &[("r", left), ("t", secs)])];
        prop_assert_eq!(parse(text(&headers, "ratelimit").unwrap()), expected);
    }
}
