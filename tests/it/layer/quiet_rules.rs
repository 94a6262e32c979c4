//! Rules that responses report only when they deny.

use tollgate::config::Config;
use tollgate::headers::HeaderSet;
use tollgate::policy::{IntoPolicy, Policy, Rule};

use super::{Answer, echo, layer, send};

/// Returns the responses to three requests.
async fn three(policy: impl IntoPolicy) -> Vec<Answer> {
    let (builder, _) = layer(policy);
    let limits = builder.headers(HeaderSet::Both).build().unwrap();
    let app = echo().layer(limits);
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(send(&app, "GET /a", &[]).await);
    }
    answers
}

fn window_and_burst() -> [Policy; 2] {
    let burst = Rule::new("2/second").name("burst").quiet(true);
    let built = Policy::builder()
        .everyone("100/hour")
        .endpoint("GET /a", burst)
        .build();
    let file = "[global]\neveryone = \"100/hour\"\n\
                [[endpoints]]\nroute = \"GET /a\"\nname = \"burst\"\nlimit = \"2/second\"\nquiet = true\n";
    let read = Config::from_toml(file).unwrap().into_policy();
    [built.unwrap(), read]
}

#[tokio::test]
async fn a_quiet_rule_is_reported_only_when_it_denies() {
    for policy in window_and_burst() {
        let [first, second, denied] = three(policy).await.try_into().unwrap();
        for (answer, left) in [(first, 99), (second, 98)] {
            assert_eq!(answer.status, 200);
            assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:global:1h"));
            assert_eq!(answer.number("x-ratelimit-limit"), 100);
            assert_eq!(answer.number("x-ratelimit-remaining"), left);
            // Two of two is a warning for a rule that is reported.
            assert_eq!(answer.header("x-ratelimit-warning"), None);
            // The field lists every quota of the request.
            assert!(answer.header("ratelimit-policy").unwrap().contains("burst"));
        }
        assert_eq!(denied.status, 429);
        assert_eq!(denied.header("x-ratelimit-policy"), Some("ip:burst:1s"));
        assert_eq!(denied.number("x-ratelimit-limit"), 2);
    }
}

/// There is no other quota to report.
#[tokio::test]
async fn the_tightest_of_quiet_rules_is_reported() {
    let rule = |name: &str, quota: &str| Rule::new(quota).name(name).global(false).quiet(true);
    let policy = Policy::builder()
        .endpoint("GET /a", rule("one", "2/hour"))
        .rule("all", Rule::new("9/hour").quiet(true));
    let [first, _, denied] = three(policy).await.try_into().unwrap();
    assert_eq!(first.header("x-ratelimit-policy"), Some("ip:one:1h"));
    assert_eq!(first.number("x-ratelimit-remaining"), 1);
    assert_eq!(denied.header("x-ratelimit-policy"), Some("ip:one:1h"));
}
