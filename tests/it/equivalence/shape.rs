//! Random policies, with limits that a few requests reach.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate::policy::{Count, Policy, PolicyBuilder, Rule, RuleMode, Tiers};

pub(super) const ROUTES: [&str; 4] = ["GET /a", "/a", "/a/{id}", "/files/{*rest}"];

/// A policy that can be printed when a case fails.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicyShape {
    authenticated: Option<RuleShape>,
    anonymous: Option<RuleShape>,
    category: Option<(RuleShape, bool)>,
    endpoints: Vec<(&'static str, EndpointShape)>,
    always_on: Option<RuleShape>,
    has_tiers: bool,
    exempt: Option<Exempt>,
}

#[derive(Clone, Debug)]
struct RuleShape {
    quotas: Vec<String>,
    per: Option<&'static [&'static str]>,
    count: Option<&'static str>,
    cost: Cost,
    /// Amount for the tier `team`, if it has one.
    amount_of_team: Option<u64>,
    is_scaled: bool,
    is_dry_run: bool,
}

#[derive(Clone, Debug)]
struct EndpointShape {
    own: Option<RuleShape>,
    in_category: bool,
    has_global: bool,
}

#[derive(Clone, Copy, Debug)]
enum Cost {
    Fixed(u64),
    /// The number in the header `x-cost`.
    OfRequest,
}

#[derive(Clone, Copy, Debug)]
enum Exempt {
    Role,
    Subject,
    Network,
    Route,
    Predicate,
}

fn quota(windows: &[&'static str]) -> impl Strategy<Value = String> + use<> {
    let algorithm = select(vec![
        "",
        ", fixed-window",
        ", sliding-window",
        ", sliding-buckets",
        ", sliding-log",
        ", token-bucket",
    ]);
    (1..8_u64, select(windows.to_vec()), algorithm)
        .prop_map(|(amount, window, algorithm)| format!("{amount}/{window}{algorithm}"))
}

fn rule() -> impl Strategy<Value = RuleShape> {
    let quotas = prop_oneof![
        3 => quota(&["10s", "minute", "hour", "day"]).prop_map(|quota| vec![quota]),
        2 => [quota(&["10s", "minute"]), quota(&["hour", "day"])].prop_map(Vec::from),
        1 => select(vec!["unlimited", "blocked"]).prop_map(|word| vec![word.to_owned()]),
    ];
    let per: Vec<&[&str]> = vec![&[], &["ip"], &["user"], &["tenant"], &["tenant", "user"]];
    let cost = prop_oneof![
        4 => Just(Cost::Fixed(1)),
        1 => (0..4_u64).prop_map(Cost::Fixed),
        1 => Just(Cost::OfRequest),
    ];
    let count = option::weighted(0.3, select(vec!["success", "failure", "4xx"]));
    let flags = (prop::bool::weighted(0.8), prop::bool::weighted(0.15));
    let of_team = option::weighted(0.2, 5..12_u64);
    (
        quotas,
        option::weighted(0.4, select(per)),
        count,
        cost,
        of_team,
        flags,
    )
        .prop_map(
            |(quotas, per, count, cost, of_team, (is_scaled, is_dry_run))| RuleShape {
                amount_of_team: of_team,
                quotas,
                per,
                count,
                cost,
                is_scaled,
                is_dry_run,
            },
        )
}

fn endpoint() -> impl Strategy<Value = EndpointShape> {
    (option::weighted(0.7, rule()), any::<bool>(), any::<bool>()).prop_map(
        |(own, in_category, has_global)| EndpointShape {
            own,
            in_category,
            has_global,
        },
    )
}

pub(super) fn policy() -> impl Strategy<Value = PolicyShape> {
    // A policy with one quota is the most frequent one, so it has a case of its own.
    let short = rule().prop_map(|rule| PolicyShape {
        authenticated: Some(rule.clone()),
        anonymous: Some(rule),
        ..PolicyShape::default()
    });
    let exempt = vec![
        Exempt::Role,
        Exempt::Subject,
        Exempt::Network,
        Exempt::Route,
        Exempt::Predicate,
    ];
    let endpoints: Vec<_> = ROUTES
        .into_iter()
        .map(|route| option::of(endpoint().prop_map(move |endpoint| (route, endpoint))))
        .collect();
    let any_shape = (
        (option::of(rule()), option::of(rule())),
        option::of((rule(), any::<bool>())),
        endpoints,
        option::weighted(0.3, rule()),
        any::<bool>(),
        option::weighted(0.3, select(exempt)),
    );
    let any_shape = any_shape.prop_map(
        |((authenticated, anonymous), category, endpoints, always_on, has_tiers, exempt)| {
            PolicyShape {
                authenticated,
                anonymous,
                category,
                endpoints: endpoints.into_iter().flatten().collect(),
                always_on,
                has_tiers,
                exempt,
            }
        },
    );
    prop_oneof![1 => short, 3 => any_shape]
}

impl RuleShape {
    fn build(&self, mut rule: Rule, has_tiers: bool) -> Rule {
        for quota in &self.quotas {
            rule = rule.limit(quota.as_str());
        }
        if let Some(per) = self.per {
            rule = rule.per(per.iter().copied());
        }
        rule = match self.count {
            None => rule,
            Some("success") => rule.count(Count::success()),
            Some("failure") => rule.count(Count::failure()),
            Some(status) => rule.count(Count::statuses([status]).unwrap()),
        };
        rule = match self.cost {
            Cost::Fixed(cost) => rule.cost(cost),
            Cost::OfRequest => rule.cost_with(|head| {
                let cost = head.header("x-cost").and_then(|cost| cost.parse().ok());
                cost.unwrap_or(1)
            }),
        };
        if let Some(amount) = self.amount_of_team.filter(|_| has_tiers) {
            // Windows and algorithms are the same in all tiers.
            let with_amount = |quota: &String| match quota.split_once('/') {
                Some((_, rest)) => format!("{amount}/{rest}"),
                None => quota.clone(),
            };
            rule = rule.tier("team", self.quotas.iter().map(with_amount));
        }
        if !self.is_scaled {
            rule = rule.scale(false);
        }
        if self.is_dry_run {
            rule = rule.mode(RuleMode::DryRun);
        }
        rule
    }
}

impl PolicyShape {
    pub(super) fn build(&self) -> PolicyBuilder {
        let mut policy = Policy::builder();
        if self.has_tiers {
            let tiers = Tiers::new("free").tier("team", 2);
            policy = policy.tiers(tiers.assign("user", "bob", "team"));
        }
        if let Some(rule) = &self.authenticated {
            policy = policy.authenticated(rule.build(Rule::default(), self.has_tiers));
        }
        if let Some(rule) = &self.anonymous {
            policy = policy.anonymous(rule.build(Rule::default(), self.has_tiers));
        }
        if let Some((rule, is_stacked)) = &self.category {
            let rule = rule.build(Rule::default(), self.has_tiers);
            policy = policy.category("red", if *is_stacked { rule.stack(true) } else { rule });
        }
        for (number, (route, endpoint)) in self.endpoints.iter().enumerate() {
            let mut rule = Rule::default();
            if endpoint.in_category && self.category.is_some() {
                rule = Rule::in_category("red");
            } else if endpoint.own.is_none() {
                continue;
            }
            if let Some(own) = &endpoint.own {
                rule = own
                    .build(rule, self.has_tiers)
                    .name(format!("own-{number}"));
            }
            if !endpoint.has_global {
                rule = rule.global(false);
            }
            policy = policy.endpoint(*route, rule);
        }
        if let Some(rule) = &self.always_on {
            policy = policy.rule("always", rule.build(Rule::default(), self.has_tiers));
        }
        match self.exempt {
            None => policy,
            Some(Exempt::Role) => policy.exempt_role("service"),
            Some(Exempt::Subject) => policy.exempt_subject("user", "bob"),
            Some(Exempt::Network) => policy.exempt_network("192.0.2.0/30"),
            Some(Exempt::Route) => policy.exempt_route("GET /open"),
            Some(Exempt::Predicate) => {
                policy.exempt_when(|head| head.header("x-cost") == Some("0"))
            }
        }
    }
}
