//! What a file means, for programs.

use std::path::Path;

use serde_json::{Map, Value, json};
use tollgate::policy::{EndpointView, Overview, RuleKind, RuleView};

use crate::explain::mode;

pub(super) fn overview(file: &Path, overview: Overview<'_>) -> Value {
    let tiers = overview.tiers().map(|tier| {
        json!({
            "name": tier.name(),
            "multiplier": tier.multiplier(),
            "default": tier.is_default(),
        })
    });
    let warnings = overview.warnings();
    let warnings = warnings
        .iter()
        .map(|warning| json!({ "path": warning.path(), "text": warning.text() }));
    let subjects = overview
        .exempt_subjects()
        .map(|(dimension, value)| json!({ "dimension": dimension, "value": value }));
    let until = overview.maintenance_until().map(|until| until.to_string());
    json!({
        "file": file.display().to_string(),
        "ok": true,
        "problems": [],
        "more": 0,
        "warnings": warnings.collect::<Vec<_>>(),
        "tiers": tiers.collect::<Vec<_>>(),
        "rules": overview.rules().map(|of| rule(overview, of)).collect::<Vec<_>>(),
        "endpoints": overview.endpoints().map(endpoint).collect::<Vec<_>>(),
        "exempt": {
            "roles": overview.exempt_roles().collect::<Vec<_>>(),
            "networks": overview.exempt_networks().collect::<Vec<_>>(),
            "routes": overview.exempt_routes().collect::<Vec<_>>(),
            "subjects": subjects.collect::<Vec<_>>(),
        },
        "maintenance": { "disabled_until": until },
    })
}

fn rule(overview: Overview<'_>, rule: RuleView<'_>) -> Value {
    let limits: Map<String, Value> = overview
        .tiers()
        .map(|tier| {
            let quotas: Vec<String> = rule.quotas(tier.name()).map(ToString::to_string).collect();
            (tier.name().to_owned(), quotas.into())
        })
        .collect();
    let callers = match rule.kind() {
        RuleKind::Global if rule.is_for_anonymous() => "anonymous",
        RuleKind::Global => "authenticated",
        _ => "all",
    };
    json!({
        "kind": rule.kind().name(),
        "name": rule.name(),
        "path": rule.path(),
        "callers": callers,
        "per": rule.counted_per(),
        "limits": limits,
        "cost": rule.cost(),
        "count": rule.count().to_string(),
        "mode": mode(rule.is_dry_run()),
        "on_store_failure": rule.on_store_failure().name(),
    })
}

fn endpoint(endpoint: EndpointView<'_>) -> Value {
    json!({
        "route": endpoint.route(),
        "category": endpoint.category().map(|category| category.name()),
        "rules": endpoint.rules().map(|rule| rule.name()).collect::<Vec<_>>(),
        "global": endpoint.is_counted_globally(),
    })
}
