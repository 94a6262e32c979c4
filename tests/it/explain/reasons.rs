//! Rules, counters and quotas of an explanation, and reasons for skipped rules.

use std::collections::BTreeSet;

use http::Request;
use tollgate::policy::{
    Exemption, ExplainRequest, Explanation, Policy, Rule, RuleKind, RuleMode, Scaling, SkipReason,
    TierSource,
};
use tollgate::{Identity, Timestamp};

fn explain(policy: &Policy, request: &str, identity: Option<Identity>) -> Explanation {
    let explain_request = ExplainRequest::new(request).unwrap().ip([203, 0, 113, 9]);
    policy.explain(&match identity {
        Some(identity) => explain_request.identity(identity),
        None => explain_request,
    })
}

/// Returns policy, counter and limit of each quota that counts the request, in order.
fn counted(explanation: &Explanation) -> Vec<(&str, &str, u64)> {
    let counted = explanation.counted_by.iter();
    counted
        .map(|by| (&*by.policy, &*by.counter, by.quota.amount()))
        .collect()
}

/// Returns name and reason of each rule that does not count the request.
fn skipped(explanation: &Explanation) -> Vec<(&str, &SkipReason)> {
    let skipped = explanation.not_counted_by.iter();
    skipped.map(|rule| (&*rule.rule, &rule.why)).collect()
}

#[test]
fn category_global_and_always_on_rules_count_an_endpoint() {
    let policy = super::policy().build().unwrap();
    let alice = Identity::user("alice").tenant("acme").tier("team");
    let explanation = explain(&policy, "GET /v1/secrets/42", Some(alice));
    assert_eq!(explanation.request, "GET /v1/secrets/42");
    assert_eq!(explanation.caller, "user=alice");
    assert_eq!(explanation.endpoint(), Some("GET /v1/secrets/{id}"));
    assert_eq!((&*explanation.tier, explanation.multiplier), ("team", 5.0));
    assert_eq!(
        counted(&explanation),
        [
            ("user:secrets:1h", "user=alice", 2_500),
            ("user:global:1h", "user=alice", 5_000),
            ("tenant:tenant:1d", "tenant=acme", 500_000),
            ("all:instance:1s", "all callers", 1_000),
        ]
    );
    let kinds: Vec<RuleKind> = explanation.counted_by.iter().map(|by| by.kind).collect();
    let expected = [
        RuleKind::Category,
        RuleKind::Global,
        RuleKind::AlwaysOn,
        RuleKind::AlwaysOn,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(
        skipped(&explanation),
        [("global", &SkipReason::OnlyAnonymous)]
    );
}

#[test]
fn endpoint_quota_replaces_the_category_unless_stacked() {
    let policy = super::policy().build().unwrap();
    let alice = || Some(Identity::user("alice"));
    let replaced = explain(&policy, "PUT /v1/secrets/42", alice());
    assert_eq!(
        counted(&replaced)[0],
        ("user:secrets-update:1h", "user=alice", 100)
    );
    assert_eq!(
        skipped(&replaced),
        [
            ("secrets", &SkipReason::Replaced),
            ("global", &SkipReason::OnlyAnonymous),
            ("tenant", &SkipReason::Lacks("tenant".into())),
        ]
    );
    let stacked = explain(&policy, "POST /v1/mcp/get", alice());
    let policies: Vec<&str> = stacked.counted_by.iter().map(|by| &*by.policy).collect();
    assert_eq!(policies[..2], ["user:mcp-get:1h", "user:mcp:1h"]);
}

#[test]
fn unauthenticated_callers_are_counted_by_client_ip() {
    let policy = super::policy().build().unwrap();
    let explanation = explain(&policy, "GET /v1/secrets/42", None);
    assert_eq!(
        counted(&explanation)[..2],
        [
            ("ip:secrets:1h", "ip=203.0.113.9", 500),
            ("ip:global:1h", "ip=203.0.113.9", 100),
        ]
    );
    assert_eq!(
        skipped(&explanation)[0],
        ("global", &SkipReason::OnlyAuthenticated)
    );
    let nowhere = policy.explain(&ExplainRequest::new("GET /nowhere").unwrap());
    assert_eq!(nowhere.endpoint(), None);
    assert_eq!(counted(&nowhere)[0], ("ip:global:1h", "ip=unknown", 100));
}

/// The counter is that of the network. Exemptions apply to the address.
#[test]
fn counted_as_replaces_the_client_ip() {
    let policy = super::policy().build().unwrap();
    let address: std::net::IpAddr = "2001:db8::1:2:3:4".parse().unwrap();
    let network: std::net::IpAddr = "2001:db8::".parse().unwrap();
    let explain_request = ExplainRequest::new("GET /")
        .unwrap()
        .ip(address)
        .counted_as(network);
    assert_eq!(policy.explain(&explain_request).caller, "ip=2001:db8::");
}

#[test]
fn endpoint_without_global_rules_skips_them() {
    let policy = super::policy().build().unwrap();
    let explanation = explain(&policy, "HEAD /ping", None);
    assert_eq!(explanation.endpoint(), Some("GET /ping"));
    let first = &explanation.counted_by[0];
    assert_eq!((&*first.policy, first.cost), ("ip:ping:1m", 2));
    assert_eq!(
        skipped(&explanation)[..2],
        [
            ("global", &SkipReason::WithoutGlobal),
            ("global", &SkipReason::WithoutGlobal)
        ]
    );
}

#[test]
fn quota_has_its_base_and_scaling() {
    let policy = super::policy().build().unwrap();
    let scaling = |request, tier| {
        let explanation = explain(&policy, request, Some(Identity::user("alice").tier(tier)));
        let first = &explanation.counted_by[0];
        (first.base.amount(), first.scaling, first.quota.amount())
    };
    assert_eq!(
        scaling("POST /v1/mcp/get", "free"),
        (50, Scaling::Times(1.0), 50)
    );
    assert_eq!(scaling("POST /v1/mcp/get", "team"), (50, Scaling::Own, 60));
    assert_eq!(
        scaling("POST /v1/mcp/get", "enterprise"),
        (50, Scaling::Times(10.0), 500)
    );
    assert_eq!(
        scaling("POST /login", "enterprise"),
        (10, Scaling::Never, 10)
    );
}

#[test]
fn tier_has_its_source() {
    let policy = super::policy().build().unwrap();
    let tier = |identity: Option<Identity>| {
        let explanation = explain(&policy, "GET /", identity);
        (explanation.tier, explanation.tier_source)
    };
    let named = |tier: &str, source| (tier.to_owned(), source);
    assert_eq!(tier(None), named("free", TierSource::Default));
    let alice = || Identity::user("alice");
    assert_eq!(tier(Some(alice())), named("free", TierSource::Default));
    assert_eq!(
        tier(Some(alice().tier("team"))),
        named("team", TierSource::Identity)
    );
    let unknown = TierSource::Unknown("gold".to_owned());
    assert_eq!(tier(Some(alice().tier("gold"))), named("free", unknown));
    let ada = Identity::user("ada").tier("team");
    assert_eq!(tier(Some(ada)), named("enterprise", TierSource::Table));
}

#[test]
fn exemption_names_its_cause() {
    let until = Timestamp::from_secs(2_000);
    let policy = super::policy().disabled_until(until).build().unwrap();
    let explain_request =
        |request: &str| ExplainRequest::new(request).unwrap().ip([203, 0, 113, 9]);
    let exempt = [
        (
            explain_request("GET /health"),
            Exemption::Route,
            "GET /health",
        ),
        (
            explain_request("GET /").identity(Identity::user("job").role("x").role("service")),
            Exemption::Role,
            "`service`",
        ),
        (
            explain_request("GET /").identity(Identity::user("job").tenant("ourselves")),
            Exemption::Subject,
            "tenant=ourselves",
        ),
        (
            explain_request("GET /").ip([10, 1, 2, 3]),
            Exemption::Network,
            "10.0.0.0/8",
        ),
        (
            explain_request("GET /").at(Timestamp::from_secs(1_999)),
            Exemption::Maintenance,
            "1970-01-01T00:33:20",
        ),
    ];
    for (explain_request, why, named) in exempt {
        let explanation = policy.explain(&explain_request);
        assert_eq!(explanation.exemption, Some(why));
        let because = explanation.exempt_because.unwrap();
        assert!(because.contains(named), "{because}");
        assert_eq!(explanation.counted_by.len(), 0, "{because}");
        let mut skipped = explanation.not_counted_by.iter();
        let is_exempt = skipped.all(|rule| rule.why == SkipReason::Exempt);
        assert!(is_exempt, "{because}");
    }
    for explain_request in [explain_request("GET /").at(until), explain_request("GET /")] {
        assert_eq!(policy.explain(&explain_request).exemption, None);
    }
}

#[test]
fn closures_of_the_policy_are_called() {
    let policy = Policy::builder()
        .everyone(
            Rule::new("100/hour").cost_with(|head| u64::from(head.path() == "/export") * 9 + 1),
        )
        .exempt_when(|head| head.header("x-probe") == Some("1"))
        .build()
        .unwrap();
    let cost = |request| {
        let explanation = explain(&policy, request, None);
        explanation.counted_by[0].cost
    };
    assert_eq!((cost("GET /"), cost("GET /export")), (1, 10));
    let probe = Request::get("/").header("x-probe", "1").body(()).unwrap();
    let explanation = policy.explain(&probe.into());
    assert_eq!(explanation.exemption, Some(Exemption::Predicate));
}

#[test]
fn malformed_requests_are_rejected() {
    for (wrong, expected) in [
        ("", "a method and a path"),
        ("/v1/secrets", "a method and a path"),
        ("get /v1/secrets", "in capitals"),
        ("GET v1/secrets", "begins with `/`"),
        ("GET https://example.org/", "begins with `/`"),
        ("GET /a b", "without spaces"),
        ("GET /\u{7}", "as clients send it"),
    ] {
        let error = ExplainRequest::new(wrong).unwrap_err();
        assert_eq!(error.field(), "request");
        assert!(error.expected().contains(expected), "{error}");
    }
    let explanation = explain(&super::policy().build().unwrap(), " GET  /ping?x=1 ", None);
    assert_eq!(explanation.endpoint(), Some("GET /ping"));
}

#[test]
fn debug_output_hides_subjects() {
    let policy = super::policy().build().unwrap();
    let alice = Identity::user("alice@example.org").tenant("acme");
    let explain_request = ExplainRequest::new("GET /ping")
        .unwrap()
        .identity(alice)
        .ip([203, 0, 113, 9]);
    let explanation = policy.explain(&explain_request);
    let debug = format!("{explain_request:?} {explanation:?}");
    for secret in ["alice", "acme", "203.0"] {
        assert!(!debug.contains(secret), "{debug}");
        assert!(secret == "203.0" || explanation.to_string().contains(secret));
    }
}

/// The least specific dry run is left out of a batch that is full.
#[test]
fn quiet_does_not_change_which_dry_run_is_left_out() {
    let counting = |quiet: bool| -> BTreeSet<String> {
        let dry_run = || {
            let more = (2..=8).map(|hours| format!("10/{hours}h"));
            more.fold(Rule::new("10/1h").mode(RuleMode::DryRun), Rule::limit)
        };
        let policy = Policy::builder()
            .everyone("100/hour")
            .endpoint("GET /{name}", dry_run().name("one").quiet(quiet))
            .endpoint("GET /a/b", dry_run().name("two").quiet(quiet))
            .rule("all", dry_run())
            .build()
            .unwrap();
        let explanation = explain(&policy, "GET /a%2Fb", None);
        assert_eq!(explanation.endpoints.len(), 2);
        let counted = explanation.counted_by.into_iter();
        counted.map(|by| by.rule).collect()
    };
    assert_eq!(
        counting(true),
        ["global", "one", "two"].map(str::to_owned).into()
    );
    assert_eq!(counting(true), counting(false));
}
