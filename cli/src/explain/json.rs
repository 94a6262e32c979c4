//! Explanation of a request as JSON.

use std::path::Path;

use serde_json::{Value, json};
use tollgate::policy::{AppliedRule, Explanation, Scaling, SkipReason, SkippedRule, TierSource};

pub(super) fn explanation(file: &Path, explanation: &Explanation) -> Value {
    let exempt = explanation.exemption().map(|exemption| {
        let because = explanation.exempt_because();
        json!({ "by": exemption.name(), "because": because })
    });
    let rejected = explanation
        .rejection()
        .map(|rejection| json!({ "reason": rejection.reason(), "message": rejection.message() }));
    let endpoints: Vec<&str> = explanation.endpoints().collect();
    let counted: Vec<Value> = explanation.counted_by().map(counted_by).collect();
    let skipped: Vec<Value> = explanation.not_counted_by().map(not_counted_by).collect();
    json!({
        "file": file.display().to_string(),
        "ok": true,
        "request": explanation.request(),
        "caller": explanation.caller(),
        "at": explanation.at().map(|at| at.to_string()),
        "endpoint": explanation.endpoint(),
        "endpoints": endpoints,
        "tier": {
            "name": explanation.tier(),
            "multiplier": explanation.multiplier(),
            "from": tier_source(explanation.tier_source()),
        },
        "exempt": exempt,
        "rejected": rejected,
        "counted_by": counted,
        "not_counted_by": skipped,
    })
}

const fn tier_source(source: &TierSource) -> &'static str {
    match source {
        TierSource::Table => "table",
        TierSource::Identity => "identity",
        TierSource::Unknown(_) => "unknown",
        _ => "default",
    }
}

fn counted_by(by: &AppliedRule) -> Value {
    let (scaling, times) = match by.scaling() {
        Scaling::Times(times) => ("times", Some(times)),
        Scaling::Own => ("own", None),
        _ => ("never", None),
    };
    json!({
        "kind": by.kind().name(),
        "rule": by.rule(),
        "policy": by.policy(),
        "counter": by.counter(),
        "limit": by.quota().to_string(),
        "base": by.base().to_string(),
        "scaling": scaling,
        "times": times,
        "cost": by.cost(),
        "count": by.count().to_string(),
        "mode": mode(by.is_dry_run()),
        "on_store_failure": by.on_store_failure().name(),
        "message": by.message(),
        "suggestion": by.suggestion(),
    })
}

const fn mode(is_dry_run: bool) -> &'static str {
    if is_dry_run { "dry-run" } else { "enforce" }
}

fn not_counted_by(rule: &SkippedRule) -> Value {
    let why = match rule.why() {
        SkipReason::Exempt => "exempt",
        SkipReason::Rejected => "rejected",
        SkipReason::Replaced => "replaced",
        SkipReason::WithoutGlobal => "without-global",
        SkipReason::OnlyAnonymous => "only-anonymous",
        SkipReason::OnlyAuthenticated => "only-authenticated",
        SkipReason::Preflight => "preflight",
        SkipReason::Lacks(_) => "lacks",
        _ => "other",
    };
    json!({
        "kind": rule.kind().name(),
        "rule": rule.rule(),
        "why": why,
        "because": rule.why().to_string(),
    })
}
