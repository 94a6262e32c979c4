//! Every counter of somebody, and why they are blocked if they are.

use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};

use super::explain::{Explained, explained};
use super::{Answer, Shared, overrides};
use crate::admin::audit::Deed;
use crate::admin::instant::Instant;
use crate::admin::subject::Dimensions;
use crate::admin::{body, reply};
use crate::clock::Timestamp;
use crate::error::ValidationError;
use crate::head::RequestHead;
use crate::headers::retry_after_secs;
use crate::identity_types::Identity;
use crate::pipeline::{InspectedCaller, Inspection, LimitStatus, RequestPipeline};
use crate::policy::Exemption;
use crate::response::words;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whom {
    subject: Dimensions,
    #[serde(default)]
    tier: Option<String>,
    #[serde(default)]
    roles: Vec<String>,
    #[serde(default)]
    request: Option<String>,
}

impl Whom {
    fn identity(&self, pipeline: &RequestPipeline) -> Result<Option<Identity>, ValidationError> {
        let Some(mut identity) = self.subject.identity() else {
            return Ok(None);
        };
        if let Some(tier) = self.tier.as_deref().filter(|tier| !tier.is_empty()) {
            pipeline.with_policy(|policy| {
                let mut tiers = policy.overview().tiers();
                if tiers.any(|known| known.name() == tier) {
                    return Ok(());
                }
                let names: Vec<_> = policy.overview().tiers().map(|tier| tier.name()).collect();
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

#[derive(Serialize)]
struct Told {
    subject: Dimensions,
    known_by: String,
    tier: String,
    /// Whether it is theirs for sure. Callers may say theirs with each request, in a token.
    tier_known: bool,
    /// Whether nothing is counted, and by what.
    exempt: Option<&'static str>,
    blocked: bool,
    /// For people: one sentence for each limit that is in the way.
    because: Vec<String>,
    degraded: bool,
    limits: Vec<ToldLimit>,
    overrides: Vec<overrides::Told>,
    explanation: Option<Explained>,
    timestamp: Instant,
}

#[derive(Serialize)]
struct ToldLimit {
    kind: &'static str,
    rule: String,
    policy: String,
    counter: String,
    /// As rules say it: `500/1h`.
    quota: String,
    /// `null` if there is none.
    limit: Option<u64>,
    used: u64,
    remaining: Option<u64>,
    reset_at: Option<Instant>,
    retry_after: Option<u64>,
    blocked: bool,
    overridden: bool,
    mode: &'static str,
}

pub(super) async fn look_up(State(desk): State<Shared>, request: Request) -> Answer {
    let (head, whom): (_, Whom) = body::read(request).await?;
    whom.subject.require_somebody()?;
    let pipeline = desk.pipeline();
    let (identity, ip) = (whom.identity(pipeline)?, whom.subject.ip()?);
    let explanation = whom.request.as_deref();
    let explanation = explanation.map(|request| explained(pipeline, request, identity.clone(), ip));
    let explanation = explanation.transpose()?;
    let asker = InspectedCaller::new(identity, ip, pipeline);
    let inspected = pipeline.inspect(&asker).await;
    let overrides = desk.layer.overrides();
    let of_them = overrides.iter().filter(|of| asker.is_meant_by(of));
    desk.note(&RequestHead::of(&head), &Deed::LookUp);
    let limits = inspected.limits.iter();
    Ok(reply::ok(&Told {
        subject: whom.subject,
        known_by: asker.known_by().to_owned(),
        tier: inspected.tier.clone(),
        tier_known: inspected.tier_known,
        exempt: inspected.exemption.map(Exemption::name),
        blocked: inspected.exemption.is_none() && inspected.blocking().next().is_some(),
        because: because(&inspected),
        degraded: inspected.degraded,
        limits: limits
            .map(|limit| ToldLimit::new(limit, inspected.at))
            .collect(),
        overrides: of_them.map(Into::into).collect(),
        explanation,
        timestamp: Instant(inspected.at),
    }))
}

impl ToldLimit {
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
            reset_at: reset_at.map(Instant::rounded_up),
            retry_after: wait.map(|reset_at| retry_after_secs(reset_at.duration_since(at))),
            blocked: limit.is_used_up() && !limit.dry_run,
            overridden: limit.overridden,
            mode: if limit.dry_run { "dry-run" } else { "enforce" },
        }
    }
}

/// Why somebody is blocked, or that they are not, in whole sentences.
fn because(inspected: &Inspection) -> Vec<String> {
    if let Some(why) = inspected.exemption {
        return vec![match why {
            Exemption::Maintenance => {
                "All limits are off for the time being, so nothing is counted.".to_owned()
            }
            why => format!("Nothing is counted: they are exempt by {}.", why.name()),
        }];
    }
    let sentences = inspected.blocking().map(|limit| sentence(limit, inspected));
    let mut sentences: Vec<String> = sentences.collect();
    if sentences.is_empty() {
        sentences.push("Nothing is used up: the next request is admitted.".to_owned());
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
        return format!("{whose} lets nothing through ({policy}), however long they wait.");
    };
    let wait = retry_after_secs(reset_at.duration_since(inspected.at));
    format!(
        "{policy} is used up: {} of {} in the past {}. The next request is admitted in {}.",
        usage.used(),
        usage.limit(),
        words::window_text(limit.quota.window()),
        words::wait_text(wait),
    )
}
