//! Generates a policy with rules of their own for the handlers of an application.

use std::collections::BTreeSet;

use matchit::Router as Matcher;
use tollgate::headers::HeaderSet;
use tollgate::policy::{Policy, PolicyBuilder, Rule};
use tollgate::{ManualClock, RateLimitLayer};

use super::generate::Generator;
use super::pattern::shape;
use super::random::Random;
use super::tree::{Handler, Route, Target};

/// High enough that no request of a run is denied.
const LIMIT: &str = "1_000_000/hour";

pub(super) fn rules(random: &mut Random, handlers: &[Handler]) -> Vec<Route> {
    let mut rules = Rules::default();
    if random.chance(25) {
        let prefix = random.pick(&["/a", "/files", "/v1", "/a/b"]);
        let method = random.chance(50).then_some("GET");
        rules.add(method, &format!("{prefix}/{{*open}}"), Target::Exempt);
        for route in &mut rules.routes {
            route.is_exempt_part = true;
        }
    }
    for handler in handlers {
        // Parameters have other names than the router's.
        let pattern = handler.pattern.replace("{p", "{q").replace("{*p", "{*q");
        if random.chance(6) {
            continue;
        }
        if random.chance(10) {
            rules.add(handler.method, &pattern, Target::Exempt);
            continue;
        }
        let has_global = !random.chance(10);
        let methods: &[_] = match handler.method {
            Some(method) if random.chance(60) => &[Some(method)],
            None if random.chance(20) => &[None, Some("GET")],
            _ => &[None],
        };
        for method in methods {
            let target = Target::Rule {
                name: format!("r{}", rules.routes.len()),
                has_global,
            };
            rules.add(*method, &pattern, target);
        }
    }
    rules.routes
}

/// The methods that rules name.
const METHODS: [Option<&str>; 3] = [None, Some("GET"), Some("POST")];

/// Routes that a policy accepts.
#[derive(Default)]
struct Rules {
    routes: Vec<Route>,
    /// The shapes of the routes for each of [`METHODS`], those for all methods included.
    by_method: [(BTreeSet<String>, Matcher<()>); METHODS.len()],
}

impl Rules {
    /// Adds a route, unless the policy would be refused: of two routes that conflict, as `/{a}`
    /// and `/{*b}` do, the first stays, and the handler of the second has no rule.
    fn add(&mut self, method: Option<&'static str>, pattern: &str, target: Target) {
        let shape = shape(pattern);
        let is_known = |route: &Route| route.method == method && route.shape() == shape;
        if self.routes.iter().any(is_known) {
            return;
        }
        let mut tables = self.by_method.clone();
        for (table, (shapes, matcher)) in METHODS.into_iter().zip(&mut tables) {
            let is_here = method.is_none() || method == table;
            if is_here && shapes.insert(shape.clone()) && !Generator::fits(matcher, pattern) {
                return;
            }
        }
        self.by_method = tables;
        self.routes.push(Route {
            method,
            pattern: pattern.to_owned(),
            target,
            is_exempt_part: false,
        });
    }
}

fn policy(rules: &[Route]) -> PolicyBuilder {
    let mut policy = Policy::builder().everyone(LIMIT);
    for route in rules {
        policy = match &route.target {
            Target::Exempt => policy.exempt_route(route.text()),
            Target::Rule { name, has_global } => {
                let rule = Rule::new(LIMIT).name(name.clone());
                let rule = if *has_global {
                    rule
                } else {
                    rule.global(false)
                };
                policy.endpoint(route.text(), rule)
            }
        };
    }
    policy
}

/// Returns a layer whose responses list every quota that was charged.
pub(super) fn layer(rules: &[Route]) -> RateLimitLayer {
    RateLimitLayer::builder(policy(rules))
        .headers(HeaderSet::Ietf)
        .clock(ManualClock::new())
        .build()
        .unwrap()
}
