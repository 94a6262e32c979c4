//! `[global]`

use super::{PolicyReader, TableSpec, ValueKind, keys, set_if};
use crate::config::tree::Setting;
use crate::policy::{PolicyBuilder, Preflight};

pub(super) static GLOBAL: TableSpec = TableSpec::new(keys! {
    /// Rule for callers with a verified identity, per caller.
    "authenticated": ValueKind::RuleOrQuotas, aliases ["users", "user"];
    /// Rule for unauthenticated callers, per client IP. Never scaled. Default: as `authenticated`.
    "anonymous": ValueKind::RuleOrQuotas, aliases ["unauthenticated", "ip"];
    /// Rule for all callers: short for `authenticated` and `anonymous` with the same rule, which
    /// take precedence over it.
    "everyone": ValueKind::RuleOrQuotas, aliases ["all", "default"];
    /// Whether CORS preflights are refunded if the response has CORS headers, or counted like other
    /// requests.
    "preflight": ValueKind::Choice(Preflight::NAMES),
        default "\"refund\"", aliases ["preflights", "cors"];
    /// CORS preflights that one client IP may send, in place of `anonymous`.
    "preflight_quota": ValueKind::Quota, default "\"600/minute\"", aliases ["preflight_limit"];
});

impl PolicyReader<'_> {
    pub(super) fn global(&mut self, table: &Setting<'_>, policy: PolicyBuilder) -> PolicyBuilder {
        let mut rule = |key| table.get(key).map(|value| self.rule_or_quotas(&value));
        let (everyone, authenticated) = (rule("everyone"), rule("authenticated"));
        let anonymous = rule("anonymous");
        let quota = table.get("preflight_quota");
        let quota = quota.and_then(|quota| self.quota(&quota, self.algorithm));
        let policy = set_if(policy, everyone, PolicyBuilder::everyone);
        let policy = set_if(policy, authenticated, PolicyBuilder::authenticated);
        let policy = set_if(policy, anonymous, PolicyBuilder::anonymous);
        let policy = set_if(policy, table.parse("preflight"), PolicyBuilder::preflight);
        set_if(policy, quota, PolicyBuilder::preflight_quota)
    }
}
