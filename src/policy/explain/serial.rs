//! JSON form of an explanation, for `tollgate explain --format json` and the admin API.

use serde::ser::{Serialize, Serializer};
use serde_json::json;

use super::explanation::{AppliedRule, Explanation, Scaling, SkipReason, SkippedRule, TierSource};

impl Serialize for Explanation {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let from = match &self.tier_source {
            TierSource::Table => "table",
            TierSource::Identity => "identity",
            TierSource::Unknown(_) => "unknown",
            TierSource::Default => "default",
        };
        let exempt = self.exemption.zip(self.exempt_because.as_deref());
        let document = json!({
            "request": self.request,
            "caller": self.caller,
            "at": self.at,
            "endpoint": self.endpoint(),
            "endpoints": self.endpoints,
            "tier": { "name": self.tier, "multiplier": self.multiplier, "from": from },
            "exempt": exempt.map(|(by, because)| json!({ "by": by.name(), "because": because })),
            "rejected": self.rejection.map(|rejection| {
                json!({ "reason": rejection.reason(), "message": rejection.message() })
            }),
            "counted_by": self.counted_by,
            "not_counted_by": self.not_counted_by,
        });
        document.serialize(to)
    }
}

impl Serialize for AppliedRule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (scaling, times) = match self.scaling {
            Scaling::Times(times) => ("times", Some(times)),
            Scaling::Own => ("own", None),
            Scaling::Never => ("never", None),
        };
        let object = json!({
            "kind": self.kind.name(),
            "rule": self.rule,
            "policy": self.policy,
            "counter": self.counter,
            "limit": self.quota.to_string(),
            "base": self.base.to_string(),
            "scaling": scaling,
            "times": times,
            "cost": self.cost,
            "count": self.count.to_string(),
            "mode": if self.dry_run { "dry-run" } else { "enforce" },
            "quiet": self.quiet,
            "on_store_failure": self.on_store_failure.name(),
            "message": self.message,
            "suggestion": self.suggestion,
        });
        object.serialize(to)
    }
}

impl Serialize for SkippedRule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let object = json!({
            "kind": self.kind.name(),
            "rule": self.rule,
            "why": self.why.name(),
            "because": self.why.to_string(),
        });
        object.serialize(to)
    }
}

impl SkipReason {
    /// Returns the name in JSON.
    const fn name(&self) -> &'static str {
        match self {
            Self::Exempt => "exempt",
            Self::Rejected => "rejected",
            Self::Replaced => "replaced",
            Self::WithoutGlobal => "without-global",
            Self::OnlyAnonymous => "only-anonymous",
            Self::OnlyAuthenticated => "only-authenticated",
            Self::Preflight => "preflight",
            Self::Lacks(_) => "lacks",
        }
    }
}
