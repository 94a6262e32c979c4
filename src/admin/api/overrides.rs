//! Overrides: list, set, remove.

use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};

use super::{ApiResult, SharedState};
use crate::admin::audit::AuditAction;
use crate::admin::subject_body::SubjectBody;
use crate::admin::{body, json};
use crate::clock::Timestamp;
use crate::error::ValidationError;
use crate::head::RequestHead;
use crate::policy::{Policy, dimensions};
use crate::store::Override;

#[derive(Serialize)]
pub(super) struct OverrideResponse {
    subject: SubjectBody,
    counter: String,
    rule: String,
    limit: String,
    until: Option<Timestamp>,
}

impl From<&Override> for OverrideResponse {
    fn from(of: &Override) -> Self {
        Self {
            subject: (&of.subject()).into(),
            counter: dimensions(&of.subject()),
            rule: of.rule().to_owned(),
            limit: of.quota().to_string(),
            until: of.expires_at(),
        }
    }
}

#[derive(Serialize)]
struct OverridesResponse {
    overrides: Vec<OverrideResponse>,
}

pub(super) async fn list(State(state): State<SharedState>) -> ApiResult {
    let mut overrides: Vec<OverrideResponse> = state
        .layer
        .overrides()
        .iter()
        .map(OverrideResponse::from)
        .collect();
    overrides.sort_by(|one, other| (&one.counter, &one.rule).cmp(&(&other.counter, &other.rule)));
    Ok(json::ok(&OverridesResponse { overrides }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetOverrideRequest {
    subject: SubjectBody,
    rule: String,
    limit: String,
    #[serde(default)]
    until: Option<Timestamp>,
}

pub(super) async fn set(State(state): State<SharedState>, request: Request) -> ApiResult {
    let (head, new): (_, SetOverrideRequest) = body::read(request).await?;
    // An override for a malformed address or name would apply to no caller.
    new.subject.ip()?;
    new.subject.require_names()?;
    let is_shared = |policy: &Policy| policy.is_shared_by_all(&new.rule);
    if !state.pipeline().with_policy(is_shared) {
        new.subject.require_dimension()?;
    }
    let limit = Override::new(new.subject.subject(), &*new.rule, &*new.limit)?;
    let limit = match new.until {
        Some(until) if until <= state.pipeline().wall_now() => {
            let expected = "an instant in the future, or nothing";
            return Err(ValidationError::new("end", until, expected).into());
        }
        Some(until) => limit.until(until),
        None => limit,
    };
    let response = OverrideResponse::from(&limit);
    state.layer.set_override(limit).await?;
    state.audit(
        &RequestHead::of(&head),
        &AuditAction::Override { rule: &new.rule },
    );
    Ok(json::ok(&response))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RemoveOverrideRequest {
    subject: SubjectBody,
    rule: String,
}

#[derive(Serialize)]
struct RemoveOverrideResponse {
    removed: bool,
}

pub(super) async fn remove(State(state): State<SharedState>, request: Request) -> ApiResult {
    let (head, which): (_, RemoveOverrideRequest) = body::read(request).await?;
    let answer = state
        .layer
        .remove_override(which.subject.subject(), &which.rule);
    let removed = answer.await?;
    if removed {
        let action = AuditAction::RemovedOverride { rule: &which.rule };
        state.audit(&RequestHead::of(&head), &action);
    }
    Ok(json::ok(&RemoveOverrideResponse { removed }))
}
