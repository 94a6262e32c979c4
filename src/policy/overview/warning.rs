//! Warnings about valid settings that are probably mistakes.

use std::fmt;

use super::{EndpointView, Overview, RuleView};
use crate::identity_types::Identity;
use crate::network;
use crate::policy::{KeyBy, RuleKind};
use crate::quota::{Algorithm, Quota};

/// Valid setting of a policy that is probably a mistake.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Warning {
    /// Path in a policy file: `categories.secrets`.
    pub path: String,
    /// Problem, and a way to solve it.
    pub text: String,
}

impl Warning {
    fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.text)
    }
}

/// Returns all warnings about a policy.
pub(super) fn all(overview: &Overview<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(uncounted(overview));
    warnings.extend(endpoints_without_limit(overview));
    warnings.extend(exemptions_of_everything(overview));
    let endpoints = overview.endpoints.iter().map(|endpoint| endpoint.route);
    let endpoints = endpoints.enumerate();
    let endpoints = endpoints.map(|(index, route)| (format!("endpoints[{index}].route"), route));
    let exempt = overview.exempt_routes.iter().copied().enumerate();
    let exempt = exempt.map(|(index, route)| (format!("exempt.routes[{index}]"), route));
    warnings.extend(endpoints.chain(exempt).filter_map(not_ascii));
    for rule in &overview.rules {
        let found = match rule.kind {
            RuleKind::Category => {
                unused_category(overview, rule).or_else(|| unreachable_quota(overview, rule))
            }
            RuleKind::Endpoint => unreachable_quota(overview, rule),
            RuleKind::AlwaysOn | RuleKind::Global | RuleKind::Preflight => None,
        };
        let found = found.or_else(|| shared_counter_with_tiers(rule));
        let texts = found.into_iter().chain(small_sliding_window(rule));
        warnings.extend(texts.map(|text| Warning::new(rule.path, text)));
    }
    warnings
}

/// Returns a warning for a route with a letter outside ASCII, which may be a look-alike.
fn not_ascii((path, route): (String, &str)) -> Option<Warning> {
    let letter = route.chars().find(|c| !c.is_ascii())?;
    let code = u32::from(letter);
    let text = format!(
        "the route has the letter `{letter}` (U+{code:04X}), which is not ASCII: make sure that it \
         is not a look-alike of another one"
    );
    Some(Warning::new(path, text))
}

/// Returns whether an always-on rule limits unauthenticated callers. They have a client IP and no other
/// dimension.
fn limits_everyone(overview: &Overview<'_>, is_limit: impl Fn(&RuleView<'_>) -> bool) -> bool {
    let counts_unauthenticated = |rule: &RuleView<'_>| match rule.key_by {
        KeyBy::Caller => true,
        KeyBy::Dimensions { label, .. } => matches!(&**label, "all" | "ip" | "user"),
    };
    overview.rules.iter().any(|rule| {
        rule.kind == RuleKind::AlwaysOn && counts_unauthenticated(rule) && is_limit(rule)
    })
}

/// Returns a warning if no rule counts the requests that match no endpoint.
fn uncounted(overview: &Overview<'_>) -> Option<Warning> {
    let counted = overview.global(false).is_some() || limits_everyone(overview, |_| true);
    let text = "there is no global rule, so requests that match no endpoint are not counted";
    (!counted).then(|| Warning::new("global", text))
}

/// Returns whether a rule can deny requests.
fn can_deny(rule: &RuleView<'_>) -> bool {
    let mut quotas = rule.tiers.iter().flat_map(|tier| &tier.quotas);
    !rule.dry_run && quotas.any(|quota| !quota.is_unlimited())
}

/// Returns a warning for each endpoint that no limit applies to, for some callers.
fn endpoints_without_limit(overview: &Overview<'_>) -> Vec<Warning> {
    let is_limited_globally = [true, false]
        .into_iter()
        .all(|authenticated| overview.global(authenticated).is_some_and(can_deny));
    if limits_everyone(overview, can_deny) {
        return Vec::new();
    }
    let endpoints = overview.endpoints.iter().enumerate();
    let unlimited = endpoints.filter(|(_, endpoint)| {
        let by_global = endpoint.global && is_limited_globally;
        let is_limited = by_global || endpoint.rules.iter().any(can_deny);
        !is_limited
    });
    let warn = |(index, endpoint): (usize, &EndpointView<'_>)| {
        let text = format!(
            "no limit applies to `{}` for some callers; set a limit, or move it to `exempt.routes`",
            endpoint.route
        );
        Warning::new(format!("endpoints[{index}]"), text)
    };
    unlimited.map(warn).collect()
}

/// Returns a warning for each exemption that covers all clients or all routes.
fn exemptions_of_everything(overview: &Overview<'_>) -> Vec<Warning> {
    // A policy with a prefix of 0 bits is invalid. Two networks with 1 bit cover all addresses.
    let covers_internet = |text: &str| {
        text.parse()
            .is_ok_and(|parsed| network::is_half_of_internet(&parsed))
    };
    let covers_routes = |route: &str| {
        let path = route.rsplit(' ').next().unwrap_or_default();
        path.starts_with("/{*")
    };
    let networks = overview.exempt_networks.iter().enumerate();
    let networks = networks.filter(|(_, network)| covers_internet(network));
    let networks = networks.map(|(index, network)| {
        let text = format!("`{network}` exempts half of the internet or more");
        Warning::new(format!("exempt.networks[{index}]"), text)
    });
    let routes = overview.exempt_routes.iter().enumerate();
    let routes = routes.filter(|(_, route)| covers_routes(route));
    let routes = routes.map(|(index, route)| {
        let text = format!("`{route}` exempts every path");
        Warning::new(format!("exempt.routes[{index}]"), text)
    });
    networks.chain(routes).collect()
}

/// Returns a warning for a category that counts no request, or a minority of its endpoints.
fn unused_category(overview: &Overview<'_>, category: &RuleView<'_>) -> Option<String> {
    let members = overview
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.category.as_ref() == Some(category));
    let (counted, others): (Vec<_>, Vec<_>) =
        members.partition(|endpoint| endpoint.rules.contains(category));
    match (counted.len(), others.len()) {
        (0, 0) => Some("no endpoint is in this category".to_owned()),
        (0, _) => Some(
            "every endpoint of this category has a quota of its own, so its limit counts nothing \
             (`stack = true` counts both)"
                .to_owned(),
        ),
        (counted, others) if others > counted && category.stack.is_none() && can_deny(category) => {
            Some(format!(
                "{others} of its {} endpoints have a quota of their own and do not count on this category \
             (`stack = true` counts both, `stack = false` confirms this)",
                counted + others
            ))
        }
        _ => None,
    }
}

/// Returns a warning for a counter that several callers share, with a limit that depends on the tier
/// of the caller.
fn shared_counter_with_tiers(rule: &RuleView<'_>) -> Option<String> {
    let KeyBy::Dimensions { names, .. } = rule.key_by else {
        return None;
    };
    let is_of_one_caller =
        |name: &str| [Identity::USER, Identity::IP, Identity::API_KEY].contains(&name);
    let (first, others) = rule.tiers.split_first()?;
    let differ = others.iter().any(|other| other.quotas != first.quotas);
    if !differ || rule.scale.is_some() || names.iter().any(|name| is_of_one_caller(name)) {
        return None;
    }
    let (sharing, confirm) = if names.is_empty() {
        ("all callers share its counter".to_owned(), "")
    } else {
        let sharing = format!("callers of one {} share its counter", names.join(" and "));
        (
            sharing,
            "; `scale = false` gives all tiers one limit, `scale = true` confirms this",
        )
    };
    Some(format!(
        "{sharing}, but its limit differs between tiers: the limit that applies depends on the tier of \
         the caller{confirm}"
    ))
}

/// Limits below this admit a burst at the end of a sliding window that is large compared with them.
const SMALL_LIMIT: u64 = 5;

/// Returns a warning for a sliding window with a small limit.
fn small_sliding_window(rule: &RuleView<'_>) -> Option<String> {
    let is_small = |quota: &&Quota| {
        quota.algorithm() == Algorithm::SlidingWindow
            && !quota.counts_nothing()
            && quota.amount() < SMALL_LIMIT
    };
    let mut quotas = rule.tiers.iter().flat_map(|tier| &tier.quotas);
    let quota = quotas.find(is_small)?;
    Some(format!(
        "`{quota}` counts in a sliding window, which admits up to {} requests around the end of a \
         window; `{}/{}, sliding-log` is exact",
        2 * quota.amount(),
        quota.amount(),
        quota.window(),
    ))
}

/// Returns a warning for a quota that is never used up, because the global rule allows less.
fn unreachable_quota(overview: &Overview<'_>, rule: &RuleView<'_>) -> Option<String> {
    let global = overview.global(true)?;
    let is_comparable = rule.key_by == global.key_by
        && rule.count == global.count
        && rule.cost.is_some()
        && rule.cost == global.cost;
    if !is_comparable || rule.dry_run || global.dry_run || !is_counted_globally(overview, rule) {
        return None;
    }
    rule.tiers.iter().find_map(|tier| {
        let is_above_global = |quota: &&Quota| {
            let same_window = |other: &&Quota| other.window() == quota.window();
            let mut others = global.quotas(tier.tier).iter().filter(same_window);
            !quota.is_unlimited() && others.any(|other| other.amount() < quota.amount())
        };
        let quota = tier.quotas.iter().find(is_above_global)?;
        Some(format!(
            "`{quota}` for tier `{}` is out of reach, because the global rule allows less",
            tier.tier
        ))
    })
}

/// Returns whether the global rule counts every endpoint that this rule counts.
fn is_counted_globally(overview: &Overview<'_>, rule: &RuleView<'_>) -> bool {
    let mut endpoints = overview.endpoints.iter();
    endpoints.all(|endpoint| endpoint.global || !endpoint.rules.contains(rule))
}
