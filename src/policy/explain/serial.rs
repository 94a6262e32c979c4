//! JSON form of an explanation, for `tollgate explain --format json` and the admin API.

use serde::ser::{Serialize, Serializer};

use super::explanation::{AppliedRule, Explanation, Scaling, SkipReason, SkippedRule, TierSource};
use crate::clock::Timestamp;

/// The fields are serialized in this order.
#[derive(serde::Serialize)]
struct ExplanationDocument<'a> {
    request: &'a str,
    caller: &'a str,
    at: Option<Timestamp>,
    endpoint: Option<&'a str>,
    endpoints: &'a [String],
    tier: TierObject<'a>,
    exempt: Option<ExemptObject<'a>>,
    rejected: Option<RejectedObject>,
    counted_by: &'a [AppliedRule],
    not_counted_by: &'a [SkippedRule],
}

#[derive(serde::Serialize)]
struct TierObject<'a> {
    name: &'a str,
    multiplier: f64,
    from: &'static str,
}

#[derive(serde::Serialize)]
struct ExemptObject<'a> {
    by: &'static str,
    because: &'a str,
}

#[derive(serde::Serialize)]
struct RejectedObject {
    reason: &'static str,
    message: &'static str,
}

impl Serialize for Explanation {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let from = match &self.tier_source {
            TierSource::Table => "table",
            TierSource::Identity => "identity",
            TierSource::Unknown(_) => "unknown",
            TierSource::Default => "default",
        };
        let exempt = self.exemption.zip(self.exempt_because.as_deref());
        let document = ExplanationDocument {
            request: &self.request,
            caller: &self.caller,
            at: self.at,
            endpoint: self.endpoint(),
            endpoints: &self.endpoints,
            tier: TierObject {
                name: &self.tier,
                multiplier: self.multiplier,
                from,
            },
            exempt: exempt.map(|(by, because)| ExemptObject {
                by: by.name(),
                because,
            }),
            rejected: self.rejection.map(|rejection| RejectedObject {
                reason: rejection.reason(),
                message: rejection.message(),
            }),
            counted_by: &self.counted_by,
            not_counted_by: &self.not_counted_by,
        };
        document.serialize(to)
    }
}

#[derive(serde::Serialize)]
struct AppliedObject<'a> {
    kind: &'static str,
    rule: &'a str,
    policy: &'a str,
    counter: &'a str,
    limit: String,
    base: String,
    scaling: &'static str,
    times: Option<f64>,
    cost: u64,
    count: String,
    mode: &'static str,
    on_store_failure: &'static str,
    message: Option<&'a str>,
    suggestion: Option<&'a str>,
}

impl Serialize for AppliedRule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (scaling, times) = match self.scaling {
            Scaling::Times(times) => ("times", Some(times)),
            Scaling::Own => ("own", None),
            Scaling::Never => ("never", None),
        };
        let object = AppliedObject {
            kind: self.kind.name(),
            rule: &self.rule,
            policy: &self.policy,
            counter: &self.counter,
            limit: self.quota.to_string(),
            base: self.base.to_string(),
            scaling,
            times,
            cost: self.cost,
            count: self.count.to_string(),
            mode: if self.dry_run { "dry-run" } else { "enforce" },
            on_store_failure: self.on_store_failure.name(),
            message: self.message.as_deref(),
            suggestion: self.suggestion.as_deref(),
        };
        object.serialize(to)
    }
}

#[derive(serde::Serialize)]
struct SkippedObject<'a> {
    kind: &'static str,
    rule: &'a str,
    why: &'static str,
    because: String,
}

impl Serialize for SkippedRule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let object = SkippedObject {
            kind: self.kind.name(),
            rule: &self.rule,
            why: self.why.name(),
            because: self.why.to_string(),
        };
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
