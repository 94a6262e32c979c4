//! Generates a policy with rules of their own for the handlers of an application.

use tollgate::headers::HeaderSet;
use tollgate::policy::{Policy, PolicyBuilder, Rule};
use tollgate::{ManualClock, RateLimitLayer};

use super::pattern::shape;
use super::random::Random;
use super::tree::{Handler, Route, Target};

/// High enough that no request of a run is denied.
const LIMIT: &str = "1_000_000/hour";

pub(super) fn rules(random: &mut Random, handlers: &[Handler]) -> Vec<Route> {
    let mut rules = Vec::new();
    if random.chance(25) {
        let prefix = random.pick(&["/a", "/files", "/v1", "/a/b"]);
        let method = random.chance(50).then_some("GET");
        let pattern = format!("{prefix}/{{*open}}");
        add(&mut rules, method, &pattern, Target::Exempt);
    }
    for handler in handlers {
        // Parameters have other names than the router's.
        let pattern = handler.pattern.replace("{p", "{q").replace("{*p", "{*q");
        if random.chance(6) {
            continue;
        }
        if random.chance(10) {
            add(&mut rules, handler.method, &pattern, Target::Exempt);
            continue;
        }
        let has_global = !random.chance(10);
        let mut rule = |method| {
            let target = Target::Rule {
                name: format!("r{}", rules.len()),
                has_global,
            };
            add(&mut rules, method, &pattern, target);
        };
        match handler.method {
            Some(method) if random.chance(60) => rule(Some(method)),
            None if random.chance(20) => {
                rule(None);
                rule(Some("GET"));
            }
            _ => rule(None),
        }
    }
    rules
}

/// Adds a route, unless the policy is then refused: of two routes that conflict, as `/{a}` and
/// `/{*b}` do, the first stays, and the handler of the second has no rule.
fn add(rules: &mut Vec<Route>, method: Option<&'static str>, pattern: &str, target: Target) {
    let is_known = |rule: &Route| rule.method == method && shape(&rule.pattern) == shape(pattern);
    if rules.iter().any(is_known) {
        return;
    }
    rules.push(Route {
        method,
        pattern: pattern.to_owned(),
        target,
    });
    if policy(rules).build().is_err() {
        rules.pop();
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
                    rule.without_global()
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
