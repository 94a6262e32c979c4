//! The switch for all limits.

use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};

use super::{Answer, Shared};
use crate::admin::audit::Deed;
use crate::admin::instant::Instant;
use crate::admin::operator::Desk;
use crate::admin::refusal::Refusal;
use crate::admin::{body, reply};
use crate::head::RequestHead;

/// Whether all limits are off, until when, and by whom.
#[derive(Serialize)]
pub(super) struct Told {
    active: bool,
    until: Option<Instant>,
    /// `policy` if the file says it, `operator` if it was said at run time.
    by: Option<&'static str>,
}

impl Told {
    pub(super) fn of(desk: &Desk) -> Self {
        let until = desk.pipeline().maintenance_until();
        Self {
            active: until.is_some(),
            until: until.map(|(until, _)| Instant(until)),
            by: until.map(|(_, by_policy)| if by_policy { "policy" } else { "operator" }),
        }
    }
}

pub(super) async fn show(State(desk): State<Shared>) -> Answer {
    Ok(reply::ok(&Told::of(&desk)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// It has to be said, if only that it is nothing: else `{}` would switch limits on.
    #[serde(deserialize_with = "Option::deserialize")]
    until: Option<Instant>,
}

pub(super) async fn set(State(desk): State<Shared>, request: Request) -> Answer {
    let (head, wanted): (_, Wanted) = body::read(request).await?;
    if let Some(Instant(until)) = wanted.until {
        desk.layer.start_maintenance(until).await?;
        desk.note(&RequestHead::of(&head), &Deed::Maintenance);
        return Ok(reply::ok(&Told::of(&desk)));
    }
    if desk.layer.end_maintenance().await? {
        desk.note(&RequestHead::of(&head), &Deed::EndedMaintenance);
    }
    match desk.pipeline().maintenance_until() {
        Some((until, true)) => Err(Refusal::conflict(format!(
            "Limits are off until {} because the policy says so (`maintenance.disabled_until`). \
             Change it there, and reload.",
            Instant(until)
        ))),
        _ => Ok(reply::ok(&Told::of(&desk))),
    }
}
