//! Summary of a policy as JSON.

use std::path::Path;

use serde_json::{Value, json};
use tollgate::policy::Overview;

pub(super) fn summary(file: &Path, overview: Overview<'_>) -> Value {
    let subjects = overview
        .exempt_subjects()
        .map(|(dimension, value)| json!({ "dimension": dimension, "value": value }));
    let until = overview.maintenance_until().map(|until| until.to_string());
    json!({
        "file": file.display().to_string(),
        "ok": true,
        "problems": [],
        "more": 0,
        "warnings": overview.warnings(),
        "tiers": overview.tiers().collect::<Vec<_>>(),
        "rules": overview.rules().collect::<Vec<_>>(),
        "endpoints": overview.endpoints().collect::<Vec<_>>(),
        "exempt": {
            "roles": overview.exempt_roles().collect::<Vec<_>>(),
            "networks": overview.exempt_networks().collect::<Vec<_>>(),
            "routes": overview.exempt_routes().collect::<Vec<_>>(),
            "subjects": subjects.collect::<Vec<_>>(),
        },
        "maintenance": { "disabled_until": until },
    })
}
