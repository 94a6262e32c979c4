//! The current policy, its status and its reload.

use axum::extract::{Request, State};
use serde::Serialize;
use serde_json::{Value, json};

use super::{ApiResult, SharedState, maintenance};
use crate::admin::api_error::ApiError;
use crate::admin::audit::AuditAction;
use crate::admin::builder::AdminState;
use crate::admin::{body, json};
use crate::clock::Timestamp;
use crate::head::RequestHead;
use crate::pipeline::{PolicyStatus, SettingsView};

/// Version of the policy, and the error of the last reload.
#[derive(Serialize)]
pub(super) struct PolicyStatusResponse {
    version: u64,
    since: Timestamp,
    failures: u64,
    problem: Option<String>,
}

impl From<&PolicyStatus> for PolicyStatusResponse {
    fn from(status: &PolicyStatus) -> Self {
        Self {
            version: status.version(),
            since: status.since(),
            failures: status.failures(),
            problem: status.problem().map(str::to_owned),
        }
    }
}

#[derive(Serialize)]
struct PolicyResponse {
    status: PolicyStatusResponse,
    maintenance: maintenance::MaintenanceResponse,
    policy: Value,
    settings: SettingsView,
}

impl PolicyResponse {
    fn of(state: &AdminState) -> Self {
        Self {
            status: (&state.layer.policy_status()).into(),
            maintenance: maintenance::MaintenanceResponse::of(state),
            policy: state
                .pipeline()
                .with_policy(|policy| json!(policy.overview())),
            settings: state.pipeline().settings(),
        }
    }
}

pub(super) async fn show(State(state): State<SharedState>) -> ApiResult {
    Ok(json::ok(&PolicyResponse::of(&state)))
}

/// An empty body.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ReloadRequest {}

pub(super) async fn reload(State(state): State<SharedState>, request: Request) -> ApiResult {
    let (head, ReloadRequest {}) = body::read(request).await?;
    state.audit(&RequestHead::of(&head), &AuditAction::Reload);
    let layer = state.layer.clone();
    // Reads a file, and blocks while another reload runs.
    let reloaded = tokio::task::spawn_blocking(move || layer.reload()).await;
    let status = reloaded.map_err(|_| ApiError::broken("The reload was aborted."))?;
    Ok(json::ok(&PolicyStatusResponse::from(&status?)))
}
