//! Audit events: operator and action, without the subject whose limits were changed.

use crate::head::RequestHead;
use crate::observe::{MAX_TEXT, truncate};

/// Closure that returns the name of the operator.
pub(super) type ActorFn = dyn Fn(&RequestHead<'_>) -> Option<String> + Send + Sync;

/// Action of an operator.
#[derive(Clone, Copy, Debug)]
pub(super) enum AuditAction<'a> {
    Reset { rule: Option<&'a str> },
    Override { rule: &'a str },
    RemovedOverride { rule: &'a str },
    Maintenance,
    EndedMaintenance,
    Reload,
    LookUp,
}

impl AuditAction<'_> {
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

/// Logs a wrong token, without the client IP: it may be a typing error of an operator.
pub(super) fn wrong_token(request_id: &str) {
    tracing::warn!(target: "tollgate::audit", request_id, "rate_limit_admin_wrong_token");
}

/// Logs an action.
pub(super) fn log(actor: Option<&str>, action: &AuditAction<'_>, request_id: &str) {
    let (action, rule) = (action.name(), action.rule());
    tracing::info!(
        target: "tollgate::audit",
        action,
        actor = actor.map(|actor| truncate(actor, MAX_TEXT)).as_deref(),
        rule,
        request_id,
        "rate_limit_admin"
    );
}
