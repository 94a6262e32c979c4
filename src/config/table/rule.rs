//! Rules: `[categories.NAME]`, `[[endpoints]]`, `[[rules]]`, and the tables of `[global]`.

use super::quota::is_quota_table;
use super::{KeySpec, PolicyReader, TableSpec, ValueKind, keys, set_if};
use crate::config::suggest::did_you_mean;
use crate::config::tree::{ConfigValue, Setting};
use crate::policy::{Count, OnStoreFailure, PolicyBuilder, Rule, RuleMode};
use crate::quota::Algorithm;
use crate::response::Template;

const COUNTS: [&str; 3] = ["all", "success", "failure"];

/// Keys of every rule.
const RULE_KEYS: &[KeySpec] = keys! {
    /// One quota or several. All of them must admit the request.
    "limit": ValueKind::Quotas, aliases ["limits", "quota", "quotas", "rate"];
    /// Algorithm of quotas that name none. Default: as in `defaults`.
    "algorithm": ValueKind::Choice(Algorithm::NAMES);
    /// Dimensions that identify a counter. `"instance"` or an empty list: all callers share the
    /// counter. `"caller"`, the default: the user, or the client IP of an unauthenticated caller.
    "per":
        ValueKind::ChoiceOrTexts(&["caller", "instance"], "the name of a dimension such as `ip`, `user` or `tenant`"),
        aliases ["by", "key", "keys", "scope"];
    /// Whether tiers multiply the limit.
    "scale": ValueKind::Flag, default "true";
    /// Limits of single tiers, instead of the multiplier.
    "tiers": ValueKind::Table(&TIER_LIMITS), aliases ["tier"];
    /// Responses that count.
    "count": ValueKind::Outcomes, default "\"all\"";
    /// Cost of a request.
    "cost": ValueKind::Whole("a whole number such as `1`"), default "1";
    /// Message of a denial. Placeholders: `{limit} {used} {window} {retry_after} {retry_in}
    /// {policy} {tier}`.
    "message": ValueKind::Text("a text");
    /// Advice to denied callers, beside the message.
    "suggestion": ValueKind::Text("a text"), aliases ["hint"];
    /// What happens to requests while the store is unavailable. Default: as in `defaults`.
    "on_store_failure": ValueKind::Choice(OnStoreFailure::NAMES);
    /// Whether the rule is enforced, or counts and logs without denying.
    "mode": ValueKind::Choice(RuleMode::NAMES), default "\"enforce\"";
    /// Whether responses report the rule only when it denies. For a burst beside a window.
    /// `RateLimit-Policy` lists it in any case. If all rules are quiet, the tightest is reported.
    "quiet": ValueKind::Flag, default "false";
};

static TIER_LIMITS: TableSpec = TableSpec::chosen(
    "tier",
    ValueKind::Quotas,
    "As many quotas as the rule has, with the same windows.",
);

/// A rule of `[global]`.
pub(in crate::config) static RULE: TableSpec = TableSpec::new(&[]).with_shared(RULE_KEYS);

pub(super) static CATEGORIES: TableSpec =
    TableSpec::chosen("category", ValueKind::Table(&CATEGORY), "A category.");

static CATEGORY: TableSpec = TableSpec::new(keys! {
    /// Whether the category also counts endpoints with limits of their own.
    "stack": ValueKind::Flag, default "false";
})
.with_shared(RULE_KEYS)
.require(&["limit"]);

pub(super) static ENDPOINT: TableSpec = TableSpec::new(keys! {
    /// Method and path. Without a method, the rule is for all of them.
    "route": ValueKind::Text("a route such as `\"GET /v1/items/{id}\"`"),
        aliases ["path", "url", "uri", "endpoint", "match"];
    /// Name of the rule in policy strings. Default: the route.
    "name": ValueKind::Text("a name such as `login`");
    /// Category whose limits and counters the endpoint shares.
    "category": ValueKind::Text("the name of a category"), aliases ["group", "class"];
    /// Whether the global rule counts the endpoint as well.
    "global": ValueKind::Flag, default "true";
})
.with_shared(RULE_KEYS)
.require(&["route"]);

pub(super) static RULES: TableSpec = TableSpec::new(keys! {
    /// Name of the rule in policy strings, and part of its counters' keys.
    "name": ValueKind::Text("a name such as `outbound`");
})
.with_shared(RULE_KEYS)
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
        quotas.into_iter().fold(Rule::default(), Rule::limit)
    }

    /// Reads the keys that all rules have.
    fn rule(&mut self, table: &Setting<'_>) -> Rule {
        let mut rule = self.limits(table);
        if let Some(per) = table.get("per") {
            let items = per.one_or_more();
            rule = rule.per(items.iter().filter_map(Setting::text));
        }
        let count = table.get("count").and_then(|count| self.count(&count));
        let message = table.get("message").and_then(|value| {
            let text = value.text()?;
            self.report.check(&value, Template::parse(text))?;
            Some(text)
        });
        let cost = table.get("cost").and_then(|cost| cost.whole());
        let rule = set_if(rule, table.flag_of("scale"), Rule::scale);
        let rule = set_if(rule, table.flag_of("quiet"), Rule::quiet);
        let rule = set_if(rule, count, Rule::count);
        let rule = set_if(rule, cost, Rule::cost);
        let rule = set_if(rule, message, Rule::message);
        let rule = set_if(rule, table.text_of("suggestion"), Rule::suggestion);
        let rule = set_if(rule, table.parse("mode"), Rule::mode);
        set_if(
            rule,
            table.parse("on_store_failure"),
            Rule::on_store_failure,
        )
    }

    /// Reads `limit` and `tiers`. Limits of tiers are left out if the limit itself is wrong,
    /// because their windows are compared with it.
    fn limits(&mut self, table: &Setting<'_>) -> Rule {
        let algorithm = table.parse("algorithm").unwrap_or(self.algorithm);
        let limit = table.get("limit");
        let quotas = limit.map_or(Some(Vec::new()), |limit| self.quotas(&limit, algorithm));
        let is_valid = quotas.is_some();
        let quotas = quotas.unwrap_or_default().into_iter();
        let mut rule = quotas.fold(Rule::default(), Rule::limit);
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
