//! What is printed can be read, and means the same.

use std::fs;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use tollgate::config::Source;
use tollgate::policy::{
    Count, Inquiry, OnStoreFailure, Policy, PolicyBuilder, Preflight, Rule, Tiers,
};
use tollgate::{Identity, Timestamp};

use crate::support::root;

const TIERS: [&str; 3] = ["free", "team", "a b.c"];
const ROUTES: [&str; 5] = [
    "GET /v1/items/{id}",
    "POST /v1/items",
    "/v1/{*rest}",
    "DELETE /v1/items/{id}",
    "PUT /a~b/{x}",
];
const REQUESTS: [&str; 6] = [
    "GET /v1/items/1",
    "HEAD /v1/items/1",
    "POST /v1/items",
    "DELETE /v1/items/1",
    "GET /v1/a/b",
    "GET /",
];
/// Each window only once, so that any of them go together.
const QUOTAS: [[&str; 4]; 4] = [
    ["7/s", "90/s", "unlimited", "blocked"],
    [
        "10/15m, token-bucket, burst 3",
        "20/15m, token-bucket",
        "unlimited",
        "blocked",
    ],
    [
        "100/hour, sliding-buckets, buckets 12",
        "500/hour, sliding-buckets, buckets 12",
        "unlimited",
        "blocked",
    ],
    [
        "9000/month, fixed-window",
        "1/month, fixed-window",
        "unlimited",
        "blocked",
    ],
];
const TEXTS: [&str; 6] = [
    "",
    "Plain.",
    "It's \"quoted\" \\ and {used}",
    "two\nlines\r\nand a tab\t",
    "# no comment = [[x]] '''\"\"\"",
    "日本 \u{202e}\u{0}\u{7f}",
];

fn outcomes() -> impl Strategy<Value = Option<OnStoreFailure>> {
    let all = [
        OnStoreFailure::Local,
        OnStoreFailure::Allow,
        OnStoreFailure::Deny,
    ];
    prop::option::of(select(all.to_vec()))
}

/// Quotas, and numbers of their own for some tiers.
fn quotas(from: Rule) -> impl Strategy<Value = Rule> {
    let tiers = subsequence(TIERS.to_vec(), 0..=3);
    let windows = subsequence(QUOTAS.to_vec(), 1..=2);
    (windows, tiers, 0_usize..4).prop_map(move |(windows, tiers, choice)| {
        let mut rule = windows
            .iter()
            .fold(from.clone(), |rule, window| rule.quota(window[0]));
        for (index, tier) in tiers.into_iter().enumerate() {
            let numbers = windows.iter().map(|window| window[(choice + index) % 4]);
            rule = rule.tier(tier, numbers.collect::<Vec<_>>());
        }
        rule
    })
}

/// What goes with any rule that has quotas.
fn rules(from: Rule) -> impl Strategy<Value = Rule> {
    let per = prop::option::of(subsequence(vec!["user", "ip", "tenant"], 0..=2));
    (quotas(from), per, any::<[bool; 2]>(), terms()).prop_map(
        |(mut rule, per, [unscaled, dry_run], terms)| {
            if let Some(per) = per {
                rule = rule.per(per);
            }
            if unscaled {
                rule = rule.unscaled();
            }
            if dry_run {
                rule = rule.dry_run();
            }
            terms.on(rule)
        },
    )
}

/// What also goes with an endpoint that shares the quotas of its category.
#[derive(Clone, Debug)]
struct Terms {
    count: Option<Count>,
    cost: Option<u64>,
    message: Option<&'static str>,
    suggestion: Option<&'static str>,
    failure: Option<OnStoreFailure>,
}

fn terms() -> impl Strategy<Value = Terms> {
    let counts = vec![
        Count::all(),
        Count::success(),
        Count::failure(),
        Count::statuses(["2xx", "404"]).unwrap(),
    ];
    let texts = || prop::option::of(select(TEXTS.to_vec()));
    (
        prop::option::of(select(counts)),
        prop::option::of(0_u64..4),
        texts(),
        texts(),
        outcomes(),
    )
        .prop_map(|(count, cost, message, suggestion, failure)| Terms {
            count,
            cost,
            message,
            suggestion,
            failure,
        })
}

impl Terms {
    fn on(self, mut rule: Rule) -> Rule {
        if let Some(count) = self.count {
            rule = rule.count(count);
        }
        if let Some(cost) = self.cost {
            rule = rule.cost(cost);
        }
        if let Some(message) = self.message {
            rule = rule.message(message);
        }
        if let Some(suggestion) = self.suggestion {
            rule = rule.suggestion(suggestion);
        }
        if let Some(failure) = self.failure {
            rule = rule.on_store_failure(failure);
        }
        rule
    }
}

fn endpoints() -> impl Strategy<Value = Vec<(&'static str, Rule)>> {
    let shared = || Rule::in_category("shared");
    let endpoint = prop_oneof![
        rules(Rule::default()),
        rules(shared()),
        terms().prop_map(move |terms| terms.on(shared())),
    ];
    let endpoint = (endpoint, any::<bool>());
    let routes = subsequence(ROUTES.to_vec(), 0..=ROUTES.len());
    (routes, prop::collection::vec(endpoint, ROUTES.len())).prop_map(|(routes, rules)| {
        let rules = rules.into_iter().map(
            |(rule, without)| {
                if without { rule.without_global() } else { rule }
            },
        );
        routes.into_iter().zip(rules).collect()
    })
}

/// Policies of all kinds, each of which is fine.
pub(super) fn policies() -> impl Strategy<Value = PolicyBuilder> {
    let tiers = prop_oneof![
        Just(Tiers::new("free").tier("team", 5).tier("a b.c", 0.125)),
        Just(
            Tiers::new("team")
                .tier("free", 1)
                .tier("a b.c", 12.5)
                .tier("team", 2)
        ),
        Just(
            Tiers::default()
                .tier("free", 0.333)
                .tier("team", 3)
                .tier("a b.c", 1)
                .assign("user", "ada", "team")
                .assign("tenant", "acme \"ltd\"", "free")
                .assign("user", "ada", "a b.c")
        ),
    ];
    let around = (
        tiers,
        outcomes(),
        0.0..2.0_f64,
        prop::option::of(0_u64..7_857_648_000_000_000),
    );
    let global = (
        prop::option::of(rules(Rule::default())),
        prop::option::of(rules(Rule::default())),
    );
    let category = (rules(Rule::default()), any::<bool>());
    let always = prop::collection::vec(rules(Rule::default()), 0..2);
    (
        around,
        global,
        category,
        endpoints(),
        always,
        any::<[bool; 4]>(),
    )
        .prop_map(
            |((tiers, failure, warn_at, until), global, category, endpoints, always, exempt)| {
                let mut policy = Policy::builder().tiers(tiers).warn_at(warn_at);
                if let Some(failure) = failure {
                    policy = policy.on_store_failure(failure);
                }
                if let Some(until) = until {
                    policy = policy.maintenance_until(Timestamp::from_micros(until));
                }
                if let Some(rule) = global.0 {
                    policy = policy.authenticated(rule);
                }
                if let Some(rule) = global.1 {
                    policy = policy.anonymous(rule);
                }
                let (category, stacked) = category;
                let category = if stacked {
                    category.stacked()
                } else {
                    category
                };
                policy = policy.category("shared", category);
                for (route, rule) in endpoints {
                    policy = policy.endpoint(route, rule);
                }
                for (index, rule) in always.into_iter().enumerate() {
                    policy = policy.rule(format!("rule-{index}"), rule);
                }
                if exempt[0] {
                    policy = policy.exempt_role("service").exempt_role("it's");
                }
                if exempt[1] {
                    policy = policy
                        .exempt_subject("user", "root")
                        .exempt_subject("tenant", "us");
                    policy = policy
                        .exempt_subject("user", "toor")
                        .exempt_network("10.0.0.0/8");
                }
                if exempt[2] {
                    policy = policy.exempt_route("GET /health");
                }
                if exempt[3] {
                    policy
                        .preflight(Preflight::Count)
                        .preflight_quota("50/minute")
                } else {
                    policy
                }
            },
        )
}

/// What a policy makes of many requests, and what it says of itself.
fn meaning(policy: &Policy) -> String {
    let mut all = Vec::new();
    let callers = [
        None,
        Some(Identity::user("ada").tier("free")),
        Some(Identity::user("bob").tier("team").tenant("acme \"ltd\"")),
        Some(Identity::user("eve").tier("a b.c").tenant("us")),
        Some(Identity::user("root").role("it's")),
    ];
    for request in REQUESTS {
        for caller in &callers {
            for ip in [[10, 0, 0, 1], [203, 0, 113, 9]] {
                let mut inquiry = Inquiry::new(request).unwrap().ip(ip);
                if let Some(caller) = caller {
                    inquiry = inquiry.identity(caller.clone());
                }
                all.push(format!("{:#?}", policy.explain(&inquiry)));
            }
        }
    }
    let overview = policy.overview();
    all.push(format!("{:?}", overview.tiers().collect::<Vec<_>>()));
    all.push(format!(
        "{:?}",
        overview.exempt_routes().collect::<Vec<_>>()
    ));
    all.join("\n")
}

fn read(text: &str) -> tollgate::config::Config {
    let config = super::toml(text);
    config.unwrap_or_else(|error| panic!("{error}\n\n{text}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn what_is_printed_means_the_same(policy in policies()) {
        let printed = policy.to_toml().unwrap();
        let config = read(&printed);
        prop_assert_eq!(config.to_toml().unwrap(), &*printed);
        prop_assert_eq!(config.policy().to_toml().unwrap(), &*printed);
        let until = policy.clone().build().unwrap().overview().maintenance_until();
        let again = config.into_policy();
        prop_assert_eq!(again.overview().maintenance_until(), until);
        // A policy that limits nobody says so when it is printed, which is one rule more.
        if !printed.contains("[global]\nauthenticated = \"unlimited\"") {
            let policy = policy.build().unwrap();
            prop_assert_eq!(meaning(&again), meaning(&policy), "{}", printed);
        }
    }
}

const VARIABLES: [(&str, &str); 1] = [("JWT_SECRET", crate::support::tokens::SECRET)];

/// Everything that a file can say, once, and who callers are, which only a file says.
#[test]
fn a_whole_file() {
    let text = include_str!("spec.toml");
    let config = Source::toml(text).variables(VARIABLES).read().unwrap();
    let printed = config.to_toml().unwrap();
    let again = Source::toml(&*printed).variables(VARIABLES).read().unwrap();
    assert_eq!(again.to_toml().unwrap(), printed);
    assert_eq!(again.headers(), config.headers());
    assert_eq!(
        format!("{:#?}", again.policy()),
        format!("{:#?}", config.policy())
    );
    assert_eq!(
        format!("{:#?}", again.client_ip()),
        format!("{:#?}", config.client_ip())
    );
    let path = root().join("tests/it/config/spec.printed.toml");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &printed).unwrap();
    }
    assert_eq!(
        printed,
        fs::read_to_string(&path).unwrap(),
        "run the test with BLESS=1"
    );
}

/// A quota that a file leaves to `defaults` says itself how it is counted, wherever it is.
#[test]
fn algorithms_are_said_where_they_are_used() {
    let text = "\
[defaults]
algorithm = 'token-bucket'
[global]
authenticated = ['10/s', { limit = 5, window = '1m', algorithm = 'sliding-window' }]
[identity]
failed_auth_quota = '9/minute'
on_invalid = 'anonymous'
";
    assert_eq!(
        read(text).to_toml().unwrap(),
        "\
[global]
authenticated = [\"10/second, token-bucket\", \"5/minute\"]

[identity]
failed_auth_quota = \"9/minute, token-bucket\"
"
    );
}

#[test]
fn what_only_code_can_say_is_a_comment() {
    let policy = Policy::builder()
        .everyone(Rule::new("10/s").cost_with(|head| head.path().len() as u64))
        .exempt_when(|_| false);
    let printed = policy.to_toml().unwrap();
    assert_eq!(
        printed,
        "\
[global.authenticated]
limit = \"10/second\"
# cost: only code can say what each request costs

[global.anonymous]
limit = \"10/second\"
# cost: only code can say what each request costs

[exempt]
# Only code can say: requests of which a closure says so
"
    );
    assert!(super::toml(&printed).is_ok());
}

/// What a category says goes for its endpoints, unless they say something else, be it what
/// everybody else says.
#[test]
fn what_differs_from_a_category_is_said() {
    let policy = Policy::builder()
        .category("shared", Rule::new("10/s").cost(3).count(Count::failure()))
        .endpoint(
            "/a",
            Rule::in_category("shared").cost(1).count(Count::all()),
        );
    let printed = policy.to_toml().unwrap();
    assert!(
        printed.ends_with("category = \"shared\"\ncount = \"all\"\ncost = 1\n"),
        "{printed}"
    );
}

#[test]
fn a_policy_without_limits_can_be_read_as_well() {
    let printed = Policy::builder().to_toml().unwrap();
    assert_eq!(printed, "[global]\nauthenticated = \"unlimited\"\n");
    assert!(super::toml(&printed).is_ok());
}

/// What is wrong, or has no name in files, is told instead of printed.
#[test]
fn what_no_file_can_say_is_refused() {
    let fine = || Policy::builder().authenticated("10/s");
    for (policy, told) in [
        (Policy::builder().authenticated("10/x"), "quota window"),
        (
            Policy::builder().authenticated(Rule::new("10/s").message("{userd}")),
            "{userd}",
        ),
        (fine().tiers(Tiers::new("free").tier("assign", 2)), "tier"),
        (fine().tiers(Tiers::default().tier("default", 2)), "tier"),
        (fine().tiers(Tiers::new("free").tier("default", 2)), "tier"),
    ] {
        let problems = policy.to_toml().unwrap_err();
        assert!(problems.to_string().contains(told), "{problems}");
    }
    let plain = fine().tiers(Tiers::default().tier("team", 2));
    assert!(super::toml(&plain.to_toml().unwrap()).is_ok());
}

/// A name that may be a secret is not shown.
#[test]
fn a_secret_in_the_place_of_its_name_is_not_printed() {
    let text = "\
[global]
authenticated = '10/s'
[identity.jwt]
algorithms = ['HS256']
secret_env = 'hunter2'
";
    let config = Source::toml(text).without_keys().read().unwrap();
    let printed = config.to_toml().unwrap();
    assert!(!printed.contains("hunter2"), "{printed}");
    assert!(printed.contains("# secret_env"), "{printed}");
}

/// Printing once went through all names for each of them, so that a list of a hundred thousand
/// took minutes.
#[test]
fn as_many_names_as_anybody_has() {
    let mut tiers = Tiers::new("free");
    let mut policy = Policy::builder().authenticated("10/s");
    for number in 0..100_000 {
        policy = policy.exempt_subject(format!("d{number}"), "x");
        tiers = tiers.assign("user", format!("u{number}"), "free");
    }
    let printed = policy.tiers(tiers).to_toml().unwrap();
    assert_eq!(printed.matches(" = [\"x\"]\n").count(), 100_000);
    assert_eq!(printed.matches(" = \"free\"\n").count(), 100_001);
}
