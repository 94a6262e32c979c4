//! Forgets what was counted for somebody.

use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};

use super::{Answer, Shared};
use crate::admin::audit::Deed;
use crate::admin::subject::Dimensions;
use crate::admin::{body, reply};
use crate::head::RequestHead;
use crate::pipeline::InspectedCaller;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whose {
    subject: Dimensions,
    #[serde(default)]
    rule: Option<String>,
}

#[derive(Serialize)]
struct Done {
    reset: bool,
}

pub(super) async fn reset(State(desk): State<Shared>, request: Request) -> Answer {
    let (head, whose): (_, Whose) = body::read(request).await?;
    whose.subject.require_somebody()?;
    let (identity, ip) = (whose.subject.identity(), whose.subject.ip()?);
    let asker = InspectedCaller::new(identity, ip, desk.pipeline());
    let rule = whose.rule.as_deref();
    let forgotten = desk.pipeline().forget(&asker, rule);
    forgotten.await?;
    desk.note(&RequestHead::of(&head), &Deed::Reset { rule });
    Ok(reply::ok(&Done { reset: true }))
}
