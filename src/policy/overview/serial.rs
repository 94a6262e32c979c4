//! JSON form of an overview, for `tollgate check --format json` and the admin API.

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use super::{EndpointView, Overview, RuleView, TierView, Warning};
use crate::clock::Timestamp;
use crate::policy::RuleKind;

impl Serialize for Overview<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Overview", 6)?;
        fields.serialize_field("tiers", &self.tiers().collect::<Vec<_>>())?;
        fields.serialize_field("rules", &self.rules().collect::<Vec<_>>())?;
        fields.serialize_field("endpoints", &self.endpoints().collect::<Vec<_>>())?;
        let exempt = ExemptionsObject {
            roles: self.exempt_roles().collect(),
            networks: self.exempt_networks().collect(),
            routes: self.exempt_routes().collect(),
            subjects: self.exempt_subjects().len(),
        };
        fields.serialize_field("exempt", &exempt)?;
        let maintenance = MaintenanceObject {
            disabled_until: self.maintenance_until(),
        };
        fields.serialize_field("maintenance", &maintenance)?;
        fields.serialize_field("warnings", &self.warnings())?;
        fields.end()
    }
}

#[derive(serde::Serialize)]
struct ExemptionsObject<'p> {
    roles: Vec<&'p str>,
    networks: Vec<String>,
    routes: Vec<&'p str>,
    /// The number of subjects. Their names are not for everyone who may read a policy.
    subjects: usize,
}

#[derive(serde::Serialize)]
struct MaintenanceObject {
    disabled_until: Option<Timestamp>,
}

impl Serialize for TierView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("TierView", 3)?;
        fields.serialize_field("name", self.name())?;
        fields.serialize_field("multiplier", &self.multiplier())?;
        fields.serialize_field("default", &self.is_default())?;
        fields.end()
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Warning", 2)?;
        fields.serialize_field("path", self.path())?;
        fields.serialize_field("text", self.text())?;
        fields.end()
    }
}

impl Serialize for RuleView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let callers = match self.kind() {
            RuleKind::Global if self.is_for_anonymous() => "anonymous",
            RuleKind::Global => "authenticated",
            _ => "all",
        };
        let mode = if self.is_dry_run() {
            "dry-run"
        } else {
            "enforce"
        };
        let mut fields = serializer.serialize_struct("RuleView", 10)?;
        fields.serialize_field("kind", self.kind().name())?;
        fields.serialize_field("name", self.name())?;
        fields.serialize_field("path", self.path())?;
        fields.serialize_field("callers", callers)?;
        fields.serialize_field("per", self.counted_per())?;
        fields.serialize_field("limits", &Limits(*self))?;
        fields.serialize_field("cost", &self.cost())?;
        fields.serialize_field("count", &self.count().to_string())?;
        fields.serialize_field("mode", mode)?;
        fields.serialize_field("on_store_failure", self.on_store_failure().name())?;
        fields.end()
    }
}

/// The quotas of a rule, tier by tier.
struct Limits<'p>(RuleView<'p>);

impl Serialize for Limits<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tiers = self.0.policy().overview().tiers();
        let mut limits = serializer.serialize_map(Some(tiers.len()))?;
        for tier in tiers {
            let quotas = self.0.quotas(tier.name()).map(ToString::to_string);
            limits.serialize_entry(tier.name(), &quotas.collect::<Vec<_>>())?;
        }
        limits.end()
    }
}

impl Serialize for EndpointView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let category = self.category().map(|category| category.name());
        let rules: Vec<&str> = self.rules().map(|rule| rule.name()).collect();
        let mut fields = serializer.serialize_struct("EndpointView", 4)?;
        fields.serialize_field("route", self.route())?;
        fields.serialize_field("category", &category)?;
        fields.serialize_field("rules", &rules)?;
        fields.serialize_field("global", &self.is_counted_globally())?;
        fields.end()
    }
}
