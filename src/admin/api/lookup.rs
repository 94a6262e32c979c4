//! Look-up of a caller: all its counters, and why it is blocked.

use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};

use super::explain::{Explained, explained};
use super::{ApiResult, SharedState, overrides};
use crate::admin::audit::AuditAction;
use crate::admin::subject_body::SubjectBody;
use crate::admin::{body, json, rounded_up};
use crate::clock::Timestamp;
use crate::error::ValidationError;
use crate::head::RequestHead;
use crate::headers::retry_after_secs;
use crate::identity_types::Identity;
use crate::pipeline::{InspectedCaller, Inspection, LimitStatus, RequestPipeline};
use crate::policy::{Exemption, ExplainRequest, TierTable};
use crate::response::words;
use crate::store::Override;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LookupRequest {
    subject: SubjectBody,
    #[serde(default)]
    tier: Option<String>,
    #[serde(default)]
    roles: Vec<String>,
    #[serde(default)]
    request: Option<String>,
}

impl LookupRequest {
    fn identity(&self, pipeline: &RequestPipeline) -> Result<Option<Identity>, ValidationError> {
        let Some(mut identity) = self.subject.identity() else {
            return Ok(None);
        };
        if let Some(tier) = self.tier.as_deref().filter(|tier| !tier.is_empty()) {
            pipeline.with_policy(|policy| {
                let tiers = policy.tiers();
                if tiers.index(tier).is_some() {
                    return Ok(());
                }
                let names: Vec<_> = (0..tiers.len()).map(|index| tiers.name(index)).collect();
                let expected = format!("one of the tiers: {}", names.join(", "));
                Err(ValidationError::new("tier", tier.escape_debug(), expected))
            })?;
            identity = identity.tier(tier);
        }
        for role in &self.roles {
            identity = identity.role(role);
        }
        Ok(Some(identity))
    }
}

/// Returns the identity with the tier that its limits were inspected with, unless that is the default.
fn with_tier_of(
    inspected: &Inspection,
    identity: Identity,
    pipeline: &RequestPipeline,
) -> Identity {
    let is_default = |tier: &str| {
        pipeline.with_policy(|policy| policy.tiers().index(tier) == Some(TierTable::DEFAULT))
    };
    if identity.tier_name().is_some() || is_default(&inspected.tier) {
        return identity;
    }
    identity.tier(&*inspected.tier)
}

#[derive(Serialize)]
struct LookupResponse {
    subject: SubjectBody,
    known_by: String,
    tier: String,
    /// Whether the tier is unknown and the default tier is assumed. A token of the caller may name
    /// another one.
    tier_assumed: bool,
    /// Why the caller is exempt.
    exempt: Option<&'static str>,
    blocked: bool,
    /// One sentence per limit that blocks the caller.
    because: Vec<String>,
    degraded: bool,
    limits: Vec<LookupLimit>,
    /// Number of limits per client IP that are not listed, because the look-up has no IP.
    ip_limits_omitted: usize,
    overrides: Vec<overrides::OverrideResponse>,
    explanation: Option<Explained>,
    timestamp: Timestamp,
}

#[derive(Serialize)]
struct LookupLimit {
    kind: &'static str,
    rule: String,
    policy: String,
    counter: String,
    /// As written in rules: `500/1h`.
    quota: String,
    /// `null` if unlimited.
    limit: Option<u64>,
    used: u64,
    remaining: Option<u64>,
    reset_at: Option<Timestamp>,
    retry_after: Option<u64>,
    blocked: bool,
    /// When this limit denied the first of a row of requests, if that is known. Requests of lower cost
    /// may have been admitted in between.
    blocked_since: Option<Timestamp>,
    overridden: bool,
    mode: &'static str,
}

pub(super) async fn look_up(State(state): State<SharedState>, request: Request) -> ApiResult {
    let (head, lookup): (_, LookupRequest) = body::read(request).await?;
    lookup.subject.require_dimension()?;
    lookup.subject.require_names()?;
    let pipeline = state.pipeline();
    let (identity, ip) = (lookup.identity(pipeline)?, lookup.subject.ip()?);
    let explain_request = lookup.request.as_deref().map(ExplainRequest::new);
    let explain_request = explain_request.transpose()?;
    let caller = InspectedCaller::new(identity.clone(), ip, pipeline);
    let inspected = pipeline.inspect(&caller).await;
    let explanation = explain_request.map(|request| {
        let identity = identity.map(|identity| with_tier_of(&inspected, identity, pipeline));
        explained(pipeline, request, identity, ip)
    });
    let overrides = state.layer.overrides();
    let is_per_ip = |of: &Override| of.subject().has_dimension(Identity::IP);
    let omits_ip = inspected.omitted > 0 || ip.is_none() && overrides.iter().any(is_per_ip);
    let matching = overrides.iter().filter(|of| caller.is_overridden_by(of));
    state.audit(&RequestHead::of(&head), &AuditAction::LookUp);
    let limits = inspected.limits.iter();
    Ok(json::ok(&LookupResponse {
        subject: lookup.subject,
        known_by: caller.caller().label().to_owned(),
        tier: inspected.tier.clone(),
        tier_assumed: inspected.tier_assumed,
        exempt: inspected.exemption.map(Exemption::name),
        blocked: inspected.exemption.is_none() && inspected.blocking().next().is_some(),
        because: because(&inspected, omits_ip),
        degraded: inspected.degraded,
        limits: limits
            .map(|limit| LookupLimit::new(limit, inspected.at))
            .collect(),
        ip_limits_omitted: inspected.omitted,
        overrides: matching.map(Into::into).collect(),
        explanation,
        timestamp: inspected.at,
    }))
}

impl LookupLimit {
    fn new(limit: &LimitStatus, at: Timestamp) -> Self {
        let reset_at = limit.reset_at();
        let wait = limit.is_used_up().then_some(reset_at).flatten();
        let is_limit = !limit.quota.is_unlimited();
        Self {
            kind: limit.kind.name(),
            rule: limit.rule.clone(),
            policy: limit.policy.clone(),
            counter: limit.counter.clone(),
            quota: limit.quota.to_string(),
            limit: is_limit.then(|| limit.usage.limit()),
            used: limit.usage.used(),
            remaining: is_limit.then(|| limit.usage.remaining()),
            reset_at: reset_at.map(rounded_up),
            retry_after: wait.map(|reset_at| retry_after_secs(reset_at.duration_since(at))),
            blocked: limit.is_used_up() && !limit.dry_run,
            blocked_since: limit.denied_since.filter(|_| limit.is_used_up()),
            overridden: limit.overridden,
            mode: if limit.dry_run { "dry-run" } else { "enforce" },
        }
    }
}

/// Returns one sentence per limit that blocks the caller, or one sentence if none does. `omits_ip` is
/// whether there are limits or overrides per IP, and no IP to look them up with.
fn because(inspected: &Inspection, omits_ip: bool) -> Vec<String> {
    if let Some(why) = inspected.exemption {
        return vec![match why {
            Exemption::Maintenance => {
                "All limits are off for maintenance, so nothing is counted.".to_owned()
            }
            why => format!(
                "Nothing is counted: the caller is exempt by {}.",
                why.name()
            ),
        }];
    }
    let sentences = inspected.blocking().map(|limit| sentence(limit, inspected));
    let mut sentences: Vec<String> = sentences.collect();
    if sentences.is_empty() {
        sentences.push(if omits_ip {
            "No limit of this subject is used up: the next request is admitted, unless a limit or an override \
             for its IP denies it."
                .to_owned()
        } else {
            "No limit is used up: the next request is admitted.".to_owned()
        });
    }
    sentences
}

fn sentence(limit: &LimitStatus, inspected: &Inspection) -> String {
    let (policy, usage) = (&limit.policy, &limit.usage);
    let whose = if limit.overridden {
        "An override"
    } else {
        "The policy"
    };
    let Some(reset_at) = limit.reset_at() else {
        return format!("{whose} blocks all requests ({policy}). No wait helps.");
    };
    let wait = retry_after_secs(reset_at.duration_since(inspected.at));
    if limit.quota.is_blocked() {
        return format!(
            "{whose} blocks all requests ({policy}). The next request is admitted in {}.",
            words::wait_text(wait),
        );
    }
    format!(
        "{policy} is used up: {} of {} in the past {}. The next request is admitted in {}.",
        grouped(usage.used()),
        grouped(usage.limit()),
        words::window_text(limit.quota.window()),
        words::wait_text(wait),
    )
}

/// Writes a number with thousands separators: `12,345`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<&str> = groups
        .map(|group| str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345_678, "12,345,678"),
        ] {
            assert_eq!(grouped(number), expected);
        }
    }
}
