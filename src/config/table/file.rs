//! The whole file.

use std::path::PathBuf;

use super::alerts::ALERTS;
use super::defaults::DEFAULTS;
use super::exempt::EXEMPT;
use super::global::GLOBAL;
use super::identity::IDENTITY;
use super::maintenance::MAINTENANCE;
use super::rule::{CATEGORIES, ENDPOINT, RULES};
use super::tiers::TIERS;
use super::{PolicyReader, TableSpec, ValueKind, keys};
use super::{defaults, exempt, jwt};
use crate::config::context::ReadContext;
use crate::config::report::ProblemReport;
use crate::config::tree::Setting;
use crate::pipeline::LayerOverrides;
use crate::policy::{Policy, PolicyBuilder};

pub(in crate::config) static FILE: TableSpec = TableSpec::new(keys! {
    /// Schema for editors. Has no effect.
    "$schema": ValueKind::Text("the address of a schema");
    /// Settings of rules and responses that are not set elsewhere.
    "defaults": ValueKind::Table(&DEFAULTS), aliases ["default", "settings"];
    /// Subscription tiers and their multipliers.
    "tiers": ValueKind::Table(&TIERS), aliases ["tier", "plans"];
    /// Rules that count every request.
    "global": ValueKind::Table(&GLOBAL);
    /// Limits that several endpoints share, with one counter for all of them.
    "categories": ValueKind::Table(&CATEGORIES), aliases ["category"];
    /// Rules for routes.
    "endpoints": ValueKind::Tables(&ENDPOINT), aliases ["endpoint", "routes"];
    /// More rules that count every request.
    "rules": ValueKind::Tables(&RULES), aliases ["rule"];
    /// Callers and requests that are not counted.
    "exempt": ValueKind::Table(&EXEMPT), aliases ["exemptions", "allowlist", "whitelist", "bypass"];
    /// A period without limits.
    "maintenance": ValueKind::Table(&MAINTENANCE);
    /// Thresholds of alerts. Those that are set in code win.
    "alerts": ValueKind::Table(&ALERTS), aliases ["alert", "alerting"];
    /// How callers are identified.
    "identity": ValueKind::Table(&IDENTITY), aliases ["auth"];
});

/// Settings of a file, as builders take them.
pub(in crate::config) struct FileSettings {
    pub(in crate::config) policy: PolicyBuilder,
    /// Identity sources, headers, renderer and alerts.
    pub(in crate::config) overrides: LayerOverrides,
    /// Files with keys that the file names.
    pub(in crate::config) key_files: Vec<PathBuf>,
}

/// Reads the settings of a file. Lists are passed on whole, with wrong items in them, because the
/// builder reports problems by index. What was reported once is not reported again.
pub(in crate::config) fn read(
    root: &Setting<'_>,
    context: &ReadContext,
    report: &mut ProblemReport,
) -> FileSettings {
    let defaults = root.get("defaults");
    let algorithm = defaults.as_ref().and_then(|table| table.parse("algorithm"));
    let mut reader = PolicyReader {
        report,
        context,
        algorithm: algorithm.unwrap_or_default(),
    };
    let mut policy = Policy::builder();
    let mut responses = LayerOverrides::default();
    if let Some(table) = defaults {
        policy = defaults::read(&table, policy);
        responses = reader.responses(&table);
    }
    if let Some(table) = root.get("tiers") {
        policy = policy.tiers(reader.tiers(&table));
    }
    if let Some(table) = root.get("global") {
        policy = reader.global(&table, policy);
    }
    policy = reader.categories(root.get("categories").as_ref(), policy);
    policy = reader.endpoints(root.get("endpoints").as_ref(), policy);
    policy = reader.always_on_rules(root.get("rules").as_ref(), policy);
    if let Some(table) = root.get("exempt") {
        policy = exempt::read(&table, policy);
    }
    if let Some(table) = root.get("maintenance") {
        policy = reader.maintenance(&table, policy);
    }
    let alerts = root.get("alerts").map(|table| reader.alerts(&table));
    let identity = root.get("identity");
    let overrides = identity.as_ref().map(|table| reader.identity(table));
    FileSettings {
        policy,
        overrides: LayerOverrides {
            style: responses.style,
            renderer: responses.renderer,
            retry_after_jitter: responses.retry_after_jitter,
            alerts,
            ..overrides.unwrap_or_default()
        },
        key_files: jwt::key_files(identity.as_ref(), &context.base),
    }
}
