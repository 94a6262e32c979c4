//! What a file means, for people.

use std::fmt::Write;

use tollgate::policy::{EndpointView, Overview, RuleKind, RuleView};

use super::table::Table;

/// The whole of it: numbers for each tier, by category.
pub(super) fn overview(name: &str, overview: Overview<'_>, colors: bool) -> String {
    let bold = |text: &str| painted("1", text, colors);
    let rules = overview.rules().count();
    let endpoints = overview.endpoints().len();
    let mut text = format!(
        "{} is fine: {} for {}\n",
        bold(name),
        amount(rules, "rule"),
        amount(endpoints, "endpoint"),
    );
    let mut table = Table::default();
    tiers(overview, &mut table);
    of_kind(
        overview,
        RuleKind::Global,
        "All requests of a caller",
        &mut table,
    );
    for category in overview.rules().filter(is(RuleKind::Category)) {
        table.heading(format!("Category {}", category.name()));
        table.row(cells(overview, category, "together"));
        let shares = |endpoint: &EndpointView<'_>| endpoint.rules().any(|rule| rule == category);
        for endpoint in overview.endpoints().filter(shares) {
            table.row(vec![format!("  {}", noted(endpoint))]);
        }
        own_rows(overview, Some(category), &mut table);
    }
    if overview
        .endpoints()
        .any(|endpoint| endpoint.category().is_none())
    {
        table.heading("Endpoints");
        own_rows(overview, None, &mut table);
    }
    of_kind(overview, RuleKind::AlwaysOn, "Always", &mut table);
    text += &table.render(bold);
    exempt(overview, &mut text, bold);
    text
}

pub(super) fn warnings(overview: Overview<'_>, colors: bool) -> String {
    let mut text = String::new();
    for warning in overview.warnings() {
        let word = painted("1;33", "warning", colors);
        let _ = writeln!(text, "{word}: {warning}");
    }
    text
}

fn painted(code: &str, text: &str, colors: bool) -> String {
    if colors {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

fn amount(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn is(kind: RuleKind) -> impl Fn(&RuleView<'_>) -> bool {
    move |rule| rule.kind() == kind
}

/// The heads of the columns: each tier, and what it multiplies by.
fn tiers(overview: Overview<'_>, table: &mut Table) {
    table.heading("Tiers");
    let mut head = vec![String::new(), "rule".to_owned(), "per".to_owned()];
    let times = |multiplier: f64| format!("times {multiplier}");
    head.extend(overview.tiers().map(|tier| {
        let default = if tier.is_default() { " (default)" } else { "" };
        format!("{}{default}", tier.name())
    }));
    table.row(head);
    let mut multipliers = vec![String::new(); 3];
    multipliers.extend(overview.tiers().map(|tier| times(tier.multiplier())));
    table.row(multipliers);
}

fn of_kind(overview: Overview<'_>, kind: RuleKind, heading: &str, table: &mut Table) {
    let mut rules = overview.rules().filter(is(kind)).peekable();
    if rules.peek().is_some() {
        table.heading(heading);
    }
    for rule in rules {
        let what = match kind {
            RuleKind::Global if rule.is_for_anonymous() => "anonymous",
            RuleKind::Global => "authenticated",
            _ => "everything",
        };
        table.row(cells(overview, rule, what));
    }
}

/// The endpoints of a category, or of none, that have numbers of their own.
fn own_rows(overview: Overview<'_>, category: Option<RuleView<'_>>, table: &mut Table) {
    for endpoint in overview.endpoints() {
        if endpoint.category() == category {
            for rule in endpoint.rules().filter(is(RuleKind::Endpoint)) {
                table.row(cells(overview, rule, &noted(endpoint)));
            }
        }
    }
}

/// The route, and whether the global rules leave it out.
fn noted(endpoint: EndpointView<'_>) -> String {
    let route = endpoint.route();
    if endpoint.is_counted_globally() {
        route.to_owned()
    } else {
        format!("{route} (not counted globally)")
    }
}

/// What is counted, by which rule, per what, the numbers for each tier, and what else is to be known.
fn cells(overview: Overview<'_>, rule: RuleView<'_>, what: &str) -> Vec<String> {
    let mut cells: Vec<String> = [what, rule.name(), rule.counted_per()]
        .map(str::to_owned)
        .into();
    cells.extend(overview.tiers().map(|tier| {
        let quotas: Vec<String> = rule.quotas(tier.name()).map(ToString::to_string).collect();
        quotas.join(" and ")
    }));
    let mut more = Vec::new();
    match rule.cost() {
        Some(1) => {}
        Some(cost) => more.push(format!("costs {cost}")),
        None => more.push("costs what a closure says".to_owned()),
    }
    match rule.count().to_string().as_str() {
        "all" => {}
        some => more.push(format!("counts {some}")),
    }
    if rule.is_dry_run() {
        more.push("dry-run".to_owned());
    }
    if !more.is_empty() {
        cells.push(more.join(", "));
    }
    cells
}

fn exempt(overview: Overview<'_>, text: &mut String, bold: impl Fn(&str) -> String) {
    let subjects = overview
        .exempt_subjects()
        .map(|(dimension, value)| format!("{dimension}={value}"));
    let owned = str::to_owned;
    let exempt: [(&str, Vec<String>); 4] = [
        ("roles", overview.exempt_roles().map(owned).collect()),
        ("callers", subjects.collect()),
        ("networks", overview.exempt_networks().collect()),
        ("routes", overview.exempt_routes().map(owned).collect()),
    ];
    if exempt.iter().any(|(_, list)| !list.is_empty()) {
        let _ = writeln!(text, "\n{}", bold("Exempt"));
    }
    for (what, list) in exempt.iter().filter(|(_, list)| !list.is_empty()) {
        let _ = writeln!(text, "  {what:<8}  {}", list.join(", "));
    }
    if let Some(until) = overview.maintenance_until() {
        let _ = writeln!(text, "\n{}", bold("Maintenance"));
        let _ = writeln!(text, "  nobody is counted before {until}");
    }
}
