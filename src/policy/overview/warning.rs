//! Warnings about valid settings that are probably mistakes.

use std::fmt;

use super::{EndpointView, Overview, RuleView};
use crate::policy::{KeyBy, RuleKind};
use crate::quota::{Algorithm, Quota};

/// Valid setting of a policy that is probably a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// Path in a policy file: `categories.secrets`.
    pub path: String,
    /// Problem, and a way to solve it.
    pub text: String,
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
            RuleKind::AlwaysOn => shared_counter_with_tiers(rule),
            RuleKind::Global | RuleKind::Preflight => None,
        };
        warnings.extend(found.map(|text| Warning {
            path: rule.path.to_owned(),
            text,
        }));
        warnings.extend(small_sliding_window(rule).map(|text| Warning {
            path: rule.path.to_owned(),
            text,
        }));
    }
    warnings
}

/// Returns a warning for a route with a letter outside ASCII, which may be a look-alike.
fn not_ascii((path, route): (String, &str)) -> Option<Warning> {
    let letter = route.chars().find(|c| !c.is_ascii())?;
    let code = u32::from(letter);
    Some(Warning {
        path,
        text: format!(
            "the route has the letter `{letter}` (U+{code:04X}), which is not ASCII: make sure that it \
             is not a look-alike of another one"
        ),
    })
}

/// Returns a warning if no rule counts the requests that match no endpoint.
fn uncounted(overview: &Overview<'_>) -> Option<Warning> {
    // Unauthenticated callers have a client IP and no other dimension.
    let counts_unauthenticated = |rule: &RuleView<'_>| match rule.key_by {
        KeyBy::Caller => true,
        KeyBy::Dimensions { who, .. } => matches!(&**who, "all" | "ip" | "user"),
    };
    let mut rules = overview.rules.iter();
    let counted = overview.global(false).is_some()
        || rules.any(|rule| rule.kind == RuleKind::AlwaysOn && counts_unauthenticated(rule));
    (!counted).then(|| Warning {
        path: "global".to_owned(),
        text: "there is no global rule, so requests that match no endpoint are not counted"
            .to_owned(),
    })
}

/// Returns a warning for a category that counts no request.
fn unused_category(overview: &Overview<'_>, category: &RuleView<'_>) -> Option<String> {
    let mut members = overview
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.category.as_ref() == Some(category))
        .peekable();
    if members.peek().is_none() {
        return Some("no endpoint is in this category".to_owned());
    }
    let is_unused = !members.any(EndpointView::is_counted_by_category);
    is_unused.then(|| {
        "every endpoint of this category has a quota of its own, so its limit counts nothing \
         (`stack = true` counts both)"
            .to_owned()
    })
}

/// Returns a warning for a shared counter with a limit that depends on the tier of the caller.
fn shared_counter_with_tiers(rule: &RuleView<'_>) -> Option<String> {
    let (first, others) = rule.tiers.split_first()?;
    let mut others = others.iter();
    let differ = rule.counted_per == "all" && others.any(|other| other.quotas != first.quotas);
    differ.then(|| {
        "all callers share its counter, but its limit differs between tiers: the limit that applies \
         depends on the caller"
            .to_owned()
    })
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
