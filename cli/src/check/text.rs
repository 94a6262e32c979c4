//! Summary of a policy as text.

use std::fmt::Write;

use tollgate::policy::{EndpointView, Overview, RuleKind, RuleView};

use super::table::Table;

/// Returns the limits of each tier, grouped by category.
pub(super) fn summary(name: &str, overview: &Overview<'_>, has_colors: bool) -> String {
    let bold = |text: &str| paint("1", text, has_colors);
    let rules = overview.rules.len();
    let endpoints = overview.endpoints.len();
    let mut text = format!(
        "{} is fine: {} for {}\n",
        bold(name),
        plural(rules, "rule"),
        plural(endpoints, "endpoint"),
    );
    let mut table = Table::default();
    add_tier_rows(overview, &mut table);
    add_kind_rows(
        overview,
        RuleKind::Global,
        "All requests of a caller",
        &mut table,
    );
    add_preflight_row(overview, &mut table);
    let categories = overview.rules.iter();
    for category in categories.filter(is_of_kind(RuleKind::Category)) {
        table.add_heading(format!("Category {}", category.name));
        table.add_row(rule_cells(category, "counted together:"));
        let is_member = |endpoint: &&EndpointView<'_>| endpoint.rules.contains(category);
        for endpoint in overview.endpoints.iter().filter(is_member) {
            table.add_row(vec![format!("  {}", route_label(endpoint))]);
        }
        let mut members = overview.endpoints.iter();
        let is_replaced = |endpoint: &EndpointView<'_>| {
            endpoint.category.as_ref() == Some(category) && !endpoint.rules.contains(category)
        };
        let has_own = |endpoint: &EndpointView<'_>| {
            let mut rules = endpoint.rules.iter();
            endpoint.category.as_ref() == Some(category) && rules.any(|rule| rule != category)
        };
        if members.clone().any(is_replaced) {
            table.add_row(vec!["counted separately:".to_owned()]);
        } else if members.any(has_own) {
            table.add_row(vec!["counted separately as well:".to_owned()]);
        }
        add_endpoint_rows(overview, Some(category), &mut table);
    }
    let mut endpoints = overview.endpoints.iter();
    if endpoints.any(|endpoint| endpoint.category.is_none()) {
        table.add_heading("Endpoints");
        add_endpoint_rows(overview, None, &mut table);
    }
    add_kind_rows(overview, RuleKind::AlwaysOn, "Always", &mut table);
    text += &table.render(bold);
    write_exemptions(overview, &mut text, bold);
    text
}

/// Returns one line per warning.
pub(super) fn warnings(overview: &Overview<'_>, has_colors: bool) -> String {
    let mut text = String::new();
    for warning in overview.warnings() {
        let word = paint("1;33", "warning", has_colors);
        let _ = writeln!(text, "{word}: {warning}");
    }
    text
}

fn paint(code: &str, text: &str, has_colors: bool) -> String {
    if has_colors {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

fn plural(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

fn is_of_kind(kind: RuleKind) -> impl Fn(&&RuleView<'_>) -> bool {
    move |rule| rule.kind == kind
}

/// Adds the column headings: each tier with its multiplier.
fn add_tier_rows(overview: &Overview<'_>, table: &mut Table) {
    table.add_heading("Tiers");
    let mut head = vec![String::new(), "rule".to_owned(), "per".to_owned()];
    let times = |multiplier: f64| format!("times {multiplier}");
    head.extend(overview.tiers.iter().map(|tier| {
        let default = if tier.default { " (default)" } else { "" };
        format!("{}{default}", tier.name)
    }));
    table.add_row(head);
    let mut multipliers = vec![String::new(); 3];
    multipliers.extend(overview.tiers.iter().map(|tier| times(tier.multiplier)));
    table.add_row(multipliers);
}

fn add_kind_rows(overview: &Overview<'_>, kind: RuleKind, heading: &str, table: &mut Table) {
    let mut rules = overview.rules.iter().filter(is_of_kind(kind)).peekable();
    if rules.peek().is_some() {
        table.add_heading(heading);
    }
    for rule in rules {
        let what = match kind {
            RuleKind::Global if rule.for_anonymous => "anonymous",
            RuleKind::Global => "authenticated",
            _ => "everything",
        };
        table.add_row(rule_cells(rule, what));
    }
}

/// Adds the quota of CORS preflights, unless it is the default.
fn add_preflight_row(overview: &Overview<'_>, table: &mut Table) {
    let Some(rule) = &overview.preflight else {
        table.add_row(vec!["preflights (like other requests)".to_owned()]);
        return;
    };
    let mut quotas = rule.quotas("").iter();
    if quotas.any(|quota| quota.to_string() != "600/1m") {
        table.add_row(rule_cells(rule, "preflights"));
    }
}

/// Adds the endpoints of a category, or of no category, that have a rule of their own.
fn add_endpoint_rows(overview: &Overview<'_>, category: Option<&RuleView<'_>>, table: &mut Table) {
    for endpoint in &overview.endpoints {
        if endpoint.category.as_ref() == category {
            let indent = if category.is_some() { "  " } else { "" };
            let label = format!("{indent}{}", route_label(endpoint));
            for rule in endpoint.rules.iter().filter(is_of_kind(RuleKind::Endpoint)) {
                table.add_row(rule_cells(rule, &label));
            }
        }
    }
}

/// Returns the route, with a note if the global rules do not count it.
fn route_label(endpoint: &EndpointView<'_>) -> String {
    let route = endpoint.route;
    if endpoint.global {
        route.to_owned()
    } else {
        format!("{route} (not counted globally)")
    }
}

/// Returns one row: what is counted, rule, key, quotas per tier, and settings that are not defaults.
fn rule_cells(rule: &RuleView<'_>, what: &str) -> Vec<String> {
    let mut cells: Vec<String> = [what, rule.name, rule.counted_per]
        .map(str::to_owned)
        .into();
    cells.extend(rule.tiers.iter().map(|tier| {
        let quotas: Vec<String> = tier.quotas.iter().map(ToString::to_string).collect();
        quotas.join(" and ")
    }));
    let mut notes = Vec::new();
    match rule.cost {
        Some(1) => {}
        Some(cost) => notes.push(format!("costs {cost}")),
        None => notes.push("cost from a closure".to_owned()),
    }
    match rule.count.to_string().as_str() {
        "all" => {}
        some => notes.push(format!("counts {some}")),
    }
    if rule.dry_run {
        notes.push("dry-run".to_owned());
    }
    if rule.quiet {
        notes.push("quiet".to_owned());
    }
    if !notes.is_empty() {
        cells.push(notes.join(", "));
    }
    cells
}

fn write_exemptions(overview: &Overview<'_>, text: &mut String, bold: impl Fn(&str) -> String) {
    let subjects = overview
        .exempt_subjects
        .iter()
        .map(|(dimension, value)| format!("{dimension}={value}"));
    let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    let exempt: [(&str, Vec<String>); 4] = [
        ("roles", owned(&overview.exempt_roles)),
        ("callers", subjects.collect()),
        ("networks", overview.exempt_networks.clone()),
        ("routes", owned(&overview.exempt_routes)),
    ];
    if exempt.iter().any(|(_, list)| !list.is_empty()) {
        let _ = writeln!(text, "\n{}", bold("Exempt"));
    }
    for (what, list) in exempt.iter().filter(|(_, list)| !list.is_empty()) {
        let _ = writeln!(text, "  {what:<8}  {}", list.join(", "));
    }
    if let Some(until) = overview.maintenance_until {
        let _ = writeln!(text, "\n{}", bold("Maintenance"));
        let _ = writeln!(text, "  no request is counted before {until}");
    }
}
