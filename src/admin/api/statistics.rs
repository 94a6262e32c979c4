//! Statistics, state of the store, maintenance and policy in one response: the dashboard polls it.

use axum::extract::State;
use serde::Serialize;

use super::{Answer, Shared, maintenance, policy};
use crate::admin::reply;
use crate::observe::Statistics;

/// Endpoints and policies that are listed.
const MAX_LISTED: usize = 100;

#[derive(Serialize)]
struct StatisticsResponse {
    #[serde(flatten)]
    statistics: Statistics,
    maintenance: maintenance::Told,
    policy: policy::InForce,
}

pub(super) async fn show(State(desk): State<Shared>) -> Answer {
    let mut statistics = desk.layer.statistics();
    statistics.endpoints.truncate(MAX_LISTED);
    statistics.policies.truncate(MAX_LISTED);
    Ok(reply::ok(&StatisticsResponse {
        statistics,
        maintenance: maintenance::Told::of(&desk),
        policy: (&desk.layer.policy_status()).into(),
    }))
}
