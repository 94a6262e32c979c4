//! JSON form of an overview, for `tollgate check --format json` and the admin API.

use std::collections::BTreeMap;

use serde::ser::{Serialize, Serializer};
use serde_json::json;

use super::{EndpointView, Overview, RuleView};
use crate::policy::RuleKind;

impl Serialize for Overview<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let document = json!({
            "tiers": self.tiers,
            "rules": self.rules,
            "endpoints": self.endpoints,
            "exempt": {
                "roles": self.exempt_roles,
                "networks": self.exempt_networks,
                "routes": self.exempt_routes,
                // Readers of a policy may not be allowed to see the subjects.
                "subjects": self.exempt_subjects.len(),
            },
            "maintenance": { "disabled_until": self.maintenance_until },
            "warnings": self.warnings(),
        });
        document.serialize(to)
    }
}

impl Serialize for RuleView<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let callers = match self.kind {
            RuleKind::Global if self.for_anonymous => "anonymous",
            RuleKind::Global => "authenticated",
            _ => "all",
        };
        let limits = self.tiers.iter().map(|tier| {
            let quotas = tier.quotas.iter().map(ToString::to_string);
            (tier.tier, quotas.collect::<Vec<_>>())
        });
        let object = json!({
            "kind": self.kind.name(),
            "name": self.name,
            "path": self.path,
            "callers": callers,
            "per": self.counted_per,
            "limits": limits.collect::<BTreeMap<_, _>>(),
            "cost": self.cost,
            "count": self.count.to_string(),
            "mode": if self.dry_run { "dry-run" } else { "enforce" },
            "quiet": self.quiet,
            "on_store_failure": self.on_store_failure.name(),
        });
        object.serialize(to)
    }
}

impl Serialize for EndpointView<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let object = json!({
            "route": self.route,
            "category": self.category.as_ref().map(|category| category.name),
            "rules": self.rules.iter().map(|rule| rule.name).collect::<Vec<_>>(),
            "global": self.global,
        });
        object.serialize(to)
    }
}
