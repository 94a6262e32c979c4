//! JSON form of an overview, for `tollgate check --format json` and the admin API.

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use super::{EndpointView, Overview, RuleView, TierQuotas, TierView, Warning};
use crate::clock::Timestamp;
use crate::policy::RuleKind;

impl Serialize for Overview<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Overview", 6)?;
        fields.serialize_field("tiers", &self.tiers)?;
        fields.serialize_field("rules", &self.rules)?;
        fields.serialize_field("endpoints", &self.endpoints)?;
        let exempt = ExemptionsObject {
            roles: &self.exempt_roles,
            networks: &self.exempt_networks,
            routes: &self.exempt_routes,
            subjects: self.exempt_subjects.len(),
        };
        fields.serialize_field("exempt", &exempt)?;
        let maintenance = MaintenanceObject {
            disabled_until: self.maintenance_until,
        };
        fields.serialize_field("maintenance", &maintenance)?;
        fields.serialize_field("warnings", &self.warnings())?;
        fields.end()
    }
}

#[derive(serde::Serialize)]
struct ExemptionsObject<'a> {
    roles: &'a [&'a str],
    networks: &'a [String],
    routes: &'a [&'a str],
    /// Number of subjects. Readers of a policy may not be allowed to see the subjects.
    subjects: usize,
}

#[derive(serde::Serialize)]
struct MaintenanceObject {
    disabled_until: Option<Timestamp>,
}

impl Serialize for TierView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("TierView", 3)?;
        fields.serialize_field("name", self.name)?;
        fields.serialize_field("multiplier", &self.multiplier)?;
        fields.serialize_field("default", &self.default)?;
        fields.end()
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Warning", 2)?;
        fields.serialize_field("path", &self.path)?;
        fields.serialize_field("text", &self.text)?;
        fields.end()
    }
}

impl Serialize for RuleView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let callers = match self.kind {
            RuleKind::Global if self.for_anonymous => "anonymous",
            RuleKind::Global => "authenticated",
            _ => "all",
        };
        let mode = if self.dry_run { "dry-run" } else { "enforce" };
        let mut fields = serializer.serialize_struct("RuleView", 10)?;
        fields.serialize_field("kind", self.kind.name())?;
        fields.serialize_field("name", self.name)?;
        fields.serialize_field("path", self.path)?;
        fields.serialize_field("callers", callers)?;
        fields.serialize_field("per", self.counted_per)?;
        fields.serialize_field("limits", &TierLimits(&self.tiers))?;
        fields.serialize_field("cost", &self.cost)?;
        fields.serialize_field("count", &self.count.to_string())?;
        fields.serialize_field("mode", mode)?;
        fields.serialize_field("on_store_failure", self.on_store_failure.name())?;
        fields.end()
    }
}

/// Map from the name of a tier to its quotas.
struct TierLimits<'a>(&'a [TierQuotas<'a>]);

impl Serialize for TierLimits<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut limits = serializer.serialize_map(Some(self.0.len()))?;
        for tier in self.0 {
            let quotas = tier.quotas.iter().map(ToString::to_string);
            limits.serialize_entry(tier.tier, &quotas.collect::<Vec<_>>())?;
        }
        limits.end()
    }
}

impl Serialize for EndpointView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let category = self.category.as_ref().map(|category| category.name);
        let rules: Vec<&str> = self.rules.iter().map(|rule| rule.name).collect();
        let mut fields = serializer.serialize_struct("EndpointView", 4)?;
        fields.serialize_field("route", self.route)?;
        fields.serialize_field("category", &category)?;
        fields.serialize_field("rules", &rules)?;
        fields.serialize_field("global", &self.global)?;
        fields.end()
    }
}
