//! Statistics, state of the store, maintenance and policy in one response: the dashboard polls it.

use axum::Extension;
use axum::extract::State;
use serde::Serialize;

use super::{ApiResult, SharedState, maintenance, policy};
use crate::admin::json;
use crate::admin::operator::Operator;
use crate::observe::Statistics;

/// Endpoints and policies that are listed.
const MAX_LISTED: usize = 100;

#[derive(Serialize)]
struct StatisticsResponse {
    #[serde(flatten)]
    statistics: Statistics,
    maintenance: maintenance::MaintenanceResponse,
    policy: policy::PolicyStatusResponse,
    /// What the token of this request allows.
    role: &'static str,
}

pub(super) async fn show(
    State(state): State<SharedState>,
    Extension(operator): Extension<Operator>,
) -> ApiResult {
    let mut statistics = state.layer.statistics();
    statistics.endpoints.truncate(MAX_LISTED);
    statistics.policies.truncate(MAX_LISTED);
    Ok(json::ok(&StatisticsResponse {
        statistics,
        maintenance: maintenance::MaintenanceResponse::of(&state),
        policy: (&state.layer.policy_status()).into(),
        role: operator.role.name(),
    }))
}
