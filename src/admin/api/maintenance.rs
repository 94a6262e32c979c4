//! Maintenance: switches all limits off and on.

use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};

use super::{ApiResult, SharedState};
use crate::admin::api_error::ApiError;
use crate::admin::audit::AuditAction;
use crate::admin::builder::AdminState;
use crate::admin::{body, json};
use crate::clock::Timestamp;
use crate::head::RequestHead;

/// Whether all limits are off, and until when.
#[derive(Serialize)]
pub(super) struct MaintenanceResponse {
    active: bool,
    until: Option<Timestamp>,
    /// `policy` if it is set in the policy, `operator` if it was set at run time.
    by: Option<&'static str>,
}

impl MaintenanceResponse {
    pub(super) fn of(state: &AdminState) -> Self {
        let until = state.pipeline().maintenance_until();
        Self {
            active: until.is_some(),
            until: until.map(|(until, _)| until),
            by: until.map(|(_, by_policy)| if by_policy { "policy" } else { "operator" }),
        }
    }
}

pub(super) async fn show(State(state): State<SharedState>) -> ApiResult {
    Ok(json::ok(&MaintenanceResponse::of(&state)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MaintenanceRequest {
    /// Required, also if `null`: otherwise `{}` would switch the limits on.
    #[serde(deserialize_with = "Option::deserialize")]
    until: Option<Timestamp>,
}

pub(super) async fn set(State(state): State<SharedState>, request: Request) -> ApiResult {
    let (head, request_body): (_, MaintenanceRequest) = body::read(request).await?;
    if let Some(until) = request_body.until {
        state.layer.start_maintenance(until).await?;
        state.audit(&RequestHead::of(&head), &AuditAction::Maintenance);
        return Ok(json::ok(&MaintenanceResponse::of(&state)));
    }
    if state.layer.end_maintenance().await? {
        state.audit(&RequestHead::of(&head), &AuditAction::EndedMaintenance);
    }
    match state.pipeline().maintenance_until() {
        Some((until, true)) => Err(ApiError::conflict(format!(
            "Limits are off until {until} because of `maintenance.disabled_until` in the policy. \
             Change it there, and reload.",
        ))),
        _ => Ok(json::ok(&MaintenanceResponse::of(&state))),
    }
}
