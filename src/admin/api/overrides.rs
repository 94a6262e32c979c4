//! Limits that are set at run time: what there is, one more, one less.

use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};

use super::{Answer, Shared};
use crate::admin::audit::Deed;
use crate::admin::instant::Instant;
use crate::admin::subject::Dimensions;
use crate::admin::{body, reply};
use crate::error::ValidationError;
use crate::head::RequestHead;
use crate::policy::dimensions;
use crate::store::Override;

#[derive(Serialize)]
pub(super) struct Told {
    subject: Dimensions,
    counter: String,
    rule: String,
    limit: String,
    until: Option<Instant>,
}

impl From<&Override> for Told {
    fn from(of: &Override) -> Self {
        Self {
            subject: (&of.subject()).into(),
            counter: dimensions(&of.subject()),
            rule: of.rule().to_owned(),
            limit: of.quota().to_string(),
            until: of.expires_at().map(Instant),
        }
    }
}

#[derive(Serialize)]
struct List {
    overrides: Vec<Told>,
}

pub(super) async fn list(State(desk): State<Shared>) -> Answer {
    let mut overrides: Vec<Told> = desk.layer.overrides().iter().map(Told::from).collect();
    overrides.sort_by(|one, other| (&one.counter, &one.rule).cmp(&(&other.counter, &other.rule)));
    Ok(reply::ok(&List { overrides }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    subject: Dimensions,
    rule: String,
    limit: String,
    #[serde(default)]
    until: Option<Instant>,
}

pub(super) async fn set(State(desk): State<Shared>, request: Request) -> Answer {
    let (head, new): (_, New) = body::read(request).await?;
    // One that is no address would be for nobody.
    new.subject.ip()?;
    let limit = Override::new(new.subject.subject(), &*new.rule, &*new.limit)?;
    let limit = match new.until {
        Some(Instant(until)) if until <= desk.pipeline().wall_now() => {
            let expected = "an instant that is to come, or nothing";
            return Err(ValidationError::new("end", until, expected).into());
        }
        Some(Instant(until)) => limit.until(until),
        None => limit,
    };
    let told = Told::from(&limit);
    desk.layer.set_override(limit).await?;
    desk.note(&RequestHead::of(&head), &Deed::Override { rule: &new.rule });
    Ok(reply::ok(&told))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    subject: Dimensions,
    rule: String,
}

#[derive(Serialize)]
struct Removed {
    removed: bool,
}

pub(super) async fn remove(State(desk): State<Shared>, request: Request) -> Answer {
    let (head, which): (_, Which) = body::read(request).await?;
    let answer = desk
        .layer
        .remove_override(which.subject.subject(), &which.rule);
    let removed = answer.await?;
    if removed {
        let deed = Deed::RemovedOverride { rule: &which.rule };
        desk.note(&RequestHead::of(&head), &deed);
    }
    Ok(reply::ok(&Removed { removed }))
}
