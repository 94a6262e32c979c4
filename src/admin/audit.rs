//! Who has changed what. Whose limits were changed is nobody's business who reads logs.

use crate::head::RequestHead;
use crate::observe::{MAX_TEXT, truncate};

/// Says in the log who an operator is: from a header that a proxy sets, for instance.
pub(super) type ActorFn = dyn Fn(&RequestHead<'_>) -> Option<String> + Send + Sync;

/// Something that an operator has done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deed<'a> {
    Reset { rule: Option<&'a str> },
    Override { rule: &'a str },
    RemovedOverride { rule: &'a str },
    Maintenance,
    EndedMaintenance,
    Reload,
    LookUp,
}

impl Deed<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::Reset { .. } => "reset",
            Self::Override { .. } => "override",
            Self::RemovedOverride { .. } => "remove-override",
            Self::Maintenance => "maintenance",
            Self::EndedMaintenance => "end-maintenance",
            Self::Reload => "reload",
            Self::LookUp => "look-up",
        }
    }

    const fn rule(&self) -> Option<&str> {
        match self {
            Self::Reset { rule } => *rule,
            Self::Override { rule } | Self::RemovedOverride { rule } => Some(rule),
            _ => None,
        }
    }
}

/// Somebody has shown a wrong token. From where is not told: it may be an operator's typing error.
pub(super) fn wrong_token(request_id: &str) {
    tracing::warn!(target: "tollgate::audit", request_id, "rate_limit_admin_wrong_token");
}

/// Leaves an event for the audit.
pub(super) fn note(actor: Option<&str>, deed: &Deed<'_>, request_id: &str) {
    let (action, rule) = (deed.name(), deed.rule());
    tracing::info!(
        target: "tollgate::audit",
        action,
        actor = actor.map(|actor| truncate(actor, MAX_TEXT)).as_deref(),
        rule,
        request_id,
        "rate_limit_admin"
    );
}
