//! Rules: `[categories.NAME]`, `[[endpoints]]`, `[[rules]]`, and the tables of `[global]`.

use super::quota::{ALGORITHMS, is_quota_table};
use super::{KeySpec, PolicyReader, TableSpec, ValueKind, set_if};
use crate::config::suggest::did_you_mean;
use crate::config::tree::{ConfigValue, Setting};
use crate::policy::{Count, OnStoreFailure, PolicyBuilder, Rule};
use crate::response::Template;

pub(super) const ON_STORE_FAILURE: &[&str] = &["local", "allow", "deny"];
const COUNTS: [&str; 3] = ["all", "success", "failure"];

/// Keys of every rule.
static RULE_KEYS: [KeySpec; 11] = [
    KeySpec::new(
        "limit",
        ValueKind::Quotas,
        "One quota or several. All of them must admit the request.",
    )
    .aliases(&["limits", "quota", "quotas", "rate"]),
    KeySpec::new(
        "algorithm",
        ValueKind::Choice(ALGORITHMS),
        "Algorithm of quotas that name none. Default: as in `defaults`.",
    ),
    KeySpec::new(
        "per",
        ValueKind::Texts("the name of a dimension such as `ip`, `user` or `tenant`"),
        "Dimensions that identify a counter. An empty list is the whole instance. Default: the caller.",
    )
    .aliases(&["by", "key", "keys", "scope"]),
    KeySpec::new(
        "scale",
        ValueKind::Flag,
        "Whether tiers multiply the limit.",
    )
    .default("true"),
    KeySpec::new(
        "tiers",
        ValueKind::Table(&TIER_LIMITS),
        "Limits of single tiers, instead of the multiplier.",
    )
    .aliases(&["tier"]),
    KeySpec::new("count", ValueKind::Outcomes, "Responses that count.").default("\"all\""),
    KeySpec::new(
        "cost",
        ValueKind::Whole("a whole number such as `1`"),
        "Cost of a request.",
    )
    .default("1"),
    KeySpec::new(
        "message",
        ValueKind::Text("a text"),
        "Message of a denial. Placeholders: `{limit} {used} {window} {retry_after} {retry_in} {policy} {tier}`.",
    ),
    KeySpec::new(
        "suggestion",
        ValueKind::Text("a text"),
        "Advice to denied callers, beside the message.",
    )
    .aliases(&["hint"]),
    KeySpec::new(
        "on_store_failure",
        ValueKind::Choice(ON_STORE_FAILURE),
        "What happens to requests while the store is unavailable. Default: as in `defaults`.",
    ),
    KeySpec::new(
        "mode",
        ValueKind::Choice(&["enforce", "dry-run"]),
        "Whether the rule is enforced, or counts and logs without denying.",
    )
    .default("\"enforce\""),
];

static TIER_LIMITS: TableSpec = TableSpec::chosen(
    "tier",
    ValueKind::Quotas,
    "As many quotas as the rule has, with the same windows.",
);

/// A rule of `[global]`.
pub(in crate::config) static RULE: TableSpec = TableSpec::new(&[]).with_shared(&RULE_KEYS);

pub(super) static CATEGORIES: TableSpec =
    TableSpec::chosen("category", ValueKind::Table(&CATEGORY), "A category.");

static CATEGORY: TableSpec = TableSpec::new(&[KeySpec::new(
    "stack",
    ValueKind::Flag,
    "Whether the category also counts endpoints with limits of their own.",
)
.default("false")])
.with_shared(&RULE_KEYS)
.require(&["limit"]);

pub(super) static ENDPOINT: TableSpec = TableSpec::new(&[
    KeySpec::new(
        "route",
        ValueKind::Text("a route such as `\"GET /v1/items/{id}\"`"),
        "Method and path. Without a method, the rule is for all of them.",
    )
    .aliases(&["path", "url", "uri", "endpoint", "match"]),
    KeySpec::new(
        "name",
        ValueKind::Text("a name such as `login`"),
        "Name of the rule in policy strings. Default: the route.",
    ),
    KeySpec::new(
        "category",
        ValueKind::Text("the name of a category"),
        "Category whose limits and counters the endpoint shares.",
    )
    .aliases(&["group", "class"]),
    KeySpec::new(
        "global",
        ValueKind::Flag,
        "Whether the global rule counts the endpoint as well.",
    )
    .default("true"),
])
.with_shared(&RULE_KEYS)
.require(&["route"]);

pub(super) static RULES: TableSpec = TableSpec::new(&[KeySpec::new(
    "name",
    ValueKind::Text("a name such as `outbound`"),
    "Name of the rule in policy strings, and part of its counters' keys.",
)])
.with_shared(&RULE_KEYS)
.require(&["name", "limit"]);

impl PolicyReader<'_> {
    pub(super) fn categories(
        &mut self,
        table: Option<&Setting<'_>>,
        mut policy: PolicyBuilder,
    ) -> PolicyBuilder {
        for (name, category) in table.into_iter().flat_map(Setting::entries) {
            let rule = set_if(self.rule(&category), category.flag_of("stack"), Rule::stack);
            policy = policy.category(&name.name, rule);
        }
        policy
    }

    pub(super) fn endpoints(
        &mut self,
        list: Option<&Setting<'_>>,
        mut policy: PolicyBuilder,
    ) -> PolicyBuilder {
        for endpoint in list.into_iter().flat_map(Setting::items) {
            let rule = self.rule(&endpoint);
            let rule = set_if(rule, endpoint.text_of("category"), Rule::category);
            let rule = set_if(rule, endpoint.text_of("name"), Rule::name);
            let rule = set_if(rule, endpoint.flag_of("global"), Rule::global);
            policy = policy.endpoint(endpoint.text_of("route").unwrap_or_default(), rule);
        }
        policy
    }

    pub(super) fn always_on_rules(
        &mut self,
        list: Option<&Setting<'_>>,
        mut policy: PolicyBuilder,
    ) -> PolicyBuilder {
        for table in list.into_iter().flat_map(Setting::items) {
            let rule = self.rule(&table);
            policy = policy.rule(table.text_of("name").unwrap_or_default(), rule);
        }
        policy
    }

    /// Reads a rule of `[global]`, which may be its quotas alone.
    pub(super) fn rule_or_quotas(&mut self, value: &Setting<'_>) -> Rule {
        if value.table().is_some() && !is_quota_table(value) {
            return self.rule(value);
        }
        let quotas = self.quotas(value, self.algorithm).unwrap_or_default();
        quotas.into_iter().fold(Rule::default(), Rule::quota)
    }

    /// Reads the keys that all rules have.
    fn rule(&mut self, table: &Setting<'_>) -> Rule {
        let mut rule = self.limits(table);
        let per = table.get("per").filter(Setting::is_list);
        if let Some(per) = per {
            rule = rule.per(per.items().filter_map(|name| name.text()));
        }
        let count = table.get("count").and_then(|count| self.count(&count));
        let message = table.get("message").and_then(|value| {
            let text = value.text()?;
            self.report.check(&value, Template::parse(text))?;
            Some(text)
        });
        let cost = table.get("cost").and_then(|cost| cost.whole());
        let rule = set_if(rule, table.flag_of("scale"), Rule::scale);
        let rule = set_if(rule, count, Rule::count);
        let rule = set_if(rule, cost, Rule::cost);
        let rule = set_if(rule, message, Rule::message);
        let rule = set_if(rule, table.text_of("suggestion"), Rule::suggestion);
        let rule = set_if(rule, on_store_failure(table), Rule::on_store_failure);
        match table.text_of("mode") {
            Some("dry-run") => rule.dry_run(),
            _ => rule,
        }
    }

    /// Reads `limit` and `tiers`. Limits of tiers are left out if the limit itself is wrong,
    /// because their windows are compared with it.
    fn limits(&mut self, table: &Setting<'_>) -> Rule {
        let algorithm = table.parse("algorithm").unwrap_or(self.algorithm);
        let limit = table.get("limit");
        let quotas = limit.map_or(Some(Vec::new()), |limit| self.quotas(&limit, algorithm));
        let is_valid = quotas.is_some();
        let quotas = quotas.unwrap_or_default().into_iter();
        let mut rule = quotas.fold(Rule::default(), Rule::quota);
        let tiers = table.get("tiers");
        for (tier, limits) in tiers.iter().flat_map(Setting::entries) {
            if let Some(quotas) = self.quotas(&limits, algorithm).filter(|_| is_valid) {
                rule = rule.tier(&tier.name, quotas);
            }
        }
        rule
    }

    fn count(&mut self, value: &Setting<'_>) -> Option<Count> {
        match value.text() {
            Some("all") => return Some(Count::all()),
            Some("success") => return Some(Count::success()),
            Some("failure") => return Some(Count::failure()),
            _ => {}
        }
        let statuses: Vec<String> = value
            .one_or_more()
            .iter()
            .map(|item| match &item.node.value {
                ConfigValue::Text(text) => text.clone(),
                ConfigValue::Whole(code) => code.to_string(),
                // Reported by the check.
                _ => String::new(),
            })
            .collect();
        let count = Count::statuses(statuses.iter().map(String::as_str));
        self.report
            .check_all_with(value, count, |error, _| did_you_mean(error.value(), COUNTS))
    }
}

pub(super) fn on_store_failure(table: &Setting<'_>) -> Option<OnStoreFailure> {
    match table.text_of("on_store_failure")? {
        "local" => Some(OnStoreFailure::Local),
        "allow" => Some(OnStoreFailure::Allow),
        "deny" => Some(OnStoreFailure::Deny),
        _ => None,
    }
}
