//! The whole file.

use std::path::PathBuf;

use super::defaults::DEFAULTS;
use super::exempt::EXEMPT;
use super::global::GLOBAL;
use super::identity::IDENTITY;
use super::maintenance::MAINTENANCE;
use super::rule::{CATEGORIES, ENDPOINT, RULES};
use super::tiers::TIERS;
use super::{KeySpec, PolicyReader, TableSpec, ValueKind};
use super::{defaults, exempt, jwt};
use crate::config::context::ReadContext;
use crate::config::problem::ProblemReport;
use crate::config::tree::Setting;
use crate::pipeline::LayerOverrides;
use crate::policy::{Policy, PolicyBuilder};

pub(in crate::config) static FILE: TableSpec = TableSpec::new(&[
    KeySpec::new(
        "$schema",
        ValueKind::Text("the address of a schema"),
        "Schema for editors. Has no effect.",
    ),
    KeySpec::new(
        "defaults",
        ValueKind::Table(&DEFAULTS),
        "Settings of rules and responses that are not set elsewhere.",
    )
    .aliases(&["default", "settings"]),
    KeySpec::new(
        "tiers",
        ValueKind::Table(&TIERS),
        "Subscription tiers and their multipliers.",
    )
    .aliases(&["tier", "plans"]),
    KeySpec::new(
        "global",
        ValueKind::Table(&GLOBAL),
        "Rules that count every request.",
    ),
    KeySpec::new(
        "categories",
        ValueKind::Table(&CATEGORIES),
        "Limits that several endpoints share, with one counter for all of them.",
    )
    .aliases(&["category"]),
    KeySpec::new(
        "endpoints",
        ValueKind::Tables(&ENDPOINT),
        "Rules for routes.",
    )
    .aliases(&["endpoint", "routes"]),
    KeySpec::new(
        "rules",
        ValueKind::Tables(&RULES),
        "More rules that count every request.",
    )
    .aliases(&["rule"]),
    KeySpec::new(
        "exempt",
        ValueKind::Table(&EXEMPT),
        "Callers and requests that are not counted.",
    )
    .aliases(&["exemptions", "allowlist", "whitelist", "bypass"]),
    KeySpec::new(
        "maintenance",
        ValueKind::Table(&MAINTENANCE),
        "A period without limits.",
    ),
    KeySpec::new(
        "identity",
        ValueKind::Table(&IDENTITY),
        "How callers are identified.",
    )
    .aliases(&["auth"]),
]);

/// Settings of a file, as builders take them.
pub(in crate::config) struct FileSettings {
    pub(in crate::config) policy: PolicyBuilder,
    /// Identity sources and headers.
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
    let mut reader = PolicyReader {
        report,
        context,
        algorithm: defaults::algorithm(root.get("defaults").as_ref()),
    };
    let mut policy = Policy::builder();
    let mut style = None;
    if let Some(table) = root.get("defaults") {
        policy = defaults::read(&table, policy);
        style = defaults::header_style(&table);
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
    let identity = root.get("identity");
    let overrides = identity.as_ref().map(|table| reader.identity(table));
    FileSettings {
        policy,
        overrides: LayerOverrides {
            style,
            ..overrides.unwrap_or_default()
        },
        key_files: jwt::key_files(identity.as_ref(), &context.base),
    }
}
