//! `[tiers]`

use super::{PolicyReader, TableSpec, ValueKind, keys};
use crate::config::problem::ConfigProblem;
use crate::config::suggest::did_you_mean;
use crate::config::tree::Setting;
use crate::policy::Tiers;

const TIER_NAME: ValueKind = ValueKind::Text("the name of a tier");

pub(super) static TIERS: TableSpec = TableSpec::new(keys! {
    /// Tier of callers whose tier is not known.
    "default": TIER_NAME;
    /// Tiers of single callers. They win over the tier in the token.
    "assign": ValueKind::Table(&ASSIGN);
})
.require(&["default"])
.with_chosen(
    "tier",
    ValueKind::Number("a multiplier such as `5`"),
    "Multiplier of the tier.",
);

static ASSIGN: TableSpec = TableSpec::chosen(
    "dimension",
    ValueKind::Table(&ASSIGNED),
    "Tiers by a dimension of the identity: `user`, `tenant`, …",
);

static ASSIGNED: TableSpec = TableSpec::chosen("caller", TIER_NAME, "Tier of this caller.");

impl PolicyReader<'_> {
    pub(super) fn tiers(&mut self, table: &Setting<'_>) -> Tiers {
        let tiers: Vec<_> = table
            .entries()
            .filter(|(key, _)| TIERS.key(&key.name).is_none())
            .collect();
        let default = table.get("default");
        let name = default.as_ref().and_then(Setting::text);
        let mut read = Tiers::new(name.unwrap_or("default"));
        for (key, multiplier) in &tiers {
            // A multiplier of the wrong kind was reported, but the tier exists.
            read = read.tier(&key.name, multiplier.number().unwrap_or(1.0));
        }
        if let (Some(default), Some(name)) = (default, name) {
            let names: Vec<&str> = tiers.iter().map(|(key, _)| key.name.as_str()).collect();
            self.check_default(&default, name, &names);
        }
        let assign = table.get("assign");
        for (dimension, callers) in assign.iter().flat_map(Setting::entries) {
            for (caller, tier) in callers.entries() {
                if let Some(tier) = tier.text() {
                    read = read.assign(&dimension.name, &caller.name, tier);
                }
            }
        }
        read
    }

    /// Reports a default tier that the table does not list. The name `default` cannot be listed.
    fn check_default(&mut self, default: &Setting<'_>, name: &str, names: &[&str]) {
        if name == "default" || names.contains(&name) {
            return;
        }
        let help = did_you_mean(name, names.iter().copied());
        let problem = ConfigProblem::at(default, format!("unknown tier `{name}`"))
            .with_found(name)
            .with_expected("one of the tiers of this table")
            .with_help(help.or_else(|| Some(format!("add it: {name} = 1"))));
        self.report.push(problem);
    }
}
