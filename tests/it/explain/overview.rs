//! Overview of a policy, and its warnings.

use tollgate::Quota;
use tollgate::policy::{Count, Policy, PolicyBuilder, Rule, RuleKind, RuleMode, Tiers};

#[test]
fn overview_lists_tiers_rules_endpoints_and_exemptions() {
    use RuleKind::{AlwaysOn, Category, Endpoint, Global};

    let policy = super::policy().build().unwrap();
    let overview = policy.overview();
    let tiers: Vec<_> = overview
        .tiers
        .iter()
        .map(|tier| (tier.name, tier.multiplier, tier.default))
        .collect();
    assert_eq!(
        tiers,
        [
            ("free", 1.0, true),
            ("team", 5.0, false),
            ("enterprise", 10.0, false)
        ]
    );
    let rules: Vec<_> = overview
        .rules
        .iter()
        .map(|rule| (rule.kind, rule.name, rule.counted_per, rule.path))
        .collect();
    assert_eq!(
        rules,
        [
            (Global, "global", "ip", "global.anonymous"),
            (Global, "global", "caller", "global.authenticated"),
            (Category, "secrets", "caller", "categories.secrets"),
            (Category, "mcp", "caller", "categories.mcp"),
            (AlwaysOn, "tenant", "tenant", "rules[0]"),
            (AlwaysOn, "instance", "all", "rules[1]"),
            (Endpoint, "secrets-update", "caller", "endpoints[1]"),
            (Endpoint, "mcp-get", "caller", "endpoints[2]"),
            (Endpoint, "login", "ip", "endpoints[3]"),
            (Endpoint, "ping", "caller", "endpoints[4]"),
        ]
    );
    let amounts = |name: &str, tier: &str| -> Vec<u64> {
        let mut rules = overview.rules.iter();
        let rule = rules.find(|rule| rule.name == name).unwrap();
        rule.quotas(tier).iter().map(Quota::amount).collect()
    };
    assert_eq!(amounts("mcp-get", "team"), [60]);
    assert_eq!(amounts("mcp-get", "enterprise"), [500]);
    assert_eq!(amounts("login", "enterprise"), [10]);

    let endpoints: Vec<_> = overview
        .endpoints
        .iter()
        .map(|endpoint| {
            let category = endpoint.category.as_ref().map(|category| category.name);
            let rules: Vec<_> = endpoint.rules.iter().map(|rule| rule.name).collect();
            (endpoint.route, category, rules, endpoint.global)
        })
        .collect();
    assert_eq!(
        endpoints,
        [
            (
                "GET /v1/secrets/{id}",
                Some("secrets"),
                vec!["secrets"],
                true
            ),
            (
                "PUT /v1/secrets/{id}",
                Some("secrets"),
                vec!["secrets-update"],
                true
            ),
            (
                "POST /v1/mcp/get",
                Some("mcp"),
                vec!["mcp-get", "mcp"],
                true
            ),
            ("POST /login", None, vec!["login"], true),
            ("GET /ping", None, vec!["ping"], false),
        ]
    );
    assert_eq!(overview.exempt_roles, ["service"]);
    assert_eq!(overview.exempt_routes, ["GET /health"]);
    assert_eq!(overview.exempt_networks, ["10.0.0.0/8"]);
    assert_eq!(overview.exempt_subjects, [("tenant", "ourselves")]);
    assert_eq!(overview.warnings(), []);
}

#[test]
fn debug_output_of_an_overview_hides_exempt_subjects() {
    let policy = super::policy().build().unwrap();
    let debug = format!("{:?}", policy.overview());
    assert!(debug.contains("secrets-update"), "{debug}");
    assert!(!debug.contains("ourselves"), "{debug}");
}

fn warnings(policy: PolicyBuilder) -> Vec<String> {
    let policy = policy.build().unwrap();
    let warnings = policy.overview().warnings();
    warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn category_that_counts_no_request_is_reported() {
    let policy = || Policy::builder().everyone("100/hour");
    let unused = policy().category("idle", "10/hour");
    assert_eq!(
        warnings(unused),
        ["categories.idle: no endpoint is in this category"]
    );

    let own = Rule::in_category("busy").limit("5/hour").name("own");
    let replaced = policy()
        .category("busy", "10/hour")
        .endpoint("GET /own", own.clone());
    let [warning] = warnings(replaced.clone()).try_into().unwrap();
    assert!(
        warning.starts_with("categories.busy: every endpoint"),
        "{warning}"
    );
    assert!(warning.contains("stack = true"), "{warning}");

    assert!(warnings(replaced.endpoint("GET /other", Rule::in_category("busy"))).is_empty());
    let stacked = policy().category("busy", Rule::new("10/hour").stack(true));
    assert!(warnings(stacked.endpoint("GET /own", own)).is_empty());
}

#[test]
fn requests_that_no_rule_counts_are_reported() {
    let only = || Policy::builder().endpoint("GET /", Rule::new("5/hour").name("root"));
    let [warning] = warnings(only()).try_into().unwrap();
    assert!(
        warning.starts_with("global: there is no global rule"),
        "{warning}"
    );
    let tenants = only().rule("tenant", Rule::new("10/hour").per(["tenant"]));
    assert_eq!(warnings(tenants).len(), 1);
    for per in [&["ip"][..], &["user"], &[]] {
        let counted = only().rule("counted", Rule::new("10/hour").per(per.iter().copied()));
        assert!(warnings(counted).is_empty(), "{per:?}");
    }
}

#[test]
fn unreachable_quota_is_reported() {
    let policy = || {
        Policy::builder()
            .tiers(Tiers::new("free").tier("team", 5))
            .everyone("100/hour")
    };
    let reports = |rule: Rule| warnings(policy().endpoint("GET /reports", rule.name("reports")));
    let [warning] = reports(Rule::new("101/hour")).try_into().unwrap();
    assert!(
        warning.starts_with("endpoints[0]: `101/1h` for tier `free`"),
        "{warning}"
    );
    let [warning] = reports(Rule::new("100/hour").tier("team", ["501/hour"]))
        .try_into()
        .unwrap();
    assert!(warning.contains("`501/1h` for tier `team`"), "{warning}");
    // These quotas can be reached, or cannot be compared with the global rule.
    for fine in [
        Rule::new("100/hour"),
        Rule::new("101/day"),
        Rule::new("unlimited"),
        Rule::new("101/hour").global(false),
        Rule::new("101/hour").per(["tenant"]).scale(true),
        Rule::new("101/hour").cost(2),
        Rule::new("101/hour").cost_with(|_| 2),
        Rule::new("101/hour").count(Count::success()),
        Rule::new("101/hour").mode(RuleMode::DryRun),
    ] {
        assert!(reports(fine.clone()).is_empty(), "{fine:?}");
    }
}

#[test]
fn shared_counter_with_limits_per_tier_is_reported() {
    let policy = |rule: Rule| {
        Policy::builder()
            .tiers(Tiers::new("free").tier("team", 5))
            .everyone("100/hour")
            .rule("instance", rule)
    };
    let per_tier = Rule::new("1000/hour").per([]).tier("team", ["2000/hour"]);
    let [warning] = warnings(policy(per_tier)).try_into().unwrap();
    assert!(
        warning.starts_with("rules[0]: all callers share"),
        "{warning}"
    );
    assert!(warnings(policy(Rule::new("1000/hour").per([]))).is_empty());
}

#[test]
fn counter_of_a_tenant_with_limits_per_tier_is_reported() {
    let policy = |rule: Rule| {
        Policy::builder()
            .tiers(Tiers::new("free").tier("team", 5))
            .everyone("100/hour")
            .rule("tenant", rule)
    };
    let tenant = || Rule::new("1000/hour").per(["tenant"]);
    let [warning] = warnings(policy(tenant())).try_into().unwrap();
    assert!(
        warning.starts_with("rules[0]: callers of one tenant share its counter"),
        "{warning}"
    );
    assert!(warning.contains("`scale = false`"), "{warning}");
    for fine in [
        tenant().scale(false),
        tenant().scale(true),
        Rule::new("1000/hour").per(["tenant", "user"]),
        Rule::new("1000/hour").per(["ip"]),
    ] {
        assert!(warnings(policy(fine.clone())).is_empty(), "{fine:?}");
    }
}

#[test]
fn category_that_most_of_its_endpoints_ignore_is_reported() {
    let own = |name| Rule::in_category("busy").limit("5/hour").name(name);
    let policy = |category: Rule| {
        Policy::builder()
            .everyone("100/hour")
            .category("busy", category)
            .endpoint("GET /a", own("a"))
            .endpoint("GET /b", own("b"))
            .endpoint("GET /c", Rule::in_category("busy"))
    };
    let [warning] = warnings(policy(Rule::new("10/hour"))).try_into().unwrap();
    assert!(
        warning.starts_with("categories.busy: 2 of its 3 endpoints have a quota of their own"),
        "{warning}"
    );
    for fine in [
        Rule::new("10/hour").stack(true),
        Rule::new("10/hour").stack(false),
        Rule::new("unlimited"),
    ] {
        assert!(warnings(policy(fine.clone())).is_empty(), "{fine:?}");
    }
    let half = policy(Rule::new("10/hour")).endpoint("GET /d", Rule::in_category("busy"));
    assert!(warnings(half).is_empty());
}

#[test]
fn endpoint_without_any_limit_is_reported() {
    let policy = |rule: Rule| {
        Policy::builder()
            .everyone("100/hour")
            .endpoint("GET /free", rule.name("free"))
    };
    let free = || Rule::new("unlimited").global(false);
    let [warning] = warnings(policy(free())).try_into().unwrap();
    assert!(
        warning.starts_with("endpoints[0]: no limit applies to `GET /free`"),
        "{warning}"
    );
    assert!(warnings(policy(Rule::new("unlimited"))).is_empty());
    let instance = Rule::new("1000/second").per([]);
    assert!(warnings(policy(free()).rule("instance", instance)).is_empty());
    let dry_run = Rule::new("1000/second").per([]).mode(RuleMode::DryRun);
    assert_eq!(warnings(policy(free()).rule("instance", dry_run)).len(), 1);
}

#[test]
fn exemptions_that_cover_everything_are_reported() {
    let policy = || Policy::builder().everyone("100/hour");
    for (network, is_reported) in [
        // A policy with a prefix of 0 bits is invalid.
        ("0.0.0.0/1", true),
        ("8000::/1", true),
        ("2000::/3", true),
        ("2000::/5", false),
        ("10.0.0.0/8", false),
        ("192.0.2.0/30", false),
    ] {
        let found = warnings(policy().exempt_network(network));
        assert_eq!(
            found.len(),
            usize::from(is_reported),
            "{network}: {found:?}"
        );
    }
    for (route, is_reported) in [
        ("/{*path}", true),
        ("GET /{*path}", true),
        ("GET /assets/{*path}", false),
        ("GET /health", false),
    ] {
        let found = warnings(policy().exempt_route(route));
        assert_eq!(found.len(), usize::from(is_reported), "{route}: {found:?}");
    }
}

#[test]
fn letters_outside_ascii_in_routes_are_reported() {
    let policy = Policy::builder()
        .everyone("100/hour")
        .endpoint("POST /l\u{43e}gin", Rule::new("5/hour").name("login"))
        .exempt_route("GET /healt\u{4bb}");
    let policy = policy.build().unwrap();
    let warnings = policy.overview().warnings();
    let paths: Vec<&str> = warnings.iter().map(|warning| &*warning.path).collect();
    assert_eq!(paths, ["endpoints[0].route", "exempt.routes[0]"]);
    assert!(warnings[0].text.contains("U+043E"), "{}", warnings[0]);
}
