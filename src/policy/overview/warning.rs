//! What is allowed, but is hardly what anybody wanted.

use std::fmt;

use super::{Overview, RuleView, TierView};
use crate::policy::{KeyBy, RuleKind};
use crate::quota::{Algorithm, Quota};

/// Something in a policy that works, and is hardly what its author wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    path: String,
    text: String,
}

impl Warning {
    /// Where a policy file has it: `categories.secrets`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What it is, and what to do about it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.text)
    }
}

pub(super) fn all(overview: Overview<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(uncounted(overview));
    let endpoints = overview.endpoints().map(|endpoint| endpoint.route());
    let endpoints = endpoints.enumerate();
    let endpoints = endpoints.map(|(index, route)| (format!("endpoints[{index}].route"), route));
    let exempt = overview.exempt_routes().enumerate();
    let exempt = exempt.map(|(index, route)| (format!("exempt.routes[{index}]"), route));
    warnings.extend(endpoints.chain(exempt).filter_map(not_ascii));
    for rule in overview.rules() {
        let found = match rule.kind() {
            RuleKind::Category => idle(overview, rule).or_else(|| out_of_reach(overview, rule)),
            RuleKind::Endpoint => out_of_reach(overview, rule),
            RuleKind::AlwaysOn => unsteady(overview, rule),
            RuleKind::Global | RuleKind::Preflight => None,
        };
        warnings.extend(found.map(|text| Warning {
            path: rule.path().to_owned(),
            text,
        }));
        warnings.extend(small_sliding_window(overview, rule).map(|text| Warning {
            path: rule.path().to_owned(),
            text,
        }));
    }
    warnings
}

/// A route with a letter outside ASCII, which may only look like the one that is meant.
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

/// Requests that nothing counts.
fn uncounted(overview: Overview<'_>) -> Option<Warning> {
    // Who is anonymous has an address, and nothing else that rules could count.
    let counts_anybody = |rule: RuleView<'_>| match &rule.about().key_by {
        KeyBy::Caller => true,
        KeyBy::Dimensions { who, .. } => matches!(&**who, "all" | "ip" | "user"),
    };
    let mut always_on = overview.rules();
    let counted = overview.global(false).is_some()
        || always_on.any(|rule| rule.kind() == RuleKind::AlwaysOn && counts_anybody(rule));
    (!counted).then(|| Warning {
        path: "global".to_owned(),
        text: "there is no global rule, so requests that match no endpoint are not counted"
            .to_owned(),
    })
}

/// A category that counts nothing.
fn idle(overview: Overview<'_>, category: RuleView<'_>) -> Option<String> {
    let mut inside = overview
        .endpoints()
        .filter(|endpoint| endpoint.category() == Some(category))
        .peekable();
    if inside.peek().is_none() {
        return Some("no endpoint is in this category".to_owned());
    }
    let idle = !inside.any(|endpoint| endpoint.counts_on_category());
    idle.then(|| {
        "every endpoint of this category has a quota of its own, so its limit counts nothing \
         (`stack = true` counts both)"
            .to_owned()
    })
}

/// A counter that all share, with a limit that depends on who happens to ask.
fn unsteady(overview: Overview<'_>, rule: RuleView<'_>) -> Option<String> {
    let quotas = |tier: TierView<'_>| rule.quotas(tier.name()).collect::<Vec<_>>();
    let mut tiers = overview.tiers().map(quotas);
    let first = tiers.next()?;
    let differ = rule.counted_per() == "all" && tiers.any(|other| other != first);
    differ.then(|| {
        "all callers share its counter, but its limit differs between tiers: the limit that applies \
         depends on the caller"
            .to_owned()
    })
}

/// Limits below this admit a burst at the end of a sliding window that is large compared with them.
const SMALL_LIMIT: u64 = 5;

/// Returns a warning for a sliding window with a small limit.
fn small_sliding_window(overview: Overview<'_>, rule: RuleView<'_>) -> Option<String> {
    let is_small = |quota: &&Quota| {
        quota.algorithm() == Algorithm::SlidingWindow
            && !quota.counts_nothing()
            && quota.amount() < SMALL_LIMIT
    };
    let quota = overview
        .tiers()
        .find_map(|tier| rule.quotas(tier.name()).find(is_small))?;
    Some(format!(
        "`{quota}` counts in a sliding window, which admits up to {} requests around the end of a \
         window; `{}/{}, sliding-log` is exact",
        2 * quota.amount(),
        quota.amount(),
        quota.window(),
    ))
}

/// A quota that the global one never leaves any use of.
fn out_of_reach(overview: Overview<'_>, rule: RuleView<'_>) -> Option<String> {
    let global = overview.global(true)?;
    let alike = rule.about().key_by == global.about().key_by
        && rule.count() == global.count()
        && rule.cost().is_some()
        && rule.cost() == global.cost();
    if !alike || rule.is_dry_run() || global.is_dry_run() || !is_counted_globally(overview, rule) {
        return None;
    }
    overview.tiers().find_map(|tier| {
        let beyond = |quota: &&Quota| {
            let same_window = |other: &&Quota| other.window() == quota.window();
            let mut others = global.quotas(tier.name()).filter(same_window);
            !quota.is_unlimited() && others.any(|other| other.amount() < quota.amount())
        };
        let quota = rule.quotas(tier.name()).find(beyond)?;
        Some(format!(
            "`{quota}` for tier `{}` is out of reach, because the global rule allows less",
            tier.name()
        ))
    })
}

/// Whether the global rule counts every endpoint that this rule counts.
fn is_counted_globally(overview: Overview<'_>, rule: RuleView<'_>) -> bool {
    let mut endpoints = overview.endpoints();
    endpoints.all(|endpoint| {
        endpoint.is_counted_globally() || endpoint.rules().all(|other| other != rule)
    })
}
