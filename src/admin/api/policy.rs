//! The policy that is in force, as it is understood, and how it came there.

use axum::extract::{Request, State};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Answer, Shared, maintenance};
use crate::admin::audit::Deed;
use crate::admin::instant::Instant;
use crate::admin::operator::Desk;
use crate::admin::refusal::Refusal;
use crate::admin::{body, reply};
use crate::head::RequestHead;
use crate::pipeline::PolicyStatus;

/// Which policy is in force, and whether the last attempt to replace it failed.
#[derive(Serialize)]
pub(super) struct InForce {
    version: u64,
    since: Instant,
    failures: u64,
    problem: Option<String>,
}

impl From<&PolicyStatus> for InForce {
    fn from(status: &PolicyStatus) -> Self {
        Self {
            version: status.version(),
            since: Instant(status.since()),
            failures: status.failures(),
            problem: status.problem().map(str::to_owned),
        }
    }
}

#[derive(Serialize)]
struct Told {
    status: InForce,
    maintenance: maintenance::Told,
    policy: Value,
}

impl Told {
    fn of(desk: &Desk) -> Self {
        Self {
            status: (&desk.layer.policy_status()).into(),
            maintenance: maintenance::Told::of(desk),
            policy: desk
                .pipeline()
                .with_policy(|policy| json!(policy.overview())),
        }
    }
}

pub(super) async fn show(State(desk): State<Shared>) -> Answer {
    Ok(reply::ok(&Told::of(&desk)))
}

/// Nothing has to be said.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

pub(super) async fn reload(State(desk): State<Shared>, request: Request) -> Answer {
    let (head, Nothing {}) = body::read(request).await?;
    desk.note(&RequestHead::of(&head), &Deed::Reload);
    let layer = desk.layer.clone();
    // It reads a disk, and waits for whoever does so already.
    let reloaded = tokio::task::spawn_blocking(move || layer.reload()).await;
    let status = reloaded.map_err(|_| Refusal::broken("Reading the policy ended early."))?;
    Ok(reply::ok(&InForce::from(&status?)))
}
