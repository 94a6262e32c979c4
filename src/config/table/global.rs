//! `[global]`

use super::{KeySpec, PolicyReader, TableSpec, ValueKind, set_if};
use crate::config::tree::Setting;
use crate::policy::{PolicyBuilder, Preflight};

pub(super) static GLOBAL: TableSpec = TableSpec::new(&[
    KeySpec::new(
        "authenticated",
        ValueKind::RuleOrQuotas,
        "Rule for callers with a verified identity, per caller.",
    )
    .aliases(&["users", "user"]),
    KeySpec::new(
        "anonymous",
        ValueKind::RuleOrQuotas,
        "Rule for unauthenticated callers, per client IP. Never scaled. Default: as `authenticated`.",
    )
    .aliases(&["unauthenticated", "ip"]),
    KeySpec::new(
        "preflight",
        ValueKind::Choice(&["refund", "count"]),
        "Whether CORS preflights are refunded if the response has CORS headers, or counted like other \
         requests.",
    )
    .aliases(&["preflights", "cors"])
    .default("\"refund\""),
    KeySpec::new(
        "preflight_quota",
        ValueKind::Quota,
        "CORS preflights that one client IP may send, in place of `anonymous`.",
    )
    .aliases(&["preflight_limit"])
    .default("\"600/minute\""),
]);

impl PolicyReader<'_> {
    pub(super) fn global(&mut self, table: &Setting<'_>, policy: PolicyBuilder) -> PolicyBuilder {
        let mut rule = |key| table.get(key).map(|value| self.rule_or_quotas(&value));
        let (authenticated, anonymous) = (rule("authenticated"), rule("anonymous"));
        let quota = table.get("preflight_quota");
        let quota = quota.and_then(|quota| self.quota(&quota, self.algorithm));
        let preflight = (table.text_of("preflight") == Some("count")).then_some(Preflight::Count);
        let policy = set_if(policy, authenticated, PolicyBuilder::authenticated);
        let policy = set_if(policy, anonymous, PolicyBuilder::anonymous);
        let policy = set_if(policy, preflight, PolicyBuilder::preflight);
        set_if(policy, quota, PolicyBuilder::preflight_quota)
    }
}
