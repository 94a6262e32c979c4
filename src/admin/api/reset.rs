//! Resets the counters of a subject.

use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};

use super::{ApiResult, SharedState};
use crate::admin::audit::AuditAction;
use crate::admin::subject_body::SubjectBody;
use crate::admin::{body, json};
use crate::head::RequestHead;
use crate::pipeline::InspectedCaller;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResetRequest {
    subject: SubjectBody,
    #[serde(default)]
    rule: Option<String>,
}

#[derive(Serialize)]
struct ResetResponse {
    reset: bool,
}

pub(super) async fn reset(State(state): State<SharedState>, request: Request) -> ApiResult {
    let (head, reset): (_, ResetRequest) = body::read(request).await?;
    reset.subject.require_dimension()?;
    reset.subject.require_names()?;
    let (identity, ip) = (reset.subject.identity(), reset.subject.ip()?);
    let caller = InspectedCaller::new(identity, ip, state.pipeline());
    let rule = reset.rule.as_deref();
    let cleared = state.pipeline().reset(&caller, rule);
    cleared.await?;
    state.audit(&RequestHead::of(&head), &AuditAction::Reset { rule });
    Ok(json::ok(&ResetResponse { reset: true }))
}
